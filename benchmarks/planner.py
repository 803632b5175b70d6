"""Static planning of hard sets of buffers: seconds, peak and nodes per instance.

    python benchmarks/planner.py FOLDER [--capacity BYTES] [--nodes COUNT] [--seed SEED] [--lower] [NAME ...]

FOLDER holds files in the format of MiniMalloc (columns id, lower, upper, size). Without `--lower` a plan within the
capacity is enough; with it, the peak is lowered as far as the nodes allow. Every plan is checked. Exits with 1 if one
does not fit.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from pathlib import Path

from tilewright.lowering.plan_interval import Interval
from tilewright.lowering.plan_search import place


def read(path: Path) -> list[Interval]:
    """The buffers of a file; times are half open."""
    with path.open(newline="") as file:
        return [Interval(int(row["lower"]), int(row["upper"]), int(row["size"])) for row in csv.DictReader(file)]


def check(intervals: list[Interval], offsets: tuple[int, ...], peak: int) -> None:
    for i, (one, low) in enumerate(zip(intervals, offsets, strict=True)):
        assert low >= 0 and low + one.size <= peak
        for other, at in zip(intervals[:i], offsets[:i], strict=True):
            apart = one.end <= other.start or other.end <= one.start
            assert apart or low + one.size <= at or at + other.size <= low


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help="beginnings of names of files; all by default")
    parser.add_argument("--capacity", type=int, default=1048576)
    parser.add_argument("--nodes", type=int, default=400_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--lower", action="store_true")
    asked = parser.parse_args()
    print(f"{'instance':<20}{'buffers':>8}{'seconds':>9}{'peak':>10}{'max-live':>10}{'proved':>10}{'nodes':>9}  fits")
    total, nodes, fitting, files = 0.0, 0, 0, 0
    for path in sorted(asked.folder.glob("*.csv")):
        if asked.names and not path.name.startswith(tuple(asked.names)):
            continue
        intervals = read(path)
        begin = time.perf_counter()
        found = place(intervals, asked.capacity, asked.nodes, asked.seed, lower=asked.lower)
        seconds = time.perf_counter() - begin
        check(intervals, found.offsets, found.peak)
        fits = found.peak <= asked.capacity
        print(
            f"{path.stem:<20}{len(intervals):>8}{seconds:>9.2f}{found.peak:>10}{found.lower_bound:>10}"
            f"{found.proved:>10}{found.nodes:>9}  {'yes' if fits else 'no'}",
            flush=True,
        )
        total, nodes, fitting, files = total + seconds, nodes + found.nodes, fitting + fits, files + 1
    print(f"{'total':<28}{total:>9.2f}{nodes:>39}  {fitting} of {files}")
    return int(fitting < files)


if __name__ == "__main__":
    sys.exit(main())
