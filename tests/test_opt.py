"""`tilewright opt`: pipelines, pieces, expected diagnostics, dumps, times, reproducers, passes of other packages."""

from __future__ import annotations

import io
import json
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from cli_runner import tilewright
from tilewright.lowering.plugins import plugin_passes

PLUGIN = Path(__file__).parent.parent / "examples" / "plugin"

GELU = """func.func @main(%x: tensor<8x16xf16>) -> tensor<8x16xf16> {
  %y = graph.gelu %x : tensor<8x16xf16>
  func.return %y : tensor<8x16xf16>
}
"""


@pytest.fixture(autouse=True)
def in_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gelu.mlir").write_text(GELU)


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The example package as pip would install it: its module, and its entry points beside it."""
    project = tomllib.loads((PLUGIN / "pyproject.toml").read_text())
    site = tmp_path / "site"
    info = site / "fast_gelu-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "fast_gelu.py").write_text((PLUGIN / "fast_gelu.py").read_text())
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fast-gelu\nVersion: 1.0\n")
    (group, entries), *rest = project["project"]["entry-points"].items()
    assert not rest
    (info / "entry_points.txt").write_text(f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in entries.items()))
    monkeypatch.syspath_prepend(site)
    monkeypatch.delitem(sys.modules, "fast_gelu", raising=False)


# --- pipelines ------------------------------------------------------------------------------------------------------


def test_without_passes_the_text_comes_back() -> None:
    assert tilewright("opt", "gelu.mlir").out == GELU
    assert '"func.func"(' in tilewright("opt", "gelu.mlir", "--generic").out
    assert 'loc("gelu.mlir":2:8)' in tilewright("opt", "gelu.mlir", "--locations").out


def test_passes_of_xdsl_can_be_named() -> None:
    twice = GELU.replace("  func.return", "  %z = graph.exp %x\n  %w = graph.exp %x\n  func.return")
    Path("twice.mlir").write_text(twice)
    assert tilewright("opt", "twice.mlir").out.count("graph.exp") == 2
    assert "graph.exp" not in tilewright("opt", "twice.mlir", "-p", "dce").out


BAD_PIPELINES = {
    "canonicalize,decompos": ("1:14: error: unknown pass 'decompos'", "decompose'?", "             ^^^^^^^^"),
    "canonicalize,,decompose": ("1:14: error: a pass name is missing",),
    "fuse{efort=1}": ("1:6: error: pass 'fuse' has no option 'efort'; did you mean 'effort'?", "     ^^^^^"),
    "emit{deep=1}": ("1:6: error: pass 'emit' has no option 'deep'; it has none",),
    "fuse{effort=many}": ("1:6: error: option 'effort' of pass 'fuse' is an integer, got many",),
    "canonicalize,\n  fuse{unfused=3 effort=1}": ("2:8: error: option 'unfused' of pass 'fuse' is true or false",),
    "fuse{effort=1;2}": ("1:14: error: unknown token", "             ^"),
    "fuse{": ("1:6: error: expected argument name here",),
    "fuse}": ("1:5: error: expected a comma",),
    "fuse{effort=1}}": ("1:15: error: expected a comma",),
    "zzzz": ("1:1: error: unknown pass 'zzzz' in the pipeline; there are canonicalize, decompose",),
}


@pytest.mark.parametrize("command", ["opt", "compile"])
@pytest.mark.parametrize("pipeline", BAD_PIPELINES)
def test_mistakes_in_a_pipeline_are_shown_in_it(pipeline: str, command: str) -> None:
    done = tilewright(command, "gelu.mlir", "-p", pipeline)
    assert done.code == 1 and done.out == "" and done.err.count("error:") == 1, done
    for part in BAD_PIPELINES[pipeline]:
        assert part in done.err, done.err
    assert "<pipeline>:" in done.err


def test_empty_pipelines_and_spaces_are_fine() -> None:
    assert tilewright("opt", "gelu.mlir", "-p", " ").out == GELU
    assert "graph.map" in tilewright("opt", "gelu.mlir", "-p", "canonicalize , decompose").out


def test_a_pass_that_needs_a_target_says_how_to_give_one() -> None:
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose,fuse")
    assert done.code == 1 and "--target" in done.err
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose,fuse", "--target", "unified")
    assert done.code == 0 and "graph.fused" in done.out


def test_standard_input_and_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GELU.encode())))
    assert tilewright("opt", "-").out == GELU
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(GELU.replace("gelu", "gelv").encode())))
    assert "<stdin>:2:8: error:" in tilewright("opt", "-").err
    done = tilewright("opt", "gelu.mlir", "-o", "out.mlir")
    assert done.out == "" and Path("out.mlir").read_text() == GELU


# --- pieces and expected diagnostics --------------------------------------------------------------------------------


def test_pieces_are_files_of_their_own() -> None:
    Path("two.mlir").write_text(f"{GELU}// -----\n{GELU}")
    done = tilewright("opt", "two.mlir", "--split-input-file")
    assert done.code == 0 and done.out == f"{GELU}// -----\n{GELU}"
    assert tilewright("opt", "two.mlir").code == 1  # as one file it defines @main twice


def test_one_bad_piece_does_not_hide_the_others() -> None:
    Path("three.mlir").write_text(f"{GELU}// -----\n{GELU.replace('gelu', 'gelv')}// -----\n{GELU}")
    done = tilewright("opt", "three.mlir", "--split-input-file")
    assert done.code == 1 and done.out == f"{GELU}// -----\n{GELU}"
    assert "three.mlir:7:8: error:" in done.err and "  %y = graph.gelv %x" in done.err


EXPECTING = {
    "met": ("  // expected-error@+1 {{unknown operation}}\n  %y = graph.gelv %x", ()),
    "met below": ("  // expected-error@below {{unknown operation}}\n  %y = graph.gelv %x", ()),
    "met here": ("  %y = graph.gelv %x // expected-error {{unknown operation}}", ()),
    "met above": ("  %y = graph.gelv %x\n  // expected-error@above {{unknown operation}}", ()),
    "met by expression": ("  // expected-error-re@+1 {{unknown .* 'graph\\.gel.'}}\n  %y = graph.gelv %x", ()),
    "two of one line": (
        "  // expected-error@+1 {{is not defined}}\n  %y = graph.gelu %a\n"
        "  // expected-error@+1 {{unknown operation}}\n  %z = graph.gelv %x",
        (),
    ),
    "not produced": (
        "  // expected-error@+1 {{unknown operation}}\n  %y = graph.gelu %x",
        ("2:6: error: expected error 'unknown operation' was not produced",),
    ),
    "other line": (
        "  // expected-error@+2 {{unknown operation}}\n  %y = graph.gelv %x",
        ("2:6: error: expected error", "3:8: error: unexpected error: unknown operation 'graph.gelv'"),
    ),
    "other words": (
        "  // expected-error@+1 {{no such operation}}\n  %y = graph.gelv %x",
        ("2:6: error: expected error", "3:8: error: unexpected error"),
    ),
    "other severity": (
        "  // expected-warning@+1 {{unknown operation}}\n  %y = graph.gelv %x",
        ("expected warning", "unexpected error"),
    ),
    "wrong expression": ("  %y = graph.gelu %x // expected-error-re {{(}}", ("is not a regular expression",)),
    "not expected": ("  %y = graph.gelv %x", ("2:8: error: unexpected error",)),
}


@pytest.mark.parametrize("case", EXPECTING)
def test_expected_diagnostics(case: str) -> None:
    line, problems = EXPECTING[case]
    Path("case.mlir").write_text(GELU.replace("  %y = graph.gelu %x : tensor<8x16xf16>", line))
    done = tilewright("opt", "case.mlir", "--verify-diagnostics")
    assert done.code == (1 if problems else 0), done
    assert done.err.count("error:") >= len(problems)
    for problem in problems:
        assert problem in done.err, done.err


def test_errors_of_passes_and_without_a_place_can_be_expected() -> None:
    text = f"// expected-error@unknown {{{{names no target}}}}\n{GELU}"
    Path("case.mlir").write_text(text)
    assert tilewright("opt", "case.mlir", "-p", "decompose,fuse", "--verify-diagnostics").code == 0
    assert tilewright("opt", "case.mlir", "-p", "decompose", "--verify-diagnostics").code == 1


# --- dumps, times, reproducers --------------------------------------------------------------------------------------


def test_dumps_are_numbered_and_go_on() -> None:
    flags = ("--print-ir-before-all", "--print-ir-after-all", "--print-ir-dir", "d", "--target", "unified")
    passes = "canonicalize,decompose,fuse{effort=4}"
    end = tilewright("opt", "gelu.mlir", "-p", passes, *flags)
    assert end.code == 0 and end.err == ""
    files = sorted(Path("d").iterdir())
    assert [file.name for file in files] == [
        "00-before-canonicalize.mlir",
        "01-after-canonicalize.mlir",
        "02-before-decompose.mlir",
        "03-after-decompose.mlir",
        "04-before-fuse.mlir",
        "05-after-fuse.mlir",
    ]
    for file in files:
        words = shlex.split(file.read_text().splitlines()[0].removeprefix("// "))
        assert words[0] == "tilewright"
        assert tilewright(*words[1:]).out == end.out, file
    pieces = f"{GELU}// -----\n{GELU}"
    Path("two.mlir").write_text(pieces)
    tilewright(
        "opt", "two.mlir", "-p", "decompose", "--split-input-file", "--print-ir-after-all", "--print-ir-dir", "e"
    )
    assert sorted(str(p) for p in Path("e").rglob("*.mlir")) == [
        "e/00/00-after-decompose.mlir",
        "e/01/00-after-decompose.mlir",
    ]


def test_only_changes_and_named_passes() -> None:
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose,canonicalize", "--print-ir-after-change")
    assert done.err.count("// -----// IR after") == 1 and "IR after decompose (2 of 3)" in done.err
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose", "--print-ir-before", "decompose")
    assert done.err.count("// -----//") == 1 and "IR before decompose" in done.err and "graph.gelu" in done.err
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize", "--print-ir-after", "canonicalise")
    assert done.code == 1 and "no pass 'canonicalise' in the pipeline; did you mean 'canonicalize'?" in done.err


def test_what_a_failing_pass_leaves() -> None:
    done = tilewright("opt", "gelu.mlir", "-p", "decompose,fuse", "--print-ir-after-failure", "--print-ir-dir", "d")
    assert done.code == 1
    (file,) = Path("d").iterdir()
    assert file.name == "00-failed-fuse.mlir" and "graph.map" in file.read_text()
    words = shlex.split(file.read_text().splitlines()[0].removeprefix("// "))
    assert tilewright(*words[1:]).err == done.err


def test_times_are_a_tree() -> None:
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose", "--timing", "--timing-json", "t.json")
    lines = done.err.splitlines()
    depths = {line.split()[-1]: len(line) - len(line.lstrip()) for line in lines if "%" in line}
    tree = json.loads(Path("t.json").read_text())
    assert [child["name"] for child in tree["children"]] == ["parse", "pipeline", "print"]
    passes = tree["children"][1]["children"]
    assert [child["name"] for child in passes] == ["canonicalize", "decompose"]
    assert all([inner["name"] for inner in child["children"]] == ["verify"] for child in passes)
    assert {"total", "parse", "canonicalize", "verify"} <= depths.keys()
    assert tree["seconds"] == pytest.approx(sum(child["seconds"] for child in tree["children"]))
    for parent in (tree, *tree["children"], *passes):
        assert sum(child["seconds"] for child in parent["children"]) <= parent["seconds"] * (1 + 1e-9)


def test_reproducers_hold_the_pipeline() -> None:
    first = tilewright("opt", "gelu.mlir", "-p", "decompose,fuse{effort=3},schedule", "--crash-reproducer", "r.mlir")
    assert first.code == 1
    lines = Path("r.mlir").read_text().splitlines()
    command = next(line for line in lines if "tilewright opt" in line).removeprefix("//").strip()
    assert "'fuse{effort=3},schedule'" in command
    again = tilewright(*shlex.split(command)[1:])
    assert again.code == 1 and again.err == first.err
    assert tilewright("opt", "gelu.mlir", "--crash-reproducer", "none.mlir").code == 0
    assert not Path("none.mlir").exists()


def test_a_crash_in_opt_is_reproduced_by_opt(monkeypatch: pytest.MonkeyPatch) -> None:
    from tilewright.lowering.decompose import DecomposePass

    def broken(*_: object) -> None:
        raise RuntimeError("broken on purpose")

    monkeypatch.setattr(DecomposePass, "apply", broken)
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,decompose,canonicalize")
    assert done.code == 3 and "a reproducer is in" in done.err
    (file,) = Path().glob("tilewright-crash-*.mlir")
    command = next(line for line in file.read_text().splitlines() if "-p decompose,canonicalize" in line)
    assert tilewright(*shlex.split(command.removeprefix("//"))[1:]).code == 3


# --- other packages -------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("plugin")
def test_a_pass_of_another_package_is_found_by_its_entry_point() -> None:
    done = tilewright("opt", "gelu.mlir", "-p", "canonicalize,fast-gelu")
    assert done.code == 0 and 'approximate = "tanh"' in done.out, done.err
    assert "fast-gelu" in tilewright("passes").out
    done = tilewright("compile", "gelu.mlir", "-p", "fast-gelu{strict}", "--target", "unified")
    assert done.code == 1 and "option 'strict' of pass 'fast-gelu' is true or false, got nothing" in done.err
    done = tilewright("opt", "gelu.mlir", "-p", "fast-gelo")
    assert "did you mean 'fast-gelu'?" in done.err
    done = tilewright("opt", "gelu.mlir", "-p", 'decompose,fast-gelu{strict=true approximate="none"}')
    assert done.code == 1 and "no 'graph.gelu' to approximate" in done.err


def test_without_the_package_its_pass_is_unknown() -> None:
    assert "fast-gelu" not in plugin_passes()
    assert tilewright("opt", "gelu.mlir", "-p", "fast-gelu").code == 1


def test_a_broken_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    info = tmp_path / "site" / "broken-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[xdsl.universe]\nbroken = nowhere_to_be_found:UNIVERSE\n")
    monkeypatch.syspath_prepend(tmp_path / "site")
    done = tilewright("opt", "gelu.mlir", "-p", "someones-pass")
    assert done.code == 1 and "entry point 'xdsl.universe' cannot be loaded" in done.err
    assert "nowhere_to_be_found" in done.err
    assert tilewright("compile", "gelu.mlir", "--to", "graph").code == 0


def test_dialects_of_other_packages_are_read() -> None:
    Path("arith.mlir").write_text(
        "func.func @f(%a: i32) -> i32 {\n  %b = arith.addi %a, %a : i32\n  return %b : i32\n}\n"
    )
    done = tilewright("opt", "arith.mlir")
    assert done.code == 0 and "arith.addi" in done.out, done.err
    Path("new.mlir").write_text('"new.op"() : () -> ()\n')
    assert tilewright("opt", "new.mlir").code == 1
    assert tilewright("opt", "new.mlir", "--allow-unregistered-dialect").out == '"new.op"() : () -> ()\n'


@pytest.mark.slow
def test_xdsl_opt_loads_our_dialects() -> None:
    assert "tilewright" in {entry.name for entry in entry_points(group="xdsl.universe")}
    Path("g.mlir").write_text(tilewright("compile", "gelu.mlir", "--target", "unified", "--generic").out)
    command = [sys.executable, "-m", "xdsl.tools.xdsl_opt", "g.mlir", "--print-op-generic"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert '"hardware.program"' in done.stdout
    Path("again.mlir").write_text(done.stdout)
    assert tilewright("run", "again.mlir", "--random", "0").code == 0
