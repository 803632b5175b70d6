"""Off-chip bytes against the best that published mappers find, on the same idealised machine.

    python benchmarks/mapping.py [NAME…] [--analyze]

Target `unified`: one buffer of C bytes for everything, tiles of multiples of 16, no granules, one core,
objective = traffic. *optimum*: exhaustive search over tiles, loop orders and the loop level at which each operand is
held, f32 partial sums on chip (it agrees to the byte with accelforge's optimal mapper); *pinned*: also with a fraction
of one operand kept on chip. For attention *optimum* is the count of the q-stationary online form, for the MLP the
better of one kernel and two. These are published or hand-computed figures, in MB = 10⁶ bytes, to the digits that stand
there.

Every program is executed on random inputs and its results are checked against float64; with `--analyze` its bytes are
those of the simulation, which needs no data. The last rows are cycles: objective = time, 1024 B per cycle. Exits
with 1 if a figure misses its goal.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from decimal import Decimal

from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.target import target_of
from tilewright.lowering.group_build import read_group
from tilewright.lowering.search import Objective, Search

import tilewright
from tilewright import Program
from tilewright.tolerance import default_tolerance


def matmul(m: int, n: int, k: int) -> str:
    return f"""func.func @main(%a: tensor<{m}x{k}xf16>, %b: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
      %c = graph.matmul %a, %b
      func.return %c : tensor<{m}x{n}xf16>
    }}"""


def attention(heads: int, length: int, width: int) -> str:
    kind = f"tensor<{heads}x{length}x{width}xf16>"
    return f"""func.func @main(%q: {kind}, %k: {kind}, %v: {kind}) -> {kind} {{
      %s = graph.matmul %q, %k {{transpose_b}}
      %p = graph.softmax %s {{axis = -1 : i64}}
      %o = graph.matmul %p, %v
      func.return %o : {kind}
    }}"""


def mlp(tokens: int, width: int, hidden: int) -> str:
    x, u, v = (f"tensor<{a}x{b}xf16>" for a, b in ((tokens, width), (width, hidden), (hidden, width)))
    return f"""func.func @main(%x: {x}, %u: {u}, %v: {v}) -> {x} {{
      %h = graph.matmul %x, %u
      %g = graph.relu %h
      %y = graph.matmul %g, %v
      func.return %y : {x}
    }}"""


CONV = """func.func @main(%x: tensor<1x64x56x56xf16>, %w: tensor<64x64x3x3xf16>) -> tensor<1x64x56x56xf16> {
      %y = graph.conv %x, %w {pads = [1, 1, 1, 1]}
      func.return %y : tensor<1x64x56x56xf16>
    }"""


@dataclass(frozen=True)
class Row:
    """One program in a buffer of `buffer`; its bytes in MB, or its cycles, may be at most the optimum and `pinned`."""

    name: str
    text: str
    buffer: str
    optimum: str
    pinned: str = ""
    unit: str = "MB"

    @property
    def target(self) -> str:
        rate = " memory.gm.core_rate=1024 memory.gm.pool_rate=1024" if self.unit == "cycles" else ""
        return f"unified{{memory.scratchpad.bytes={self.buffer}{rate}}}"

    @property
    def objective(self) -> Objective:
        return "time" if self.unit == "cycles" else "traffic"


ROWS = (
    Row("matmul 512x512x512", matmul(512, 512, 512), "64KiB", "5.24", "5.24"),
    Row("matmul 512x512x512", matmul(512, 512, 512), "192KiB", "2.62", "2.62"),
    Row("matmul 1024x1024x1024", matmul(1024, 1024, 1024), "1MiB", "10.49", "9.90"),
    Row("matmul 4096x4096x4096", matmul(4096, 4096, 4096), "1MiB", "604", "600"),
    Row("matmul 4096x4096x4096", matmul(4096, 4096, 4096), "24MiB", "134", "126"),
    Row("matmul 1x4096x4096", matmul(1, 4096, 4096), "1MiB", "33.57"),
    Row("attention 12x512x64", attention(12, 512, 64), "192KiB", "3.15"),
    Row("attention 12x4096x64", attention(12, 4096, 64), "192KiB", "138.4"),
    Row("attention 12x4096x64", attention(12, 4096, 64), "1MiB", "37.7"),
    Row("MLP 512x768x3072", mlp(512, 768, 3072), "1MiB", "20.4"),
    Row("MLP 512x768x3072", mlp(512, 768, 3072), "4MiB", "11.0"),
    Row("conv 3x3 64->64 56x56", CONV, "64KiB", "1.56"),
    Row("matmul 512x512x512", matmul(512, 512, 512), "192KiB", "32929", unit="cycles"),
    Row("matmul 1024x1024x1024", matmul(1024, 1024, 1024), "192KiB", "262313", unit="cycles"),
)


def measure(row: Row, execute: bool) -> bool:
    """Prints one line; whether the goals are met."""
    start = time.process_time()
    program = tilewright.compile(tilewright.load(row.text), row.target, objective=row.objective)
    compiled, wrong = time.process_time() - start, ""
    if execute:
        run = program.run(seed=0)
        moved, cycles = run.traffic.total_bytes, run.cycles
        error = max((error for error in run.errors().values() if error is not None), default=0.0)
        wrong = "" if error <= default_tolerance(program.source.op) else f"; WRONG RESULT: error {error:.2e}"
    else:
        analysis = program.analyze()
        moved, cycles = sum(kernel.read_bytes + kernel.write_bytes for kernel in analysis.kernels), analysis.cycles
    figure = Decimal(cycles) if row.unit == "cycles" else Decimal(moved) / 10**6
    ratios = [figure.quantize(Decimal(goal)) / Decimal(goal) for goal in (row.optimum, row.pinned) if goal]
    searched, proved = search_time(program, row.objective)
    good = max(ratios) <= 1 and not wrong
    print(
        f"{'ok  ' if good else 'MISS'} {row.name:<22} {row.buffer:>6} {figure:>12.6f} {row.unit:<6} "
        f"{ratios[0]:.3f} x {row.optimum:<6} {f'{ratios[1]:.3f} x {row.pinned}' if row.pinned else '':<13} "
        f"{cycles:>10} cycles; search {searched:.2f} s{' (proved)' if proved else ''}, compiled in {compiled:.1f} s"
        f"{wrong}",
        flush=True,
    )
    return good


def search_time(program: Program, objective: Objective) -> tuple[float, bool]:
    """Seconds of processor time that the searches of all groups take, and whether all are proved."""
    module = program.snapshot(after="fuse").module
    start, proved = time.process_time(), True
    for fused in [op for op in module.walk() if isinstance(op, FusedOp)]:
        search = Search(read_group(fused.body.block), target_of(fused), objective, 400)
        search.run()
        proved &= search.proved
    return time.process_time() - start, proved


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="rows whose name and buffer contain one of these; all by default")
    parser.add_argument("--analyze", action="store_true", help="count bytes without executing")
    options = parser.parse_args()
    rows = [r for r in ROWS if not options.names or any(name in f"{r.name} {r.buffer}" for name in options.names)]
    met = [measure(row, not options.analyze) for row in rows]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
