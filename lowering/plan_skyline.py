"""Branching on the section that the fewest buffers can still fill ("fail first")."""

from __future__ import annotations

from .plan_floors import NEVER, State, Step, Valley, bits
from .plan_problem import Problem


def branch_skyline(problem: Problem, state: State, weight: list[float]) -> list[Step]:
    """One step per buffer that can lie on the floor of the chosen section, and one that leaves the floor free.

    Only valleys are looked at: there, what lies on the floor lies in the valley. Requires raised floors.
    """
    cover, slack, floor = problem.cover, state.slack, state.floor
    section, valley = -1, state.valleys[0]
    fewest = (NEVER, 0, 0)
    for one in state.valleys:
        width, height = one.last - one.first, floor[one.first]
        for s in range(one.first, one.last + 1):
            choices = (one.inside & cover[s]).bit_count() + (slack[s] > 0)
            if choices <= fewest[0] and (choices, -width, height) < fewest:
                fewest, section, valley = (choices, -width, height), s, one
    height = floor[section]
    fitting = [
        b
        for b in bits(valley.inside & cover[section])
        if not state.waiting & problem.twin[b] and problem.rest(b, height) <= height
    ]
    steps = [Step(b, section, height) for b in sorted(fitting, key=lambda b: (weight[b], b))]
    if slack[section]:
        above = _above_gap(problem, state, valley, section)
        if above - height <= slack[section]:
            steps.insert(0, Step(None, section, above))
    return steps


def _above_gap(problem: Problem, state: State, valley: Valley, section: int) -> int:
    """A bound from below for the lowest buffer over a section of a valley that does not lie on its floor.

    If there is a plan, then there is one in which nothing can sink. There that buffer is pinned, or at the first
    offset of its alignment above the floor, above a wall that it reaches, or above another buffer that waits now, lives
    somewhere in the valley, and does not cover the section.
    """
    cover, waiting, height = problem.cover, state.waiting, state.floor[section]
    over = waiting & cover[section]
    above = NEVER
    if over & cover[valley.first - 1]:
        above = min(above, valley.left)
    if over & cover[valley.last + 1]:
        above = min(above, valley.right)
    support = valley.inside & ~cover[section]
    if support:
        above = min(above, height + problem.size[_smallest(support)])
    in_valley = waiting & ~problem.starts_from[valley.last + 1] & ~problem.ends_by[valley.first - 1]
    support = in_valley & ~valley.inside & ~cover[section]
    if support:
        above = min(above, min(valley.left, valley.right) + problem.size[_smallest(support)])
    for b in bits(over & problem.choosy):
        lowest = problem.rest(b, height)
        if lowest > height:
            above = min(above, lowest)
    return above


def _smallest(buffers: int) -> int:
    return (buffers & -buffers).bit_length() - 1
