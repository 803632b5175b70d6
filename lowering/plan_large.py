"""Greedy placement of very many intervals: first fit by size, then another go where it came out too high.

Looking at all that is placed would take time with the square of the number; here time is cut into chunks, each with
the intervals that are alive somewhere in it. What is above the most bytes alive at once is little, in few places:
around each, what lives there is taken out and placed again in other orders, the rest stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from .plan_interval import IntArray, Interval, Placement, live_bytes

Small: TypeAlias = Callable[[Sequence[Interval]], Placement]
"""Places few intervals well, pinned ones where they are."""

PER_CHUNK = 64
"""Starts of intervals in a chunk of time."""
SHARE = 24
"""Chunks are as long as it takes for an interval to lie in at most so many of them on average."""
TRIES, LARGEST, BESIDE = 60, 1000, 3000
"""Places that are planned again at most, intervals that are taken out at once at most, and intervals there may be at
most in the time of those."""


def place_many(intervals: Sequence[Interval], small: Small) -> Placement:
    """A placement of many intervals; deterministic. `small` is used where first fit came out too high."""
    bound, _ = live_bytes(intervals)
    chunks = _Chunks(intervals)
    size = np.array([one.size for one in intervals], np.int64)
    offsets = _first_fit(intervals, chunks, np.lexsort((chunks.start, chunks.start - chunks.end, -size)))
    _lower(intervals, chunks, offsets, size, bound, small)
    return Placement(tuple(int(offset) for offset in offsets), int((offsets + size).max()), bound)


class _Chunks:
    """Which intervals live in which chunk of time: those of chunk `c` are `members[c]`."""

    def __init__(self, intervals: Sequence[Interval]) -> None:
        self.start = np.array([one.start for one in intervals], np.int64)
        self.end = np.array([one.end for one in intervals], np.int64)
        starts, per_chunk = np.sort(self.start), PER_CHUNK
        while True:
            self.cuts = np.unique(starts[::per_chunk])
            self.first = np.searchsorted(self.cuts, self.start, "right") - 1
            self.last = np.searchsorted(self.cuts, self.end, "left") - 1
            counts = self.last - self.first + 1
            if counts.sum() <= SHARE * len(intervals) or len(self.cuts) == 1:
                break
            per_chunk *= 2
        owner = np.repeat(np.arange(len(intervals)), counts)
        inside = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        chunk = self.first[owner] + inside
        order = np.argsort(chunk, kind="stable")
        self.members = np.split(owner[order], np.searchsorted(chunk[order], np.arange(1, len(self.cuts))))

    def alive(self, start: int, end: int) -> IntArray:
        """The intervals that live somewhere from `start` to before `end`, in ascending order."""
        low = int(np.searchsorted(self.cuts, start, "right")) - 1
        high = int(np.searchsorted(self.cuts, end, "left")) - 1
        near = self.between(max(low, 0), high)
        return np.unique(near[(self.start[near] < end) & (self.end[near] > start)])

    def between(self, low: int, high: int) -> IntArray:
        """Members of some neighbouring chunks, perhaps more than once."""
        return self.members[low] if low == high else np.concatenate(self.members[low : high + 1])


def first_fit_peak(intervals: Sequence[Interval]) -> int:
    """The highest byte that buffers need which are placed one after another as they are first used, each as low as it
    goes: what an allocator at run time would do."""
    if not intervals:
        return 0
    chunks = _Chunks(intervals)
    offsets = _first_fit(intervals, chunks, np.argsort(chunks.start, kind="stable"))
    return max(int(offset) + one.size for offset, one in zip(offsets, intervals, strict=True))


def _first_fit(intervals: Sequence[Interval], chunks: _Chunks, order: IntArray) -> IntArray:
    start, end = chunks.start, chunks.end
    size = np.array([one.size for one in intervals], np.int64)
    align = [one.align for one in intervals]
    top = np.full(len(intervals), -1, np.int64)
    low = np.zeros(len(intervals), np.int64)
    for i, one in enumerate(intervals):
        if one.pinned is not None:
            low[i], top[i] = one.pinned, one.pinned + one.size
    for i in (int(number) for number in order):
        if top[i] >= 0:
            continue
        near = chunks.between(int(chunks.first[i]), int(chunks.last[i]))
        near = near[(top[near] >= 0) & (start[near] < end[i]) & (end[near] > start[i])]
        at = _lowest(low[near], top[near], int(size[i]), align[i])
        low[i], top[i] = at, at + size[i]
    return low


def _lowest(low: IntArray, top: IntArray, size: int, align: int) -> int:
    """The lowest free and aligned place of `size` bytes among neighbours, some of which may be there twice."""
    if not len(low):
        return 0
    order = np.argsort(low, kind="stable")
    floor = np.zeros(len(low) + 1, np.int64)
    np.maximum.accumulate(top[order], out=floor[1:])
    if align > 1:
        floor = -(-floor // align) * align
    fitting = low[order] - floor[:-1] >= size
    found = int(fitting.argmax())
    return int(floor[found if fitting[found] else -1])


def _lower(
    intervals: Sequence[Interval], chunks: _Chunks, offsets: IntArray, sizes: IntArray, bound: int, small: Small
) -> None:
    """Places again what lives around the highest buffer, until none is above the bound, or one that is cannot be
    brought down: the others below it then make no difference."""
    for _ in range(TRIES):
        highest = int(np.argmax(offsets + sizes))
        if offsets[highest] + sizes[highest] <= bound:
            return
        start, end = intervals[highest].start, intervals[highest].end
        taken = chunks.alive(start, end)
        while not _place_again(intervals, chunks, offsets, sizes, taken, small):
            start, end, before = start - (end - start), end + (end - start), len(taken)
            taken = chunks.alive(start, end)
            if not before < len(taken) <= LARGEST:
                return


def _place_again(
    intervals: Sequence[Interval], chunks: _Chunks, offsets: IntArray, sizes: IntArray, taken: IntArray, small: Small
) -> bool:
    """Whether a set of intervals, the rest left where it is, came out with a lower top than it had."""
    near = chunks.alive(int(chunks.start[taken].min()), int(chunks.end[taken].max()))
    if len(near) > BESIDE:
        return False
    moving = np.isin(near, taken)
    given: list[Interval] = []
    for position in range(len(near)):
        one, at = intervals[int(near[position])], int(offsets[near[position]])
        given.append(one if moving[position] else replace(one, pinned=at))
    found = np.array(small(given).offsets, np.int64)
    if (found + sizes[near])[moving].max() >= (offsets + sizes)[taken].max():
        return False
    offsets[near] = found
    return True
