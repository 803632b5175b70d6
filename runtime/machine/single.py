"""Loops of one engine that neither signals, waits nor wants the off-chip port in them: added up, not walked.

Nothing outside can tell when their instructions begin, so that the cycles of the whole loop are what counts: those of
one iteration, times the iterations whose regions have the same sizes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np

from .cases import Case, Cases
from .period import bounds_depend, bounds_over
from .program import EventStep, Instruction, Loop, Node


def single_loops(body: Iterable[Node], cases: dict[Instruction, Cases]) -> Iterator[Loop]:
    """The outermost of an engine's loops that can be added up."""
    for node in body:
        if isinstance(node, Loop):
            if _alone(node, cases):
                yield node
            else:
                yield from single_loops(node.body, cases)


def _alone(node: Node, cases: dict[Instruction, Cases]) -> bool:
    if isinstance(node, Loop):
        return all(_alone(inner, cases) for inner in node.body)
    return not isinstance(node, EventStep) and not cases[node].offchip


class Totals:
    """How often each case is executed in a loop; remembered by the counters around it that matter."""

    def __init__(self, cases: dict[Instruction, Cases]) -> None:
        self.cases = cases
        self.depends: dict[Loop, tuple[int, ...]] = {}
        self.known: dict[tuple[object, ...], Counter[Case]] = {}

    def of(self, loop: Loop, counters: Sequence[int]) -> Counter[Case]:
        """Of a loop that the counters around reach. The result is not to be changed."""
        depends = self.depends.get(loop)
        if depends is None:
            depends = self.depends[loop] = tuple(sorted(d for d in _depends(loop) if d < loop.depth))
        key = (loop, *(counters[depth] for depth in depends))
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._loop(loop, list(counters))
        return found

    def _loop(self, loop: Loop, counters: list[int]) -> Counter[Case]:
        lower, upper = loop.lower.at(counters), loop.upper.at(counters)
        total: Counter[Case] = Counter()
        for value, count in _groups(loop, counters, lower, upper):
            counters[loop.depth] = value
            for node in loop.body:
                if isinstance(node, Loop):
                    for case, times in self.of(node, counters).items():
                        total[case] += times * count
                elif isinstance(node, Instruction):
                    total[self.cases[node].at(counters)] += count
        return total


def _groups(loop: Loop, counters: list[int], lower: int, upper: int) -> Iterator[tuple[int, int]]:
    """Iterations that stand for all: each with how many there are like it."""
    if lower >= upper:
        return
    if any(bounds_depend(node, loop.depth) for node in loop.body):
        yield from ((value, 1) for value in range(lower, upper))
        return
    bounds = bounds_over(loop, counters[: loop.depth], lower, upper) if loop.depth in _depends(loop) else None
    if bounds is None or not bounds.size:
        yield lower, upper - lower
        return
    breaks = np.flatnonzero((bounds[:, 1:] != bounds[:, :-1]).any(axis=0)) + 1
    starts = [0, *(int(n) for n in breaks), upper - lower]
    yield from ((lower + start, end - start) for start, end in pairwise(starts))


def _depends(node: Node) -> frozenset[int]:
    """Depths of all counters that regions and bounds in a node depend on, its own among them."""
    if isinstance(node, Loop):
        found = node.lower.depends | node.upper.depends
        return found.union(*(_depends(inner) for inner in node.body))
    return node.depends if isinstance(node, Instruction) else frozenset()
