"""`tilewright report`: its sections, in words and figures."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from cli_runner import tilewright as shell
from example_programs import FOLDER
from rich.table import Table
from tilewright.dialects.schedule import Schedule
from tilewright.ir.source import print_module
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.group_build import read_group
from tilewright.lowering.nest_build import place_nest

import tilewright
from tilewright.reporting import passes
from tilewright.reporting.fusion import fused_groups
from tilewright.reporting.levels import level_lines
from tilewright.reporting.limits import axis_tiles
from tilewright.reporting.lines import lines, places_of
from tilewright.reporting.parts import page, terminal
from tilewright.reporting.section import Heading, Html, Section
from tilewright.reporting.sections import SECTIONS
from tilewright.reporting.view import ir_html

# Two products that share no axis that could be streamed through: two kernels, and a reason.
TWO = """func.func @main(%x: tensor<64x48xf16>, %w: tensor<48x80xf16>) -> tensor<64x64xf16> {
  %a = graph.matmul %x, %w
  %g = graph.matmul %a, %a {transpose_b}
  return %g : tensor<64x64xf16>
}
"""


@cache
def compiled(name: str, target: str = "davinci") -> tilewright.Program:
    return tilewright.compile(FOLDER / f"{name}.mlir", target)


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_every_section_has_text_html_and_data() -> None:
    made = tilewright.report(compiled("gated_unit"))
    assert [section.key for section in made.sections] == list(SECTIONS)
    html, text = made.html(), str(made)
    for section in made.sections:
        assert f'<section id="{section.key}">' in html
        assert made.json()[section.key] == section.data
        assert (section.title in text) == (section.key != "levels")
    assert json.loads(json.dumps(made.json())) == made.json()


def test_the_figures_are_those_of_a_run() -> None:
    program = compiled("gated_unit")
    data = tilewright.report(program, ["traffic"]).json()["traffic"]
    figures = program.run(seed=0).report()
    assert isinstance(data, dict)
    assert {key: data[key] for key in figures if key in data} == {k: v for k, v in figures.items() if k in data}
    assert {"traffic", "cycles", "unfused", "compulsory_bytes", "memory"} <= data.keys() & figures.keys()


def test_bounds_bound() -> None:
    for name in ("gated_unit", "softmax_rows", "conv_bias_relu"):
        program = compiled(name)
        data = tilewright.report(program, ["traffic"]).json()["traffic"]
        assert isinstance(data, dict) and isinstance(data["bounds"], dict) and len(data["bounds"]) == 3
        assert all(0 < bound <= data["cycles"] for bound in data["bounds"].values())  # pyright: ignore


def test_every_operation_of_the_source_is_in_a_kernel() -> None:
    text = str(tilewright.report(compiled("attention", "unified"), ["fusion"]))
    assert "1 kernel of 5 operations." in text
    assert "2 matmul, mul, add, softmax" in text and "%q %k %mask %v" in text
    assert "Why not more" not in text


def test_why_kernels_are_apart() -> None:
    made = tilewright.report(tilewright.compile(TWO), ["fusion"])
    (section,) = made.sections
    assert isinstance(section.data, list) and len(section.data) == 2
    first, second = section.data
    assert isinstance(first, dict) and isinstance(second, dict)
    assert first["refusals"] == [] and first["gives"] == second["reads"] == ["%a"]
    assert isinstance(second["refusals"], list) and len(second["refusals"]) == 1
    assert str(second["refusals"][0])[:20] in str(made) and "Why not more" in str(made)


@pytest.mark.parametrize("name", ["batched_matmul_bias_relu", "conv_bias_relu", "softmax_rows", "gated_unit"])
@pytest.mark.parametrize("target", ["unified", "davinci"])
def test_limits_of_tiles_are_what_the_estimate_says(name: str, target: str) -> None:
    """With the next tile the estimate overflows exactly the memories that are named."""
    program = compiled(name, target)
    machine = program.target
    for fused in fused_groups(program).values():
        assert fused.schedule is not None
        group, schedule = read_group(fused.body.block), Schedule.from_attr(fused.schedule)
        tiles = axis_tiles(fused, machine)
        assert sorted(tile.name for tile in tiles) == sorted(schedule.axes)
        assert [tile.name for tile in tiles][: len(schedule.order)] == list(schedule.order)
        for tile in tiles:
            assert (tile.extent, tile.tile) == (schedule.extent(tile.name), schedule.tile(tile.name))
            assert tile.trips == -(-tile.extent // tile.tile)
            assert tile.next is None or tile.tile < tile.next <= tile.extent
            if tile.next is None or tile.next == tile.extent or schedule.inner:
                continue
            sizes = [tile.next if n == tile.name else t for n, t in zip(schedule.axes, schedule.tiles, strict=True)]
            found = estimate(
                nest := place_nest(group, replace(schedule, tiles=tuple(sizes))), Facts(nest.group, machine)
            )
            assert tile.overflow == {m: p for m, p in found.peaks.items() if p > machine.memories[m].bytes}


def test_a_memory_that_limits_is_named() -> None:
    """With little memory, tiles are small because of it."""
    program = tilewright.compile(
        FOLDER / "gated_unit.mlir", "unified{memory.scratchpad.bytes=64KiB}", objective="traffic"
    )
    (fused,) = fused_groups(program).values()
    limited = [tile for tile in axis_tiles(fused, program.target) if tile.overflow]
    assert limited
    text = str(tilewright.report(program, ["kernels"]))
    for tile in limited:
        assert f"{tile.next} takes" in text and "of scratchpad, which has 64 KiB" in text
    assert "is the whole axis" in text and "its inputs and outputs" in text


def basic(program: tilewright.Program) -> list[str]:
    """The sections that do not depend on what others add."""
    keys = [section.key for section in tilewright.report(program).sections]
    return [key for key in keys if key in ("traffic", "fusion", "kernels", "levels", "passes")]


def test_programs_that_stop_early_or_start_late() -> None:
    graph = tilewright.compile(FOLDER / "gated_unit.mlir", to="schedule")
    assert basic(graph) == ["fusion", "kernels", "levels", "passes"]
    hardware = tilewright.compile(print_module(compiled("gated_unit").module))
    assert basic(hardware) == ["traffic", "levels"]
    plain = tilewright.compile(FOLDER / "mlp.mlir", pipeline="canonicalize")
    assert basic(plain) == ["levels", "passes"]


# --- lines and changes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", ["graph", "tile", "hardware"])
def test_lines_are_the_printed_text_with_places(level: str) -> None:
    module = compiled("gated_unit").snapshot(level).module
    found = lines(module)
    assert "\n".join(line.text for line in found) + "\n" == print_module(module)
    located = [line for line in found if line.places]
    ops = [op for op in module.walk() if places_of(op) and op is not module]
    assert [line.places for line in located] == [tuple(places_of(op)) for op in ops if tuple(places_of(op))]


def test_every_operation_of_the_source_is_on_every_level() -> None:
    (_, source), *levels = level_lines(compiled("attention", "unified"))
    assert [name for name, _ in levels] == ["graph", "tile", "hardware"]
    text = (FOLDER / "attention.mlir").read_text()
    assert "\n".join(line.text for line in source) + "\n" == text
    wanted = {
        place for line in source if "graph." in line.text and "constant" not in line.text for place in line.places
    }
    assert len(wanted) == 5
    for _, found in levels:
        assert wanted <= {place for line in found for place in line.places}


def test_changes_rebuild_the_next_text() -> None:
    program = compiled("gated_unit")
    found = passes.changes(program)
    assert [change.name for change in found] == list(program.passes)
    for change, before, after in zip(found, program.snapshots, program.snapshots[1:], strict=False):
        same = print_module(before.module) == print_module(after.module)
        assert change.changed != same
        if change.diff is not None:
            old, new = print_module(before.module).splitlines(), print_module(after.module).splitlines()
            assert len(new) - len(old) == change.count("+") - change.count("-")
            assert all(line[1:] in new for line in change.diff if line.startswith("+"))
            assert all(line[1:] in old for line in change.diff if line.startswith("-"))


def test_texts_beyond_the_limit_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "LARGEST_DIFF", 10)
    found = {change.name: change for change in passes.changes(compiled("gated_unit"))}
    assert found["tile"].diff is None and found["tile"].changed
    assert not found["canonicalize"].changed
    assert "Too long to be compared" in tilewright.report(compiled("gated_unit"), ["passes"]).html()


def test_what_a_program_says_is_escaped() -> None:
    assert ir_html('%a = x <b> "</script>"').count("<") == 4  # two spans, opened and closed
    section = Section("k", "<t>", ["<p>", Heading("<h>"), Html("<i>raw</i>", "shown")])
    html = page(section)
    for part in ("&lt;t&gt;", "&lt;p&gt;", "&lt;h&gt;", "<i>raw</i>"):
        assert part in html
    table = Table("a<")
    table.add_row("<b")
    assert "a&lt;" in page(Section("k", "t", [table])) and "&lt;b" in page(Section("k", "t", [table]))
    assert "shown" in map(str, terminal(section))


def test_long_constants_are_elided_in_the_view_and_kept() -> None:
    digits = ", ".join(str(n) for n in range(100))
    shown = ir_html(f"graph.constant dense<[{digits}]> : tensor<100xi32>")
    assert 'class="long"' in shown and "…" in shown and "98, 99]" in shown
    assert 'class="long"' not in ir_html("graph.constant dense<0.125> : tensor<f16>")


# --- the command ----------------------------------------------------------------------------------------------------


def test_the_command() -> None:
    file = FOLDER / "gated_unit.mlir"
    done = shell("report", file, "--section", "fusion", "--target", "unified")
    assert done.code == 0 and "What was fused" in done.out and "Kernels" not in done.out
    done = shell("report", file, "--section", "fusion", "--section", "passes", "--json", "-", "--target", "unified")
    assert list(json.loads(done.out)) == ["fusion", "passes"]
    done = shell("report", file, "--html", "r.html", "--json", "r.json", "-p", "canonicalize,decompose")
    assert done.code == 0 and done.out == ""
    assert Path("r.html").read_text().startswith("<!doctype html>")
    assert {"levels", "passes"} <= json.loads(Path("r.json").read_text()).keys()
    done = shell("report", file, "--section", "fusoin", "-p", "canonicalize")
    assert done.code == 1 and "no section 'fusoin'; did you mean 'fusion'?" in done.err
    assert shell("report", file, "--html", "no/where.html").code == 1


# --- differences ----------------------------------------------------------------------------------------------------


def test_a_program_is_like_itself() -> None:
    made = tilewright.diff(compiled("gated_unit"), compiled("gated_unit"))
    data = made.json()
    figures, levels = data["figures"], data["levels"]
    assert isinstance(figures, dict) and all(one == two for one, two in figures.values())  # pyright: ignore
    assert levels == {"graph": [], "tile": [], "hardware": []}
    assert "second" in str(made) and " both " in str(made) and "%" not in str(made)


def test_two_targets_differ_in_what_they_count() -> None:
    a, b = compiled("gated_unit", "unified"), compiled("gated_unit", "davinci")
    data = tilewright.diff(a, b).json()
    figures, levels, kernels = data["figures"], data["levels"], data["kernels"]
    assert isinstance(figures, dict) and isinstance(levels, dict) and isinstance(kernels, list)
    for place, program in enumerate((a, b)):
        run = program.analyze()
        assert figures["cycles"][place] == run.cycles  # pyright: ignore
        for link, count in run.links.items():
            assert figures[f"moved {link}"][place] == count  # pyright: ignore
    assert figures["busy cycles of mte2"][0] is None  # pyright: ignore  # a target without it is not one at rest
    kernel = kernels[0]
    assert isinstance(kernel, dict) and kernel["first"] != kernel["second"]
    for level in ("graph", "tile", "hardware"):
        text = levels[level]
        assert isinstance(text, list) and any(line.startswith("+") for line in map(str, text))


def test_the_diff_command() -> None:
    small = "func.func @main(%x: tensor<8x16xf16>) -> tensor<8x16xf16> {\n"
    small += "  %y = graph.exp %x\n  return %y : tensor<8x16xf16>\n}\n"
    Path("a.mlir").write_text(small)
    Path("b.mlir").write_text(small.replace("exp", "tanh"))
    done = shell("diff", "a.mlir", "b.mlir", "--target", "unified")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert any(line.startswith("-") and '"exp"' in line for line in lines)
    assert any(line.startswith("+") and '"tanh"' in line for line in lines)
    done = shell("diff", "a.mlir", "--pipeline-b", "canonicalize", "-p", "canonicalize,decompose", "--json", "-")
    assert list(json.loads(done.out)) == ["levels"]
    done = shell("diff", "a.mlir", "--to", "x")
    assert done.code == 2
    done = shell("diff", "a.mlir", "c.mlir", "--html", "d.html")
    assert done.code == 1 and "no file 'c.mlir'" in done.err and not Path("d.html").exists()
    assert shell("diff", "a.mlir", "b.mlir", "-p", "canonicalize", "--html", "d.html").out == ""
    assert "a.mlir on davinci and b.mlir on davinci" in Path("d.html").read_text()
