"""Branching on the buffer with the lowest offset of those that wait: plans are built by non-decreasing offsets.

The rules are those published with MiniMalloc (Moffitt, ASPLOS 2023): each buffer as low as it goes, nothing placed so
high that another one would fit below it, bounds per section. Written anew for the states used here.
"""

from __future__ import annotations

from .plan_floors import NEVER, State, Step, bits
from .plan_problem import FREE, Problem


def branch_canonical(problem: Problem, state: State, weight: list[float]) -> list[Step]:
    """One step per buffer that can come next; all floors rise to its offset. Requires raised floors.

    Complete: in a plan with the least sum of offsets the lowest buffer lies on a floor, and no other buffer could be
    moved to below its offset.
    """
    floor = state.floor
    lowest: list[tuple[int, float, int]] = []
    limit = NEVER
    for b in bits(state.waiting):
        height = max(floor[problem.first[b] : problem.last[b] + 1])
        if problem.pin[b] == FREE:
            height = problem.rest(b, height)
            limit = min(limit, height + problem.size[b])
        else:
            height = problem.pin[b]
        if not state.waiting & problem.twin[b]:
            lowest.append((-height, weight[b], b))
    return [Step(b, 0, -below, -below) for below, _, b in sorted(lowest) if -below < limit]
