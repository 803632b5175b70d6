"""Static planning against what it could be: hard sets of buffers, very many buffers, the arenas of the examples.

    python benchmarks/planner.py FOLDER [NAME ...] [--seeds 0,1,2] [--capacity BYTES] [--nodes COUNT] [--no-peer]

FOLDER holds files in the format of MiniMalloc (columns id, lower, upper, size). Each instance is planned as it is, with
time reversed, with its buffers in another order and with all sizes and times tripled, for each seed, until it fits the
capacity. Then those named by `--lower` are lowered towards the most bytes alive at once. Beside it runs a peer,
OmniMalloc from PyPI (the extra `bench`): its time, against its time where MiniMalloc's was measured, scales
MiniMalloc's total to this machine. Every plan is checked. Exits with 1 if one does not fit, or if the slowest seed
takes longer than MiniMalloc would.
"""

from __future__ import annotations

import argparse
import csv
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tilewright.lowering.plan_greedy import place_greedily
from tilewright.lowering.plan_interval import Interval
from tilewright.lowering.plan_report import plans_of
from tilewright.lowering.plan_search import compiler, place

import tilewright
from tilewright.plan_csv import Problem, check_offsets

MINIMALLOC = 27.0
"""Seconds of MiniMalloc (C++, one thread) for all eleven on the machine where the peer took PEER seconds."""
PEER = {"A": 1.0, "B": 1.0, "C": 0.05, "E": 1.5, "F": 0.6, "G": 0.2, "H": 0.6, "I": 0.3, "K": 0.1}
"""Seconds of OmniMalloc's SuperMalloc there, of the instances that it solves, with so many threads."""
THREADS = 12
EXAMPLES = Path(__file__).parents[1] / "examples"

Change = Callable[[list[Interval], random.Random], list[Interval]]
VARIANTS: dict[str, tuple[Change, int]] = {
    "as it is": (lambda given, _: given, 1),
    "reversed": (lambda given, _: [Interval(-one.end, -one.start, one.size) for one in given], 1),
    "relabelled": (lambda given, rng: rng.sample(given, len(given)), 1),
    "tripled": (lambda given, _: [Interval(3 * one.start, 3 * one.end, 3 * one.size) for one in given], 3),
}
"""How an instance is changed, and by how much its sizes and the capacity grow."""


def read(path: Path) -> list[Interval]:
    """The buffers of a file; times are half open."""
    with path.open(newline="") as file:
        return [Interval(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


def check(given: list[Interval], offsets: tuple[int, ...]) -> None:
    check_offsets(Problem(tuple(map(str, range(len(given)))), tuple(given)), offsets)


def hard(files: list[Path], capacity: int, nodes: int, seeds: list[int]) -> tuple[float, int]:
    """Prints seconds and nodes per variant and seed. The most seconds of a seed as it is, and how many did not fit."""
    worst, missed = 0.0, 0
    for variant, (change, scale) in VARIANTS.items():
        for seed in seeds:
            total, shown = 0.0, list[str]()
            for path in files:
                given = change(read(path), random.Random(seed))
                begin = time.perf_counter()
                found = place(given, capacity * scale, nodes, seed, lower=False)
                seconds = time.perf_counter() - begin
                check(given, found.offsets)
                fits = found.peak <= capacity * scale
                missed += not fits
                total += seconds
                shown.append(f"{path.stem[0]} {seconds:.2f}{'' if fits else ' (does not fit)'}")
            print(f"{variant:<11} seed {seed}: {total:6.2f} s  {', '.join(shown)}", flush=True)
            worst = max(worst, total) if variant == "as it is" else worst
    return worst, missed


def lowered(files: list[Path], nodes: int, seed: int) -> None:
    print(f"\n{'lowered':<10}{'peak':>10}{'max-live':>10}{'seconds':>9}{'nodes':>10}")
    for path in files:
        given = read(path)
        begin = time.perf_counter()
        found = place(given, None, nodes, seed)
        seconds = time.perf_counter() - begin
        check(given, found.offsets)
        print(f"{path.stem[0]:<10}{found.peak:>10}{found.lower_bound:>10}{seconds:>9.2f}{found.nodes:>10}", flush=True)


def peer(files: list[Path], capacity: int) -> float | None:
    """How many times as long as there the peer takes here; None where it is not installed."""
    try:
        from omnimalloc import Allocation
        from omnimalloc.allocators.supermalloc import SupermallocAllocator
    except ImportError:
        return None
    here = there = 0.0
    for path in [one for one in files if one.stem[0] in PEER]:
        given = read(path)
        begin = time.perf_counter()
        asked = tuple(Allocation(i, one.size, one.start, one.end) for i, one in enumerate(given))
        found = SupermallocAllocator(timeout=30, num_threads=THREADS).allocate(asked)
        seconds = time.perf_counter() - begin
        fits = max(one.offset + one.size for one in found) <= capacity
        print(f"peer {path.stem[0]}: {seconds:.2f} s{'' if fits else ' (does not fit)'}", flush=True)
        if fits:
            here, there = here + seconds, there + PEER[path.stem[0]]
    return here / there if there else None


def many(count: int, seeds: list[int]) -> None:
    print(f"\n{count} buffers")
    for seed in seeds:
        rng = random.Random(seed)
        given = [
            Interval(start, start + 1 + int(rng.expovariate(0.05)), 32 * rng.randint(1, 1000))
            for start in (rng.randrange(count) for _ in range(count))
        ]
        begin = time.perf_counter()
        found = place_greedily(given)
        seconds = time.perf_counter() - begin
        check(given, found.offsets)
        print(f"seed {seed}: {seconds:.1f} s, {found.peak / found.lower_bound:.4f} × max-live", flush=True)


def examples() -> None:
    """The arena of each example, fused and with a kernel per named operation (most fused ones have one kernel, and no
    intermediates off chip)."""
    print(f"\n{'example':<28}{'':<9}{'arena':>10}{'max-live':>10}{'one each':>10}  on-chip plans above max-live")
    for path in sorted(EXAMPLES.glob("*.mlir")):
        for unfused in (False, True):
            try:
                program = tilewright.compile(path, to="plan", unfused=unfused)
            except tilewright.SourceError:
                program = tilewright.compile(path, to="plan", dims={"seq": 128}, unfused=unfused)
            plans = plans_of(program.snapshot(after="plan").module)
            offchip = [one for one in plans if one.memory == program.target.offchip]
            fixed = sum(p.interval.size for one in offchip for p in one.placed if p.region)
            above = [f"{p.owner} {p.memory} {p.peak}/{p.max_live}" for p in plans if p.peak > p.max_live]
            counts = [(p.peak, p.max_live, p.separate) for p in offchip]
            figures = [sum(values) - fixed for values in zip(*counts, strict=True)]
            name = path.stem if not unfused else ""
            print(f"{name:<28}{'unfused' if unfused else 'fused':<9}", *(f"{n:>10}" for n in figures), sep="", end="")
            print(f"  {', '.join(above) or 'none'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="beginnings of names of files; all by default")
    parser.add_argument("--capacity", type=int, default=1048576)
    parser.add_argument("--nodes", type=int, default=5_000_000)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--lower", default="C,D", help="instances that are lowered to max-live")
    parser.add_argument("--no-peer", action="store_true")
    asked = parser.parse_args()
    seeds = [int(seed) for seed in asked.seeds.split(",")]
    files = [p for p in sorted(asked.folder.glob("*.csv")) if not asked.names or p.name.startswith(tuple(asked.names))]
    if compiler() is not None:  # what is compiled once per installation is not planning
        place(read(files[0]), None, 10, compiled=True)
    scale = None if asked.no_peer else peer(files, asked.capacity)
    worst, missed = hard(files, asked.capacity, asked.nodes, seeds)
    lowered([p for p in files if p.name.startswith(tuple(asked.lower.split(",")))], asked.nodes, seeds[0])
    many(100_000, seeds)
    examples()
    slow = False
    if scale is not None and not asked.names:
        share = MINIMALLOC * scale
        slow = worst > share
        print(f"\nslowest seed as it is: {worst:.1f} s; MiniMalloc's share here {share:.1f} s (peer × {scale:.2f})")
    return int(missed > 0 or slow)


if __name__ == "__main__":
    sys.exit(main())
