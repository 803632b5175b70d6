"""Offsets for intervals of time by exhaustive search, where greedy orders leave room to gain.

Two ways of branching, each with several orders of the buffers, take turns under growing limits of nodes. What one has
refuted is not tried again by the others. A long search goes on compiled where numba is installed (the extra `fast`);
what is found, and after how many nodes, is the same without.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from math import gcd
from typing import TYPE_CHECKING

from .plan_canonical import branch_canonical
from .plan_exhaust import Branch, Exhaustive
from .plan_greedy import place_greedily
from .plan_interval import Interval, Placement, pins_clash
from .plan_problem import FREE, Problem
from .plan_skyline import branch_skyline

if TYPE_CHECKING:
    from .plan_compiled import CompiledExhaustive

_log = logging.getLogger(__name__)

NODES = 300_000
"""Partial plans looked at by default; 10,000 to 30,000 take a second."""
MOST = 3000
"""Above this many intervals only greedy orders are tried: sets of them and sections become too large."""
LIMITS, PARTS = (500, 4000), (2, 1)
"""Nodes of the shortest run of two series, and their parts of all nodes. For most instances whether a run finds a plan
depends on luck more than on its length, so that most runs should be short; some are only found by long ones."""
LONG = 4000
"""Nodes of an attempt after which it goes on compiled: loading what is compiled takes as long as some thousand."""
CANONICAL_EVERY = 8

ORDERS: tuple[tuple[float, float], ...] = ((1, 1), (1, 0.1), (0.1, 1), (-1, -1), (1, 2), (-1, 0), (0, 1))
"""Exponents of a buffer's size and width (sections it covers) in its weight: heavy ones are tried first."""


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
    lower: bool = True,
    compiled: bool | None = None,
) -> SearchedPlacement:
    """The best plan found within a budget of `nodes`; the same one for the same arguments on every machine.

    Greedy orders first. What is above `capacity` (bytes) is then searched for a plan within it, and after that (or
    without a capacity) for lower peaks, down to the most bytes alive at once; `lower=False` stops at the capacity. The
    peak is above the capacity if nothing was found; compare `proved`. Pinned intervals stay where they are, offsets of
    others are multiples of their alignment. `compiled`: False never uses numba, True does from the first node, by
    default long searches do where it is installed; the result is the same.
    Raises ValueError for an interval that is empty in time, a negative size or pin, a pin that is no multiple of the
    alignment, and pins that clash.
    """
    _check(intervals)
    greedy = place_greedily(intervals)
    asked = [i for i, one in enumerate(intervals) if one.size]
    unit = _unit([intervals[i] for i in asked])
    bound = max([greedy.lower_bound, *(one.pinned + one.size for one in intervals if one.pinned is not None)])
    search = _Search(greedy.peak, bound, nodes, seed, compiled)
    if asked and len(asked) <= MOST and greedy.peak > bound:
        problem = Problem(
            [intervals[i].start for i in asked],
            [intervals[i].end for i in asked],
            [intervals[i].size // unit for i in asked],
            [FREE if (pin := intervals[i].pinned) is None else pin // unit for i in asked],
            [max(intervals[i].align // unit, 1) for i in asked],
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


def _unit(intervals: Sequence[Interval]) -> int:
    """What sizes, pins and the alignments that make a difference are multiples of; then so are all offsets where
    nothing can sink. An alignment that divides all else makes none."""
    unit = gcd(*(one.size for one in intervals), *(one.pinned or 0 for one in intervals))
    while uneven := [one.align for one in intervals if unit % one.align]:
        smaller = gcd(unit, *uneven)
        if smaller == unit:
            break
        unit = smaller
    return unit


def _check(intervals: Sequence[Interval]) -> None:
    for one in intervals:
        pin = one.pinned or 0
        if one.start >= one.end or one.size < 0 or pin < 0 or one.align < 1:
            raise ValueError(f"not an interval of bytes and time: {one}")
        if pin % one.align:
            raise ValueError(f"pinned, but not to a multiple of its alignment: {one}")
    if pins_clash(intervals):
        raise ValueError("two pinned intervals want the same bytes at the same time")


@cache
def compiler() -> type[CompiledExhaustive] | None:
    """The compiled search, None where numba is not installed."""
    try:
        from .plan_compiled import CompiledExhaustive
    except ImportError:
        _log.info("long searches of plans run without numba (the extra 'fast')")
        return None
    return CompiledExhaustive


class _Search:
    """What is known between attempts. Bytes, except for the targets of attempts, which are in units."""

    def __init__(self, peak: int, bound: int, nodes: int, seed: int, compiled: bool | None) -> None:
        self.peak = peak
        self.proved = bound - 1
        self.plan: list[int] | None = None
        self.left = nodes
        self.seed = seed
        self.long = {None: LONG, True: 0, False: nodes}[compiled]

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
        pure: Exhaustive | None = Exhaustive(problem, target)
        search: Exhaustive | CompiledExhaustive = pure
        rng = random.Random(self.seed)
        turn, turns, used = 0, [0, 0], [0, 0]
        while search.nodes < nodes:
            branch, weight = _order(problem, turn, rng)
            if pure is not None and pure.nodes >= self.long and (other := compiler()) is not None:
                search, pure = other(pure), None
            series = int(used[0] * PARTS[1] > used[1] * PARTS[0])
            turns[series] += 1
            before = search.nodes
            found = search.run(branch, weight, min(LIMITS[series] * _luby(turns[series]), nodes - before))
            used[series] += search.nodes - before
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
        self.left -= search.nodes


def _order(problem: Problem, turn: int, rng: random.Random) -> tuple[Branch, list[float]]:
    """How the run number `turn` branches, and the weights of the buffers: a few plain ones, then at random.

    Hard instances differ in what suits them; for each there is something that one run in 20 or 40 succeeds with.
    """
    branch = branch_canonical if turn % CANONICAL_EVERY == CANONICAL_EVERY - 1 else branch_skyline
    noise, slope = 0.0, 0.0
    if turn < len(ORDERS):
        of_size, of_width = ORDERS[turn]
    else:
        of_size, of_width = rng.uniform(-1, 1), rng.uniform(-1, 2)
        noise, slope = rng.uniform(0, 2), rng.choice((0.0, 0.0, rng.uniform(-1, 1)))
    weight: list[float] = []
    for b in range(problem.count):
        place = (problem.first[b] + problem.last[b]) / (problem.sections + 1) - 1  # in time: from -1 to 1
        plain = problem.size[b] ** of_size * (problem.last[b] - problem.first[b] + 1) ** of_width
        weight.append(plain * (1 + slope * place) * (1 + noise * rng.random()))
    return branch, weight


def _luby(turn: int) -> int:
    """1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 …: for runs of unknown luck no other schedule is better by more than a constant
    and a logarithm (Luby, Sinclair, Zuckerman 1993)."""
    while True:
        power = (turn + 1).bit_length() - 1
        if turn + 1 == 1 << power:
            return 1 << (power - 1)
        turn -= (1 << power) - 1
