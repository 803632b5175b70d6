"""Offsets for intervals of time: several greedy orders, first fit and best fit, the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
Fit: TypeAlias = Literal["first", "best"]

LARGE = 3000
"""Above this many intervals only the first two orders are tried, each takes a second or so."""


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


def place_greedily(intervals: Sequence[Interval]) -> Placement:
    """The best of the portfolio; stops as soon as a placement reaches the lower bound. Where sizes are multiples of an
    alignment that all share, every offset is too."""
    bound, _ = live_bytes(intervals)
    if not intervals:
        return Placement((), 0, 0)
    start = np.array([one.start for one in intervals], np.int64)
    end = np.array([one.end for one in intervals], np.int64)
    size = np.array([one.size for one in intervals], np.int64)
    pinned = np.array([-1 if one.pinned is None else one.pinned for one in intervals], np.int64)
    align = np.array([one.align for one in intervals], np.int64)
    best: IntArray | None = None
    peak = 0
    for order, fit in _portfolio(start, end, size):
        offsets = _place(start, end, size, pinned, align, order, fit)
        top = int((offsets + size).max())
        if best is None or top < peak:
            best, peak = offsets, top
        if peak <= bound:
            break
    assert best is not None
    return Placement(tuple(int(offset) for offset in best), peak, bound)


def _portfolio(start: IntArray, end: IntArray, size: IntArray) -> list[tuple[IntArray, Fit]]:
    length = end - start
    keys: list[Callable[[], tuple[IntArray, ...]]] = [
        lambda: (start, -length, -size),
        lambda: (-size, -length, start),
        lambda: (start, -size),
        lambda: (-(size * length), start),
        lambda: (-length, -size),
        lambda: (start, -length, -size),
        lambda: (end, -size),
        lambda: (-end, -size),
    ]
    if len(start) > LARGE:
        keys = keys[:2]
    fits: tuple[Fit, ...] = ("best", "first") if len(start) <= LARGE else ("first",)
    return [(np.lexsort(key()[::-1]), fit) for key in keys for fit in fits]


def _place(
    start: IntArray, end: IntArray, size: IntArray, pinned: IntArray, align: IntArray, order: IntArray, fit: Fit
) -> IntArray:
    """One greedy pass. Placed intervals are kept sorted by offset."""
    count = len(start)
    offsets = np.full(count, -1, np.int64)
    fixed = [int(i) for i in np.argsort(pinned, kind="stable") if pinned[i] >= 0]
    sequence = fixed + [int(i) for i in order if pinned[i] < 0]
    low, high = np.empty(count, np.int64), np.empty(count, np.int64)
    first, last = np.empty(count, np.int64), np.empty(count, np.int64)
    for used, i in enumerate(sequence):
        at = int(pinned[i])
        if at < 0:
            together = (first[:used] < end[i]) & (last[:used] > start[i])
            at = _gap(low[:used][together], high[:used][together], int(size[i]), int(align[i]), fit)
        offsets[i] = at
        spot = int(np.searchsorted(low[:used], at, side="right"))
        for array, value in ((low, at), (high, at + int(size[i])), (first, int(start[i])), (last, int(end[i]))):
            array[spot + 1 : used + 1] = array[spot:used].copy()
            array[spot] = value
    return offsets


def _gap(low: IntArray, high: IntArray, size: int, align: int, fit: Fit) -> int:
    """The lowest, or the tightest, free and aligned place of `size` bytes among neighbours sorted by offset."""
    if not len(low):
        return 0
    top = np.maximum.accumulate(high)
    floor = np.concatenate((np.zeros(1, np.int64), top[:-1]))
    floor = -(-floor // align) * align
    room = low - floor
    fitting = np.flatnonzero(room >= size)
    if not len(fitting):
        return int(-(-top[-1] // align) * align)
    chosen = fitting[0] if fit == "first" else fitting[np.argmin(room[fitting])]
    return int(floor[chosen])
