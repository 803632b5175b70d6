"""Intervals of time that need bytes, and offsets for them: what planners take and give."""

from __future__ import annotations

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


def pins_clash(intervals: Sequence[Interval]) -> bool:
    """Whether two pinned intervals want a byte at the same time."""
    held = [(one.start, one.end, one.pinned, one.pinned + one.size) for one in intervals if one.pinned is not None]
    start, end, low, high = np.array(held or np.empty((0, 4)), np.int64).T
    for i in range(len(held)):
        others = slice(i + 1, None)
        together = (start[others] < end[i]) & (end[others] > start[i])
        if np.any(together & (low[others] < high[i]) & (high[others] > low[i])):
            return True
    return False
