"""Engines that overlap: simulated cycles of attention, fused and unfused, side by side from one run.

    python benchmarks/overlap.py [--lengths 128,512,2048] [--targets davinci,unified] [--large] [--launches]

One core, objective = time, 12 heads of 64, f16, the scores scaled and a mask of length × length added. For every length
and target: the whole program with one kernel per named operation, fused without stages that run ahead, fused as the
compiler does it; the last column is unfused ÷ fused. `--large` prints the large programs of one davinci core instead:
for each engine the cycles that it is busy, which no order of the work can undercut, and the same of the off-chip port.
`--launches` prints programs of several kernels instead, one for each named operation: cycles when each launch waits for
the one before, and when first loads come early (`sync{early=true}`).
Nothing is executed. Exits with 1 if a figure misses its goal.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from tilewright.dialects.cost import port_rate
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.hardware import DmaOp
from tilewright.dialects.schedule import Schedule
from tilewright.lowering.pipeline import PIPELINE

import tilewright
from tilewright import Program

LENGTHS = (128, 512, 2048, 8192, 16384)
GOALS = {("davinci", 512): 2.03, ("unified", 512): 1.0}
"""Unfused ÷ fused, at least."""


def attention(heads: int, length: int, width: int, masked: bool) -> str:
    """softmax(q·kᵀ·scale + mask)·v as text."""
    kind = f"tensor<{heads}x{length}x{width}xf16>"
    mask = f", %mask: tensor<{length}x{length}xf16>" if masked else ""
    add = "  %u = graph.add %t, %mask\n" if masked else ""
    return (
        f"func.func @attention(%q: {kind}, %k: {kind}, %v: {kind}{mask}) -> {kind} {{\n"
        f"  %scale = graph.constant dense<{width**-0.5}> : tensor<f16>\n"
        "  %s = graph.matmul %q, %k {transpose_b}\n"
        "  %t = graph.mul %s, %scale\n"
        f"{add}"
        f"  %p = graph.softmax {'%u' if masked else '%t'} {{axis = -1 : i64}}\n"
        "  %o = graph.matmul %p, %v\n"
        f"  func.return %o : {kind}\n}}"
    )


PRODUCT = """func.func @product(%a: tensor<4096x4096xf16>, %b: tensor<4096x4096xf16>) -> tensor<4096x4096xf16> {
  %c = graph.matmul %a, %b
  func.return %c : tensor<4096x4096xf16>
}"""
NORM = """func.func @norm(%x: tensor<8192x1024xf16>, %w: tensor<1024xf16>, %b: tensor<1024xf16>)
    -> tensor<8192x1024xf16> {
  %y = graph.layer_norm %x, %w, %b {axis = -1 : i64, epsilon = 1.0e-5 : f32}
  func.return %y : tensor<8192x1024xf16>
}"""
LARGE = {
    "matmul 4096 × 4096 × 4096": (PRODUCT, 18_600_000),
    "layer norm 8192 × 1024": (NORM, 1_350_000),
    "scaled attention 32 × 4096 × 128": (attention(32, 4096, 128, masked=False), 48_000_000),
}
"""Programs, and the most cycles that they may take."""


PROJECTIONS = """func.func @project(%x: tensor<64x256xf16>, %q: tensor<256x256xf16>, %k: tensor<256x256xf16>,
                   %v: tensor<256x256xf16>)
    -> (tensor<64x256xf16>, tensor<64x256xf16>, tensor<64x256xf16>) {
  %a = graph.matmul %x, %q
  %b = graph.matmul %x, %k
  %c = graph.matmul %x, %v
  func.return %a, %b, %c : tensor<64x256xf16>, tensor<64x256xf16>, tensor<64x256xf16>
}"""
SEPARABLE = """func.func @separable(%x: tensor<1x64x56x56xf16>, %d: tensor<64x1x3x3xf16>, %p: tensor<128x64x1x1xf16>,
                     %e: tensor<128x1x3x3xf16>, %q: tensor<128x128x1x1xf16>) -> tensor<1x128x56x56xf16> {
  %a = graph.conv %x, %d {pads = array<i64: 1, 1, 1, 1>, groups = 64 : i64}
  %b = graph.relu %a
  %c = graph.conv %b, %p
  %f = graph.relu %c
  %g = graph.conv %f, %e {pads = array<i64: 1, 1, 1, 1>, groups = 128 : i64}
  %h = graph.relu %g
  %i = graph.conv %h, %q
  %y = graph.relu %i
  func.return %y : tensor<1x128x56x56xf16>
}"""
CHAINS = {
    "scaled attention 12 × 128": attention(12, 128, 64, masked=True),
    "q, k, v of 64 × 256": PROJECTIONS,
    "separable convolutions": SEPARABLE,
}
"""Programs of several kernels."""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", default=",".join(map(str, LENGTHS)))
    parser.add_argument("--targets", default="davinci,unified")
    parser.add_argument("--large", action="store_true", help="the large programs on davinci instead")
    parser.add_argument("--launches", action="store_true", help="programs of several kernels instead")
    options = parser.parse_args(arguments)
    met = True
    if options.launches:
        print(f"{'program':<26}{'target':<10}{'kernels':>8}{'early':>7}{'in turns':>12}{'overlapped':>12}{'ratio':>8}")
        for name, text in CHAINS.items():
            for target in options.targets.split(","):
                launches(name, text, target)
        return 0
    if options.large:
        for name, (text, goal) in LARGE.items():
            met &= large(name, text, goal)
        return 0 if met else 1
    print(f"{'target':<10}{'length':>7}{'unfused':>14}{'in turns':>14}{'fused':>14}{'skew':>16}{'ratio':>8}  goal")
    for target in options.targets.split(","):
        for length in map(int, options.lengths.split(",")):
            met &= row(target, length)
    return 0 if met else 1


def row(target: str, length: int) -> bool:
    """One line of the table; whether the ratio is what is wanted."""
    text = attention(12, length, 64, masked=True)
    unfused = tilewright.compile(text, target=target, unfused=True).analyze().cycles
    pipeline = ",".join(PIPELINE).replace("schedule", "schedule{skew=false}")
    turns = tilewright.compile(text, target=target, pipeline=pipeline).analyze().cycles
    program = tilewright.compile(text, target=target)
    fused = program.analyze().cycles
    goal = GOALS.get((target, length))
    ratio = unfused / fused
    wanted = f"≥ {goal}: {'ok' if ratio >= goal else 'MISSED'}" if goal is not None else ""
    print(
        f"{target:<10}{length:>7}{unfused:>14,}{turns:>14,}{fused:>14,}{skews(program):>16}{ratio:>8.2f}  {wanted}",
        flush=True,
    )
    return goal is None or ratio >= goal


def skews(program: Program) -> str:
    """The skew of every kernel, "-" where engines take turns."""
    groups = [op for op in program.snapshot("graph").module.walk() if isinstance(op, FusedOp)]
    found = [Schedule.from_attr(op.schedule).skew for op in groups if op.schedule is not None]
    return " | ".join(",".join(map(str, skew)) or "-" for skew in found)


def launches(name: str, text: str, target: str) -> None:
    """One line: cycles without and with early loads."""
    passes = ",".join(PIPELINE).replace("fuse", "fuse{unfused=true}")
    turns = tilewright.compile(text, target=target, pipeline=passes).analyze()
    program = tilewright.compile(text, target=target, pipeline=passes.replace("sync", "sync{early=true}"))
    marked = sum(isinstance(op, DmaOp) and op.early is not None for op in program.snapshot("hardware").module.walk())
    cycles = program.analyze().cycles
    print(
        f"{name:<26}{target:<10}{len(turns.kernels):>8}{marked:>7}{turns.cycles:>12,}{cycles:>12,}"
        f"{turns.cycles / cycles:>8.3f}",
        flush=True,
    )


def large(name: str, text: str, goal: int) -> bool:
    """One large program: cycles, and how busy each engine and the port is."""
    program = tilewright.compile(text, target="davinci")
    result, target = program.analyze(), program.target
    groups = [op for op in program.snapshot("graph").module.walk() if isinstance(op, FusedOp)]
    met = result.cycles <= goal
    print(f"{name}: {result.cycles:,} cycles, wanted ≤ {goal:,}: {'ok' if met else 'MISSED'}")
    for schedule in (Schedule.from_attr(op.schedule) for op in groups if op.schedule is not None):
        tiles = " ".join(f"{axis}={tile}" for axis, tile in zip(schedule.axes, schedule.tiles, strict=True))
        print(f"  {schedule.strategy}, {tiles}, order '{schedule.order}', skew {schedule.skew}")
    moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in result.kernels)
    busy = {**result.engine_busy, f"port ({moved / 1e6:,.0f} MB)": round(moved / port_rate(target))}
    for engine, cycles in sorted(busy.items(), key=lambda pair: -pair[1]):
        print(f"  {engine:<16}{cycles:>14,}{cycles / result.cycles:>8.1%}", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
