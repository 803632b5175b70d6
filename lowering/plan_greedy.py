"""Offsets for intervals of time: several greedy orders, first fit and best fit, the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, TypeAlias

import numpy as np

from .plan_interval import IntArray, Interval, Placement, live_bytes
from .plan_large import BESIDE, place_many

Fit: TypeAlias = Literal["first", "best"]

LARGE = BESIDE
"""Above this many intervals the orders of the portfolio would take a second or so each."""


def place_greedily(intervals: Sequence[Interval], tiers: bool = False) -> Placement:
    """The best of the portfolio; stops as soon as a placement reaches the lower bound. Where sizes are multiples of an
    alignment that all share, every offset is too. Very many intervals are placed by `place_many`.

    `tiers`: more orders, in which what lives where most bytes are alive at once comes first."""
    if not intervals:
        return Placement((), 0, 0)
    if len(intervals) > LARGE:
        return place_many(intervals, lambda few: place_greedily(few, tiers=True))
    bound, _ = live_bytes(intervals)
    start = np.array([one.start for one in intervals], np.int64)
    end = np.array([one.end for one in intervals], np.int64)
    size = np.array([one.size for one in intervals], np.int64)
    pinned = np.array([-1 if one.pinned is None else one.pinned for one in intervals], np.int64)
    align = np.array([one.align for one in intervals], np.int64)
    best: IntArray | None = None
    peak = 0
    for order, fit in _portfolio(start, end, size, tiers):
        offsets = _place(start, end, size, pinned, align, order, fit)
        top = int((offsets + size).max())
        if best is None or top < peak:
            best, peak = offsets, top
        if peak <= bound:
            break
    assert best is not None
    return Placement(tuple(int(offset) for offset in best), peak, bound)


def _portfolio(start: IntArray, end: IntArray, size: IntArray, tiers: bool) -> list[tuple[IntArray, Fit]]:
    length = end - start
    keys: list[Callable[[], tuple[IntArray, ...]]] = [
        lambda: (start, -length, -size),
        lambda: (-size, -length, start),
        lambda: (start, -size),
        lambda: (-(size * length), start),
        lambda: (-length, -size),
        lambda: (end, -size),
        lambda: (-end, -size),
    ]
    if tiers:
        crowded = _most_alive(start, end, size)
        for step in (50, 20, 10):
            tier = crowded * step // max(int(crowded.max()), 1)
            keys += [
                lambda tier=tier: (-tier, -size, -length, start),
                lambda tier=tier: (-tier, start, -length, -size),
                lambda tier=tier: (-tier, -(size * length), start),
            ]
    fits: tuple[Fit, ...] = ("best", "first")
    return [(np.lexsort(key()[::-1]), fit) for key in keys for fit in fits]


def _most_alive(start: IntArray, end: IntArray, size: IntArray) -> IntArray:
    """For each interval the most bytes alive at once while it is."""
    times = np.unique(np.concatenate((start, end)))
    first, last = np.searchsorted(times, start), np.searchsorted(times, end)
    change = np.zeros(len(times), np.int64)
    np.add.at(change, first, size)
    np.add.at(change, last, -size)
    alive = np.cumsum(change)
    return np.array([alive[a:z].max() for a, z in zip(first, last, strict=True)], np.int64)


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
