"""Off-chip bytes against the unfused program and against the compulsory bytes, and
the time to read a file of 10,000 operations in generic form against xDSL's own parser.

    python benchmarks/bytes.py

One core, objective = traffic. Every program is executed on random inputs and its results are checked against float64,
so that no figure comes from a program that is wrong. Exits with 1 if a figure misses its goal.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import Literal

from parse import best, our_context, rich_text, xdsl_context
from tilewright.ir.source import parse_module
from xdsl.parser import Parser

import tilewright
from tilewright import Program, Run
from tilewright.tolerance import default_tolerance

UNARY_PAIR = """
func.func @unary_pair(%x: tensor<4096x1024xf16>) -> tensor<4096x1024xf16> {
  %a = graph.tanh %x
  %y = graph.exp %a
  func.return %y : tensor<4096x1024xf16>
}
"""
RESIDUAL_LAYERNORM_GELU = """
func.func @residual_layernorm_gelu(%x: tensor<4096x1024xf16>, %residual: tensor<4096x1024xf16>,
    %scale: tensor<1024xf16>, %bias: tensor<1024xf16>) -> tensor<4096x1024xf16> {
  %sum = graph.add %x, %residual
  %norm = graph.layer_norm %sum, %scale, %bias {axis = -1 : i64, epsilon = 1.0e-5 : f32}
  %y = graph.gelu %norm
  func.return %y : tensor<4096x1024xf16>
}
"""
CONV_BIAS_RELU = """
func.func @conv_bias_relu(%x: tensor<1x64x56x56xf16>, %w: tensor<64x64x3x3xf16>, %bias: tensor<64xf16>)
    -> tensor<1x64x56x56xf16> {
  %c = graph.conv %x, %w, %bias {pads = array<i64: 1, 1, 1, 1>}
  %y = graph.relu %c
  func.return %y : tensor<1x64x56x56xf16>
}
"""
ATTENTION = """
func.func @attention(%q: tensor<12x512x64xf16>, %k: tensor<12x512x64xf16>, %v: tensor<12x512x64xf16>)
    -> tensor<12x512x64xf16> {
  %scale = graph.constant dense<0.125> : tensor<f16>
  %s = graph.matmul %q, %k {transpose_b}
  %t = graph.mul %s, %scale
  %p = graph.softmax %t {axis = -1 : i64}
  %o = graph.matmul %p, %v
  func.return %o : tensor<12x512x64xf16>
}
"""
SMALL_UNIFIED = "unified{memory.scratchpad.bytes=192KiB}"


@dataclass(frozen=True)
class Figure:
    """One program on one target; its bytes may be at most `goal` times the unfused or compulsory ones."""

    name: str
    text: str
    target: str
    against: Literal["unfused", "compulsory"]
    goal: float
    kernels: int | None = None


FIGURES = (
    Figure("pair of unary ops", UNARY_PAIR, "davinci", "unfused", 0.5),
    Figure("residual + LayerNorm + GELU 4096x1024", RESIDUAL_LAYERNORM_GELU, "davinci", "compulsory", 1.02),
    Figure("conv 3x3 + bias + ReLU 64->64 56x56", CONV_BIAS_RELU, "davinci", "compulsory", 1.05),
    Figure("attention 12x512x64", ATTENTION, "davinci", "compulsory", 1.02, kernels=1),
    Figure("attention 12x512x64", ATTENTION, SMALL_UNIFIED, "compulsory", 1.02, kernels=1),
)


def measure(figure: Figure) -> bool:
    """Prints one line; whether the goal is met."""
    start = time.perf_counter()
    program = tilewright.compile(tilewright.load(figure.text), figure.target, objective="traffic")
    compiled = time.perf_counter() - start
    run = program.run(seed=0)
    total = run.traffic.total_bytes
    ratio = total / _yardstick(program, figure)
    wrong = _wrong(program, run)
    kernels = len(run.kernels)
    good = ratio <= figure.goal and not wrong and figure.kernels in (None, kernels)
    print(
        f"{'ok ' if good else 'MISS'} {figure.name:<40} {figure.target.split('{')[0]:<8} {total:>10} B "
        f"{ratio:.4f} x {figure.against:<10} (goal {figure.goal}) {kernels} kernel(s), {run.cycles} cycles, "
        f"compiled in {compiled:.1f} s{wrong}"
    )
    return good


def _yardstick(program: Program, figure: Figure) -> int:
    if figure.against == "unfused":
        unfused = program.unfused
        assert unfused is not None
        return unfused.read_bytes + unfused.write_bytes
    compulsory = program.compulsory
    assert compulsory is not None
    return sum(compulsory)


def _wrong(program: Program, run: Run) -> str:
    """What is wrong with the results, if anything."""
    error = max((e for e in run.errors().values() if e is not None), default=0.0)
    return "" if error <= default_tolerance(program.source.op) else f"; WRONG RESULT: error {error:.2e}"


def measure_reading(operations: int = 10_000, goal: float = 1.5) -> bool:
    """Prints one line; whether reading is fast enough on the richest of the texts of `parse.py`."""
    text = rich_text(operations)
    ours, theirs = best(
        lambda: parse_module(text, context=our_context()), lambda: Parser(xdsl_context(), text).parse_module()
    )
    good = ours / theirs <= goal
    print(
        f"{'ok ' if good else 'MISS'} {f'reading {operations} operations':<40} {len(text):>19} B "
        f"{ours / theirs:.4f} x xDSL's time (goal {goal}), {ours:.2f} s"
    )
    return good


def main() -> int:
    """All figures; 1 if one misses its goal."""
    met = [*(measure(figure) for figure in FIGURES), measure_reading()]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
