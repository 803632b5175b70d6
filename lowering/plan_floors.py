"""Partial plans: what is placed already shows only as a floor under each section, and floors may rise by themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from .plan_problem import Problem

NEVER = 1 << 62
"""Above every target."""


class Valley(NamedTuple):
    """Sections `first` to `last` on one floor between higher walls (NEVER where the window ends), and the waiting
    buffers that live within them."""

    first: int
    last: int
    left: int
    right: int
    inside: int


@dataclass
class State:
    """`waiting`: the buffers to place, all of which live within sections `first` to `last` and none of which may go
    below a `floor`; `slack`: bytes of each section between what is placed, what waits, and the target."""

    waiting: int
    first: int
    last: int
    floor: list[int]
    slack: list[int]
    valleys: list[Valley]


@dataclass(frozen=True, slots=True)
class Step:
    """Buffer `buffer` goes to `height`, and lower floors elsewhere rise to `others`; or, if it is None, the floor of
    `section` rises to `height`."""

    buffer: int | None
    section: int
    height: int
    others: int = 0


def bits(buffers: int) -> list[int]:
    """The members of a set, the smallest buffer first."""
    found: list[int] = []
    while buffers:
        low = buffers & -buffers
        found.append(low.bit_length() - 1)
        buffers ^= low
    return found


def raise_floors(problem: Problem, state: State) -> bool:
    """Raises each floor to the lowest offset that any waiting buffer could have there, and lists the valleys.

    A buffer over a section can lie on its floor only if it does not reach a higher floor on either side. If none can,
    all of them are as high as the lower of the walls they reach. False if the buffers do not fit above the floors.
    """
    floor, slack, waiting, cover = state.floor, state.slack, state.waiting, problem.cover
    begin, end = state.first, state.last
    choosy = problem.choosy & waiting
    raised = True
    while raised:
        raised = False
        state.valleys = []
        runs = _runs(floor, begin, end)
        for k, (first, last, height) in enumerate(runs):
            a, z = k - 1, k + 1
            while a >= 0 and runs[a][2] <= height:
                a -= 1
            while z < len(runs) and runs[z][2] <= height:
                z += 1
            left = runs[a][1] if a >= 0 else begin - 1
            right = runs[z][0] if z < len(runs) else end + 1
            inside = waiting & problem.starts_from[left + 1] & problem.ends_by[right - 1]
            valley = a == k - 1 and z == k + 1
            if valley:
                walls = floor[left] if a >= 0 else NEVER, floor[right] if z < len(runs) else NEVER
                state.valleys.append(Valley(first, last, *walls, inside))
            for section in range(first, last + 1):
                here = inside & cover[section]
                to = NEVER
                if here and choosy & here:
                    # A pinned or aligned buffer is not on the floor, unless the floor is at an offset it can have.
                    for b in bits(choosy & here):
                        lowest = problem.rest(b, height)
                        if lowest > height:
                            here ^= 1 << b
                            to = min(to, lowest)
                if not here:
                    over = waiting & cover[section]
                    if a >= 0 and over & cover[left]:
                        to = min(to, floor[left])
                    if z < len(runs) and over & cover[right]:
                        to = min(to, floor[right])
                    slack[section] -= to - height
                    if slack[section] < 0:
                        return False
                    floor[section] = to
                    raised = True
    pinned = problem.pinned & waiting
    return all(problem.pin[b] >= max(floor[problem.first[b] : problem.last[b] + 1]) for b in bits(pinned))


def _runs(floor: list[int], first: int, last: int) -> list[tuple[int, int, int]]:
    """Neighbouring sections on the same floor: first section, last section, floor."""
    runs: list[tuple[int, int, int]] = []
    begin, height = first, floor[first]
    for section in range(first + 1, last + 1):
        if floor[section] != height:
            runs.append((begin, section - 1, height))
            begin, height = section, floor[section]
    runs.append((begin, last, height))
    return runs
