"""Advice: each mistake in a program that makes it, and silence where it is not made."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from cli_runner import tilewright as cli
from machine_programs import both, layout, lines, local, loop, program, row_pipeline, signal, view, wait
from test_machine_time import on_chip

import tilewright
from tilewright.advice import HALF, Advice, advice
from tilewright.profiling import Profile

EXAMPLES = Path(__file__).parent.parent / "examples"


ROWS = row_pipeline(tiles=40)
LATENCY = 1400


def of(text: str, **options: bool) -> list[Advice]:
    return advice(Profile.of(tilewright.compile(tilewright.load(text), **options)))


def rules(found: list[Advice]) -> set[str]:
    return {one.rule for one in found}


CHAIN = """func.func @main(%x: tensor<256x256xf16>, %w: tensor<256x256xf16>) -> tensor<256x256xf16> {
  %m = graph.matmul %x, %w
  %a = graph.tanh %m
  %y = graph.exp %a
  func.return %y : tensor<256x256xf16>
}
"""
TURNED = """func.func @main(%x: tensor<512x256xf16>, %w: tensor<512x256xf16>) -> tensor<512x512xf16> {
  %t = graph.transpose %w {permutation = array<i64: 1, 0>}
  %y = graph.matmul %x, %t
  func.return %y : tensor<512x512xf16>
}
"""
SLICED = """func.func @main(%x: tensor<8192x64xf16>) -> tensor<8192x2xf16> {
  %s = graph.slice %x {starts = array<i64: 0, 0>, sizes = array<i64: 8192, 2>}
  %y = graph.exp %s
  func.return %y : tensor<8192x2xf16>
}
"""
SMALL = """func.func @main(%x: tensor<16x64xf16>) -> tensor<16x64xf16> {
  %a = graph.tanh %x
  %b = graph.exp %a
  %y = graph.neg %b
  func.return %y : tensor<16x64xf16>
}
"""


def cycles(text: str) -> int:
    return Profile.of(tilewright.compile(tilewright.load(text))).result.cycles


def test_an_intermediate_off_chip() -> None:
    found = of(CHAIN, unfused=True)
    (first, second) = (one for one in found if one.rule == "intermediate off chip")
    assert "'m' (128 KiB)" in first.evidence and "between main_0 and main_1: 256 KiB moved" in first.evidence
    # All of the port's time is saved at most: nothing else gets faster.
    for one in (first, second):
        assert 0 < one.saving <= (256 << 10) // 100 + 2 * LATENCY
    assert "intermediate off chip" not in rules(of(CHAIN))


def test_an_intermediate_that_no_memory_holds() -> None:
    large = CHAIN.replace("256x256", "2048x2048")
    assert "intermediate off chip" not in rules(of(large, unfused=True))


def test_tiny_kernels() -> None:
    (one,) = (one for one in of(SMALL, unfused=True) if one.rule == "tiny kernels")
    assert "3 kernels (main_0 to main_2)" in one.evidence and one.saving == 2 * 2000
    assert "tiny kernels" not in rules(of(SMALL))
    assert "tiny kernels" not in rules(of(CHAIN, unfused=True))


def test_a_transpose_of_its_own() -> None:
    (one,) = (one for one in of(TURNED, unfused=True) if one.rule == "a layout kernel")
    assert "'graph.transpose'" in one.evidence and one.place.endswith(":2:8")
    assert "a layout kernel" not in rules(of(TURNED))


def test_a_kernel_by_hand_that_only_copies() -> None:
    """Of hardware instructions: in, and out again."""
    body = lines(
        local("in", 0, (2, 64), "f32", "ub"),
        loop(
            "i",
            40,
            lines(
                view("s", "x0", (2, 64), "f32", "gm", offset="d0 * 512", counters=("i",)),
                view("a", "in", (2, 64), "f32", "ub"),
                view("t", "y0", (2, 64), "f32", "gm", offset="d0 * 512", counters=("i",)),
                'hardware.dma %s, %a {engine = "mte2", fresh}',
                both("mte2", "mte3"),
                'hardware.dma %a, %t {engine = "mte3"}',
                both("mte3", "mte2", 1),
            ),
        ),
    )
    found = of(program(body, [((80, 64), "f32")], [((80, 64), "f32")]))
    (one,) = (one for one in found if one.rule == "a layout kernel")
    assert "k does nothing but 'dma gm->ub'" in one.evidence
    assert "a layout kernel" not in rules(of(ROWS))


def test_runs_shorter_than_granules() -> None:
    """Two of 64 columns: runs of 4 bytes, granules of 32."""
    found = [one for one in of(SLICED) if one.rule == "strided off-chip access"]
    assert "of 'x' in main_0 moves 256 KiB for 32 KiB" in found[0].evidence
    assert 0 < found[0].saving <= (256 - 32) * 1024 // 100
    whole = SLICED.replace("8192x2x", "8192x64x").replace("8192, 2>", "8192, 64>")
    assert "strided off-chip access" not in rules(of(whole))


def rows_of_five(stride: int) -> str:
    """Loads of 1024 rows of five f32, which begin every `stride` bytes."""
    inside = lines(
        view("s", "x0", (1024, 5), "f32", "gm", layout([1024, stride], [5, 4]), "d0 * 65536", ("i",)),
        view("a", "in", (1024, 5), "f32", "ub"),
        'hardware.dma %s, %a {engine = "mte2", fresh}',
        both("mte2", "vector"),
        'hardware.vector %a, %a {fn = "exp", engine = "vector"}',
        both("vector", "mte2", 1),
    )
    return program(lines(local("in", 0, (1024, 5), "f32", "ub"), loop("i", 25, inside)), [((25600, 16), "f32")], [])


def test_the_saving_of_granules_is_that_of_whole_runs() -> None:
    """Rows of 20 bytes are 32 on the bus; where they follow one another they are 20."""
    strided, whole = rows_of_five(64), rows_of_five(20)
    (one,) = (one for one in of(strided) if one.rule == "strided off-chip access")
    assert "moves 800 KiB for 500 KiB" in one.evidence
    assert one.saving == cycles(strided) - cycles(whole) > 0
    assert "strided off-chip access" not in rules(of(whole))


def test_idle_lanes() -> None:
    found = of(on_chip(30, 40, "1, 8"))
    assert rules(found) == {"idle vector lanes"}
    assert "runs 1200 times on 8 elements; starting up is 12 of 13 cycles" in found[0].evidence
    assert found[0].saving == 12 * 1200
    wide = on_chip(30, 40).replace("2x64x", "64x64x").replace("[2, 256]", "[64, 256]").replace("(2, 64)", "(64, 64)")
    assert of(wide) == []


TILES = """func.func @main(%x: tensor<256x256xf32>) -> tensor<256x256xf32> {
  %y = graph.exp %x
  func.return %y : tensor<256x256xf32>
}
"""


@pytest.mark.parametrize(("tiles", "loops"), [("1, 16", "ab"), ("8, 256", "a"), ("chosen", "")])
def test_tiles_by_hand(tiles: str, loops: str) -> None:
    """A file at the tile level: tiles of 16 columns of a row, of 8 whole rows, and those that the search chooses."""
    text = tilewright.compile(TILES, to="schedule").ir()
    by_hand = f'tiles = array<i64: {tiles}>, order = "{loops}", strategy = "resident", hold = ["{loops}"]'
    changed = text if not loops else re.sub(r"tiles = .* hold = \[.*?\]", by_hand, text)
    found = of(tilewright.compile(tilewright.load(changed), to="tile").ir())
    small = [one for one in found if one.rule == "tiles that leave memory unused"]
    assert len(small) == (tiles != "chosen")
    for one in small:
        assert one.place.startswith("<text>:") and "B of 248 KiB in ub" in one.evidence
        assert one.change.startswith("take tiles twice as large along %")
    assert found or tiles == "chosen"


def test_the_saving_of_larger_tiles() -> None:
    """As if the file had been written with them: half the loads, each of twice the rows."""
    small, large = (of_rows(rows) for rows in (25, 50))
    (one,) = (one for one in of(small) if one.rule == "tiles that leave memory unused")
    assert one.saving == cycles(small) - cycles(large) > 0


def read_again(passes: int, rows: int = 2) -> str:
    """Every pass over x loads its tiles of `rows` rows again."""
    inside = lines(
        view("s", "x0", (rows, 64), "f32", "gm", offset=f"d0 * {rows * 256}", counters=("i",)),
        view("a", "in", (rows, 64), "f32", "ub"),
        'hardware.dma %s, %a {engine = "mte2", fresh}',
        both("mte2", "vector"),
        'hardware.vector %a, %a {fn = "exp", engine = "vector"}',
        both("vector", "mte2", 1),
    )
    whole = 1000
    body = lines(local("in", 0, (rows, 64), "f32", "ub"), loop("j", passes, loop("i", whole // rows, inside)))
    return program(body, [((whole, 64), "f32")], [])


def of_rows(rows: int) -> str:
    return read_again(1, rows)


def test_tiles_that_leave_memory_unused() -> None:
    """x is loaded in each of eight passes."""
    (one,) = (one for one in of(read_again(8, 50)) if one.rule == "tiles that leave memory unused")
    assert "12.5 KiB of 248 KiB in ub" in one.evidence
    # A tile of more than half of the memory: there is no larger one.
    assert "tiles that leave memory unused" not in rules(of(read_again(8, 500)))


def slotted(rows: int, slots: int) -> str:
    """Tiles of `rows` rows come in, and are computed on while the next ones do, where there are several slots."""
    offset = f"(d0 mod {slots}) * {rows * 256}"
    inside = lines(
        view("s", "x0", (rows, 64), "f32", "gm", offset=f"d0 * {rows * 256}", counters=("i",)),
        view("a", "in", (rows, 64), "f32", "ub", offset=offset, counters=("i",)),
        wait("vector", "mte2"),
        'hardware.dma %s, %a {engine = "mte2", fresh}',
        both("mte2", "vector"),
        'hardware.vector %a, %a {fn = "exp", engine = "vector"}',
        signal("vector", "mte2"),
    )
    body = lines(
        local("in", 0, (rows, 64), "f32", "ub", slots=slots),
        signal("vector", "mte2", count=slots),
        loop("i", 2000 // rows, inside),
        wait("vector", "mte2", count=slots),
    )
    return program(body, [((2000, 64), "f32")], [])


def test_too_few_slots() -> None:
    (one,) = (one for one in of(slotted(50, 1)) if one.rule == "too few slots")
    assert "'dma gm->ub' into %in of k (1 × 12.5 KiB) waits" in one.evidence
    assert "for vector to let go" in one.evidence and one.change.startswith("give it another slot: 235.5 KiB of ub")
    assert one.saving == cycles(slotted(50, 1)) - cycles(slotted(50, 2)) > 0
    assert "too few slots" not in rules(of(slotted(50, 16)))


def test_a_slot_that_does_not_fit() -> None:
    """A tile of more than half of the memory: smaller ones would have two slots. Two slots are as good as it gets."""
    (one,) = (one for one in of(slotted(500, 1)) if one.rule == "too few slots")
    assert one.change.startswith("make the tile smaller, so that another slot fits: 123 KiB of ub")
    assert of(slotted(400, 2)) == []


def test_needless_events() -> None:
    """The load of a tile waits until the tile before it is stored: ordered, and slow."""
    slow = ROWS.replace(
        signal("mte3", "vector"), lines(signal("mte3", "vector"), signal("mte3", "mte2"), wait("mte3", "mte2"))
    )
    (one,) = (one for one in of(slow) if one.rule == "needless synchronisation")
    assert "event 0 from 'mte3' to 'mte2' in k" in one.evidence
    assert one.saving == cycles(slow) - cycles(ROWS) > 0
    assert "needless synchronisation" not in rules(of(ROWS))


@pytest.mark.parametrize("element", ["f16", "f32"])
def test_sums_in_half_precision(element: str) -> None:
    shape = (64, 64)
    body = lines(
        local("p", 0, shape, element, "ub"),
        local("q", 65536, shape, element, "ub"),
        view("a", "p", shape, element, "ub"),
        view("b", "q", shape, element, "ub"),
        loop("i", 100, 'hardware.vector %a, %b, %b {fn = "add", engine = "vector"}'),
    )
    found = of(program(body, [(shape, element)], []))
    assert (HALF in rules(found)) == (element == "f16")
    if found:
        assert "adds up 100 tiles in f16" in found[-1].evidence and found[-1].saving == 0


def test_dimensions_without_a_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be compiled yet is told which dimensions are to be fixed, and which tensors have them."""
    monkeypatch.chdir(tmp_path)
    Path("any.mlir").write_text((EXAMPLES / "attention_any.mlir").read_text())
    done = cli("report", "any.mlir", "--advice", "--json", "advice.json")
    assert done.code == 0, done.err
    ((one,),) = json.loads(Path("advice.json").read_text()).values()
    assert one["rule"] == "dynamic shapes" and "'seq' has no size: 9 of 10 tensors have it (%q, %k" in one["evidence"]
    assert "--dim seq=512" in one["change"] and one["place"].endswith("any.mlir:6:8")
    fixed = cli("report", "any.mlir", "--advice", "--dim", "seq=64", "--json", "-")
    assert fixed.code == 0 and all(one["rule"] != "dynamic shapes" for one in json.loads(fixed.out)["advice"])
    assert cli("report", "any.mlir").code == 1  # everything else needs the sizes


@pytest.mark.parametrize("file", ["mlp.mlir", "softmax_rows.mlir", "gated_unit.mlir"])
def test_silence_about_good_programs(file: str) -> None:
    assert advice(Profile.of(tilewright.compile(EXAMPLES / file))) == []


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sliced.mlir").write_text(SLICED)
    done = cli("report", "sliced.mlir", "--advice", "--json", "advice.json")
    assert done.code == 0, done.err
    assert "strided off-chip access" in done.out and "What would help" in done.out
    (first, *_) = json.loads(Path("advice.json").read_text())["advice"]
    assert first["rule"] == "strided off-chip access" and first["saving"] > 0
    Path("small.mlir").write_text(SMALL)
    assert "Nothing worth changing was found." in cli("report", "small.mlir", "--advice").out
