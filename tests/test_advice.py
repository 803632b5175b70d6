"""Advice: each mistake in a program that makes it, and silence where it is not made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_runner import tilewright as cli
from machine_programs import lines, local, loop, program, row_pipeline, signal, view, wait
from test_machine_time import on_chip

import tilewright
from tilewright.advice import HALF, Advice, advice
from tilewright.profiling import Profile

EXAMPLES = Path(__file__).parent.parent / "examples"


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


def test_an_intermediate_off_chip() -> None:
    found = of(CHAIN, unfused=True)
    (first, second) = (one for one in found if one.rule == "intermediate off chip")
    assert "%m (128 KiB)" in first.evidence and "between main_0 and main_1: 256 KiB moved" in first.evidence
    assert first.saving == second.saving == (256 << 10) // 100
    assert "intermediate off chip" not in rules(of(CHAIN))


def test_tiny_kernels() -> None:
    (one,) = (one for one in of(SMALL, unfused=True) if one.rule == "tiny kernels")
    assert "3 kernels (main_0 to main_2)" in one.evidence and one.saving == 2 * 2000
    assert "tiny kernels" not in rules(of(SMALL))
    assert "tiny kernels" not in rules(of(CHAIN, unfused=True))


def test_a_transpose_of_its_own() -> None:
    (one,) = (one for one in of(TURNED, unfused=True) if one.rule == "a layout kernel")
    assert "'graph.transpose'" in one.evidence and one.place.endswith(":2:8")
    assert "a layout kernel" not in rules(of(TURNED))


def test_runs_shorter_than_granules() -> None:
    """Two of 64 columns: runs of 4 bytes, granules of 32."""
    found = [one for one in of(SLICED) if one.rule == "strided off-chip access"]
    assert "of 'x' in main_0 moves 256 KiB for 32 KiB" in found[0].evidence
    assert found[0].saving == (256 - 32) * 1024 // 100
    whole = SLICED.replace("8192x2x", "8192x64x").replace("8192, 2>", "8192, 64>")
    assert "strided off-chip access" not in rules(of(whole))


def test_idle_lanes() -> None:
    found = of(on_chip(30, 40, "1, 8"))
    assert rules(found) == {"idle vector lanes"}
    assert "runs 1200 times on 8 elements; starting up is 12 of 13 cycles" in found[0].evidence
    assert found[0].saving == 12 * 1199
    wide = on_chip(30, 40).replace("2x64x", "64x64x").replace("[2, 256]", "[64, 256]").replace("(2, 64)", "(64, 64)")
    assert of(wide) == []


def test_needless_events() -> None:
    """The load of a tile waits until the tile before it is stored: ordered, and slow."""
    good = row_pipeline(tiles=40)
    slow = good.replace(
        signal("mte3", "vector"), lines(signal("mte3", "vector"), signal("mte3", "mte2"), wait("mte3", "mte2"))
    )
    (one,) = of(slow)
    assert one.rule == "needless synchronisation" and "event 0 from 'mte3' to 'mte2' in k" in one.evidence
    cycles = [Profile.of(tilewright.compile(tilewright.load(text))).result.cycles for text in (slow, good)]
    assert one.saving == cycles[0] - cycles[1] > 0
    assert "needless synchronisation" not in rules(of(good))


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
