"""Every structure of examples/structures through the compiler: kernels, strategy, off-chip bytes, error.

    python benchmarks/structures.py [NAME…] [--full]

Targets: `davinci`, and `unified` with 192 KiB and 1 MiB; one core, objective = traffic. For each structure and target:
kernels and their strategies; the bytes the emitted program moves over the compulsory ones, and over those of one kernel
for each operation (`unfused`); the multiply-adds that the machine counts (on valid extents) over those of all products
in full, less than 1 where masks leave tiles out; and, from a run at small sizes, max|err| / max|ref| against float64
beside the error of NumPy computing in f32 from the same inputs. Bytes are those of sizes that fill a machine (`LARGE`;
with `--full` twice the rows) and need no data. Exits with 1 if an error is above 2e-5 (f32 results; 1e-4 for the
covariance) or above twice NumPy's (narrower results).
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from math import prod
from pathlib import Path

import numpy as np
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.graph_primitives import ContractOp, parse_spec
from tilewright.dialects.schedule import Schedule
from tilewright.runtime.machine import profile
from tilewright.runtime.reference import evaluate

import tilewright
from tilewright import Module, Program
from tilewright.tolerance import relative_error

FOLDER = Path(__file__).parent.parent / "examples" / "structures"
TARGETS = ("davinci", "unified{memory.scratchpad.bytes=192KiB}", "unified")
LARGE = {"heads": 4, "seq": 1024, "keys": 1024, "rows": 1024, "cols": 2048, "wide": 512, "batch": 4, "groups": 8,
         "pos": 4096, "size": 56, "samples": 4096}  # fmt: skip
SMALL = {"heads": 2, "seq": 48, "keys": 80, "rows": 32, "cols": 80, "wide": 48, "batch": 2, "groups": 3, "pos": 60,
         "size": 10, "samples": 100}  # fmt: skip


@dataclass(frozen=True)
class Row:
    name: str
    target: str
    strategies: tuple[str, ...]
    compulsory: float
    unfused: float
    products: float | None
    error: float
    plain: float
    wide: bool

    @property
    def passes(self) -> bool:
        if self.wide:
            return self.error <= (1e-4 if "covariance" in self.name else 2e-5)
        return self.error <= 2 * self.plain


def load(path: Path, sizes: dict[str, int], grow: int = 1) -> Module:
    text = path.read_text()
    dims = {
        name: size * (grow if name in ("seq", "rows") else 1) for name, size in sizes.items() if f'"{name}"' in text
    }
    return tilewright.load(path, dims)


def products(program: Program) -> float | None:
    """Multiply-adds executed, over those of all products in full; None without products."""
    _, kernels = profile(program.module)
    executed = sum(one.operations // 2 for kernel in kernels for one in kernel.instructions if one.what == "matmul")
    full = 0
    for op in program.snapshot(after="decompose").module.walk():
        if isinstance(op, ContractOp):
            operands = zip(parse_spec(op.spec.data)[:2], op.args, strict=True)
            sizes = {n: s for names, arg in operands for n, s in zip(names, arg.type.get_shape(), strict=True)}
            full += prod(sizes.values())
    return executed / full if full else None


def measured(job: tuple[str, str, int]) -> Row:
    name, target, grow = job
    path = FOLDER / f"{name}.mlir"
    program = tilewright.compile(load(path, LARGE, grow), target=target, objective="traffic")
    moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in program.analyze().kernels)
    unfused, compulsory = program.unfused, program.compulsory
    assert unfused is not None and compulsory is not None
    small = tilewright.compile(load(path, SMALL), target=target, objective="traffic")
    run = small.run(seed=0)
    source = small.snapshot(after="input").module
    native = evaluate(source, list(run.inputs), "native")
    exact = evaluate(source, list(run.inputs), "f64")
    found = list(run.outputs.values())
    scheduled = program.snapshot(after="schedule").module
    groups = [op for op in scheduled.walk() if isinstance(op, FusedOp) and op.schedule is not None]
    return Row(
        name,
        target,
        tuple(Schedule.from_attr(op.schedule).strategy for op in groups if op.schedule is not None),
        moved / sum(compulsory),
        moved / (unfused.read_bytes + unfused.write_bytes),
        products(program),
        max(relative_error(f, w) for f, w in zip(found, exact, strict=True)),
        max(relative_error(n, w) for n, w in zip(native, exact, strict=True)),
        all(array.dtype == np.float32 for array in found),
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="structures whose name contains one of these; all by default")
    parser.add_argument("--full", action="store_true", help="twice the rows")
    parser.add_argument("--target", action="append", help=f"instead of {', '.join(TARGETS)}")
    options = parser.parse_args()
    names = sorted(path.stem for path in FOLDER.glob("*.mlir"))
    names = [name for name in names if not options.names or any(part in name for part in options.names)]
    jobs = [(name, target, 2 if options.full else 1) for target in options.target or TARGETS for name in names]
    columns = f"{'÷ compulsory':>12s} {'÷ unfused':>10s} {'÷ full':>7s} {'error':>9s} {'NumPy f32':>9s}"
    print(f"{'structure':25s} {'kernels':20s} {columns}")
    bad = single = 0
    before = ""
    with ProcessPoolExecutor() as pool:
        for row in pool.map(measured, jobs):
            if row.target != before:
                before = row.target
                print(f"\n{row.target}")
            bad += not row.passes
            single += len(row.strategies) == 1
            kernels = f"{len(row.strategies)} {' '.join(sorted(set(row.strategies)))}"
            share = "" if row.products is None else f"{row.products:.3f}"
            figures = f"{row.compulsory:12.3f} {row.unfused:10.3f} {share:>7s} {row.error:9.1e} {row.plain:9.1e}"
            print(f"{row.name:25s} {kernels:20s} {figures}{'' if row.passes else '  TOO LARGE'}", flush=True)
    print(f"\n{single} of {len(jobs)} are one kernel; {bad} errors above the limit")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
