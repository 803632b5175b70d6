"""Intervals as an exhaustive search wants them: time cut into sections, sets of buffers as the bits of integers.

A section stands for the buffers alive at one time, and only times at which no other time has all of them and more are
kept. Two buffers are alive together if and only if they share a section. Buffers are numbered by size, smallest first,
so that the lowest bit of a set is its smallest buffer.
"""

from __future__ import annotations

from collections.abc import Sequence

FREE = -1
"""The pin of a buffer that may go anywhere."""


class Problem:
    """First section, last section (both from 1), size, pin (or FREE) and alignment of every buffer, sizes > 0.

    Buffers have numbers of their own here; `names[number]` is the index among the intervals given.
    """

    def __init__(
        self,
        starts: Sequence[int],
        ends: Sequence[int],
        sizes: Sequence[int],
        pins: Sequence[int],
        aligns: Sequence[int] | None = None,
    ) -> None:
        first, last, self.sections = _sections(starts, ends)
        aligns = aligns or [1] * len(starts)
        self.names = sorted(range(len(starts)), key=lambda i: (sizes[i], first[i], last[i], pins[i], aligns[i]))
        self.count = len(self.names)
        self.size = [sizes[i] for i in self.names]
        self.first = [first[i] for i in self.names]
        self.last = [last[i] for i in self.names]
        self.pin = [pins[i] for i in self.names]
        self.align = [aligns[i] for i in self.names]
        self.pinned = sum(1 << b for b in range(self.count) if self.pin[b] != FREE)
        self.choosy = sum(1 << b for b in range(self.count) if self.pin[b] != FREE or self.align[b] > 1)
        """Buffers that not every offset is good enough for."""
        # One more section at both ends, which nothing covers: walls.
        self.cover = [0] * (self.sections + 2)
        self.live = [0] * (self.sections + 2)
        self.starts_from = [0] * (self.sections + 3)
        """Buffers whose first section is this one or later."""
        self.ends_by = [0] * (self.sections + 2)
        """Buffers whose last section is this one or earlier."""
        for b in range(self.count):
            for section in range(self.first[b], self.last[b] + 1):
                self.cover[section] |= 1 << b
                self.live[section] += self.size[b]
            self.starts_from[self.first[b]] |= 1 << b
            self.ends_by[self.last[b]] |= 1 << b
        for section in range(self.sections, -1, -1):
            self.starts_from[section] |= self.starts_from[section + 1]
        for section in range(1, self.sections + 2):
            self.ends_by[section] |= self.ends_by[section - 1]
        self.twin = [0] * self.count
        """The buffer before, as a set, where the two can be exchanged: the earlier one is placed first."""
        for b in range(1, self.count):
            if self._shape(b) == self._shape(b - 1) and self.pin[b] == FREE:
                self.twin[b] = 1 << (b - 1)
        tops = [self.pin[b] + self.size[b] for b in range(self.count) if self.pin[b] != FREE]
        self.lower_bound = max(self.live + tops)

    def _shape(self, b: int) -> tuple[int, int, int, bool, int]:
        return self.size[b], self.first[b], self.last[b], self.pin[b] == FREE, self.align[b]

    def rest(self, b: int, height: int) -> int:
        """The lowest offset from `height` on that a buffer can have; its pin, even if that is lower."""
        if self.pin[b] != FREE:
            return self.pin[b]
        return -(-height // self.align[b]) * self.align[b]

    def within(self, first: int, last: int) -> int:
        """The buffers that live in these sections only."""
        return self.starts_from[first] & self.ends_by[last]

    def windows(self, buffers: int, first: int, last: int) -> list[tuple[int, int]]:
        """The sections in runs that no buffer of the set crosses from one to the next; without those it leaves free."""
        found: list[tuple[int, int]] = []
        begin = before = 0
        for section in range(first, last + 1):
            alive = self.cover[section] & buffers
            if not alive & before:
                if before:
                    found.append((begin, section - 1))
                begin = section
            before = alive
        if before:
            found.append((begin, last))
        return found


def _sections(starts: Sequence[int], ends: Sequence[int]) -> tuple[list[int], list[int], int]:
    """First and last section of each interval, and their number: one per run of starts before an end."""
    events = [(end, 0, i) for i, end in enumerate(ends)] + [(start, 1, i) for i, start in enumerate(starts)]
    first, last = [0] * len(starts), [0] * len(starts)
    section, starting = 0, False
    for _, starts_now, i in sorted(events):
        if starts_now:
            section += not starting
            first[i] = section
        else:
            last[i] = section
        starting = bool(starts_now)
    return first, last, section
