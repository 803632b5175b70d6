"""Offsets for intervals of time by exhaustive search, where greedy orders leave room to gain.

Two ways of branching, each with several orders of the buffers, take turns under growing limits of nodes. What one has
refuted is not tried again by the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeAlias

from .plan_canonical import branch_canonical
from .plan_exhaust import Branch, Exhaustive
from .plan_greedy import Interval, Placement, pins_clash, place_greedily
from .plan_problem import FREE, Problem
from .plan_skyline import branch_skyline

NODES = 300_000
"""Partial plans looked at by default; 10,000 to 30,000 take a second."""
MOST = 3000
"""Above this many intervals only greedy orders are tried: sets of them and sections become too large."""
FIRST_LIMIT = 500
NOISE = 0.5
Key: TypeAlias = Callable[[int, int], float]
"""Of a buffer's size and the sections it covers: the higher, the earlier it is tried."""


def _area(size: int, width: int) -> float:
    return size * width


def _small(size: int, width: int) -> float:
    return 1 / (size * width)


def _wide(size: int, width: int) -> float:
    return width * 1000 + size


def _large(size: int, width: int) -> float:
    return size * 1000 + width


def _wide_area(size: int, width: int) -> float:
    return size * width**2


PORTFOLIO: tuple[tuple[Branch, Key], ...] = (
    (branch_skyline, _area),
    (branch_skyline, _large),
    (branch_skyline, _wide),
    (branch_skyline, _small),
    (branch_skyline, _wide_area),
    (branch_skyline, _small),
    (branch_canonical, _area),
)


@dataclass(frozen=True)
class SearchedPlacement(Placement):
    """`proved`: no plan has a peak of this many bytes or fewer, so the plan is optimal if that is one unit (the common
    divisor of sizes and pins) below its peak; `nodes`: partial plans looked at."""

    proved: int = -1
    nodes: int = 0


def place(
    intervals: Sequence[Interval],
    capacity: int | None = None,
    nodes: int = NODES,
    seed: int = 0,
    alignment: int = 1,
    lower: bool = True,
) -> SearchedPlacement:
    """The best plan found within a budget of `nodes`; the same one for the same arguments on every machine.

    Greedy orders first. What is above `capacity` (bytes) is then searched for a plan within it, and after that (or
    without a capacity) for lower peaks, down to the most bytes alive at once; `lower=False` stops at the capacity. The
    peak is above the capacity if nothing was found; compare `proved`. Pinned intervals stay where they are. Offsets
    are multiples of `alignment` (bytes).
    Raises ValueError for an interval that is empty in time, a negative size or pin, sizes or pins that are not
    multiples of the alignment, and pins that clash.
    """
    _check(intervals, alignment)
    greedy = place_greedily(intervals)
    asked = [i for i, one in enumerate(intervals) if one.size]
    unit = gcd(*(intervals[i].size for i in asked), *(intervals[i].pinned or 0 for i in asked))
    bound = max([greedy.lower_bound, *(one.pinned + one.size for one in intervals if one.pinned is not None)])
    search = _Search(greedy.peak, bound, nodes, seed)
    if asked and len(asked) <= MOST and greedy.peak > bound:
        problem = Problem(
            [intervals[i].start for i in asked],
            [intervals[i].end for i in asked],
            [intervals[i].size // unit for i in asked],
            [FREE if (pin := intervals[i].pinned) is None else pin // unit for i in asked],
        )
        search.run(problem, unit, capacity, lower)
    if search.plan is None:
        offsets = greedy.offsets
    else:
        # What takes no bytes takes them anywhere.
        found = [one.pinned or 0 for one in intervals]
        for i, offset in zip(asked, search.plan, strict=True):
            found[i] = offset
        offsets = tuple(found)
    return SearchedPlacement(offsets, search.peak, greedy.lower_bound, search.proved, nodes - search.left)


def _check(intervals: Sequence[Interval], alignment: int) -> None:
    for one in intervals:
        pin = one.pinned or 0
        if one.start >= one.end or one.size < 0 or pin < 0:
            raise ValueError(f"not an interval of bytes and time: {one}")
        if one.size % alignment or pin % alignment:
            raise ValueError(f"not a multiple of the alignment of {alignment}: {one}")
    if pins_clash(intervals):
        raise ValueError("two pinned intervals want the same bytes at the same time")


class _Search:
    """What is known between attempts. Bytes, except for the targets of attempts, which are in units."""

    def __init__(self, peak: int, bound: int, nodes: int, seed: int) -> None:
        self.peak = peak
        self.proved = bound - 1
        self.plan: list[int] | None = None
        self.left = nodes
        self.seed = seed

    def run(self, problem: Problem, unit: int, capacity: int | None, lower: bool) -> None:
        if capacity is not None and self.proved < capacity < self.peak:
            self.attempt(problem, capacity // unit, unit, self.left)
        if capacity is not None and not lower and self.peak <= capacity:
            return
        # First the least that any plan needs, which leaves the least to choose, then halfway to what was found.
        lowest = self.lowest(unit)
        first = True
        while self.left > 0 and self.lowest(unit) < self.peak // unit:
            if lowest >= self.peak // unit:
                lowest = self.lowest(unit)
            target = lowest if first else (lowest + self.peak // unit - 1) // 2
            first = False
            self.attempt(problem, target, unit, self.left // 2 + 1)
            lowest = max(lowest, self.lowest(unit))
            if self.peak > target * unit:
                lowest = max(lowest, target + 1)

    def lowest(self, unit: int) -> int:
        """The lowest target, in units, that is not refuted."""
        return self.proved // unit + 1

    def attempt(self, problem: Problem, target: int, unit: int, nodes: int) -> None:
        """Looks for a plan within a target, and keeps it, or the proof that there is none."""
        search = Exhaustive(problem, target)
        rng = random.Random(self.seed)
        limit, turn = FIRST_LIMIT, 0
        while search.nodes < nodes:
            branch, key = PORTFOLIO[turn % len(PORTFOLIO)]
            noise = NOISE if turn >= len(PORTFOLIO) else 0.0
            weight = [
                key(problem.size[b], problem.last[b] - problem.first[b] + 1) * (1 + noise * rng.random())
                for b in range(problem.count)
            ]
            found = search.run(branch, weight, min(limit, nodes - search.nodes))
            if isinstance(found, list):
                self.plan = [0] * problem.count
                for name, offset in zip(problem.names, found, strict=True):
                    self.plan[name] = offset * unit
                self.peak = unit * max(offset + size for offset, size in zip(found, problem.size, strict=True))
                break
            if not found:
                # Peaks are whole units.
                self.proved = max(self.proved, target * unit + unit - 1)
                break
            turn += 1
            if turn % len(PORTFOLIO) == 0:
                limit = limit * 13 // 10
        self.left -= search.nodes
