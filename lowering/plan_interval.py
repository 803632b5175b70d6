"""Intervals of time that need bytes, and offsets for them: what planners take and give."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Interval:
    """Bytes needed from position `start` to before position `end`; at `pinned`, if that is given, else at a multiple of
    `align`."""

    start: int
    end: int
    size: int
    pinned: int | None = None
    align: int = 1


@dataclass(frozen=True)
class Placement:
    """Offsets in the order of the intervals, the highest byte used, and the most bytes alive at once (no plan can use
    fewer)."""

    offsets: tuple[int, ...]
    peak: int
    lower_bound: int


def live_bytes(intervals: Sequence[Interval]) -> tuple[int, int]:
    """The most bytes alive at once and the (first) position of that."""
    if not intervals:
        return 0, 0
    changes: dict[int, int] = {}
    for one in intervals:
        changes[one.start] = changes.get(one.start, 0) + one.size
        changes[one.end] = changes.get(one.end, 0) - one.size
    best = where = live = 0
    for position in sorted(changes):
        live += changes[position]
        if live > best:
            best, where = live, position
    return best, where


def pins_clash(intervals: Sequence[Interval]) -> tuple[int, int] | None:
    """Two pinned intervals, by index, that want a byte at the same time; None if all pins can be right.

    A sweep over time: what is pinned at that moment is kept sorted by offset and is disjoint.
    """
    pinned = [(i, one, one.pinned) for i, one in enumerate(intervals) if one.pinned is not None and one.size]
    moments = sorted(
        (moment, begins, i, one, at) for i, one, at in pinned for moment, begins in ((one.end, 0), (one.start, 1))
    )
    alive: list[tuple[int, int, int]] = []
    for _, begins, i, one, at in moments:
        spot = bisect_left(alive, (at, 0, 0))
        if not begins:
            del alive[spot]
            continue
        for low, high, other in alive[max(spot - 1, 0) : spot + 1]:
            if low < at + one.size and at < high:
                return min(i, other), max(i, other)
        alive.insert(spot, (at, at + one.size, i))
    return None
