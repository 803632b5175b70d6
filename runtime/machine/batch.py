"""A kernel as calls on whole arrays: what `plan.py` makes and `replay.py` executes.

Values are numbered. The array of a value has one axis per loop depth in front (extent 1 where it does not depend on the
loop's counter, or the loop is not batched), then the dimensions of the region it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .access import Access, Lead
from .program import View

Array: TypeAlias = npt.NDArray[Any]
Ranges: TypeAlias = dict[int, tuple[int, int]]
"""Iterations [low, high) of loops, by depth, counted from the first that is batched."""


def part_of(array: Array, ranges: Ranges) -> Array:
    """The part of an array over iterations, where it depends on them."""
    for axis, (low, high) in ranges.items():
        if array.shape[axis] > 1:
            array = array[(slice(None),) * axis + (slice(low, high),)]
    return array


@dataclass(frozen=True, eq=False)
class Call:
    """inputs   values
    output   the value it gives, None for a store
    axes     loops of its segment on whose counters it depends: it is called for every part of them
    frees    values that nobody needs afterwards
    """

    inputs: tuple[int, ...]
    output: int | None
    axes: frozenset[int]
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Apply(Call):
    """A function of arrays."""

    function: Callable[..., Array] = np.asarray


@dataclass(frozen=True, eq=False)
class Counting(Call):
    """A function of the counters: numbers, or arrays over their axes."""

    counters: tuple[int | Array, ...] = ()
    function: Callable[[Sequence[int | Array]], Array] = np.asarray


@dataclass(frozen=True, eq=False)
class Places:
    """Addresses off chip, relative to the buffer: one per iteration, `strides` apart if they are evenly spaced."""

    at: npt.NDArray[np.int64]
    strides: tuple[int, ...] | None

    @staticmethod
    def of(at: npt.NDArray[np.int64]) -> Places:
        zero = (0,) * at.ndim
        steps = [int(at[(*zero[:d], 1, *zero[d + 1 :])] - at[zero]) if n > 1 else 0 for d, n in enumerate(at.shape)]
        positions = np.indices(at.shape, sparse=True)
        even = at[zero] + sum(step * p for step, p in zip(steps, positions, strict=True))
        return Places(at, tuple(steps) if np.array_equal(np.broadcast_to(even, at.shape), at) else None)

    def leads(self) -> list[tuple[int, Lead]]:
        """First addresses, extents and strides that together are all of them, in order."""
        if self.strides is None:
            return [(int(place), ((1,) * self.at.ndim, (0,) * self.at.ndim)) for place in self.at.flat]
        return [(int(self.at.flat[0]), (self.at.shape, self.strides))]

    def part(self, ranges: Ranges) -> Places:
        """Those of some iterations."""
        at = part_of(self.at, ranges)
        return self if at is self.at else Places(at, self.strides)


@dataclass(frozen=True, eq=False)
class Transfer(Call):
    """Reads the value from off-chip memory (a load, no inputs) or writes it there."""

    view: View = field(kw_only=True)
    part: Access = field(kw_only=True)
    places: Places = field(kw_only=True)


@dataclass(frozen=True, eq=False)
class Move:
    """Bytes of an argument that one instruction reads or writes: where, per iteration, and `when`, counted in
    instructions of the list."""

    view: View
    part: Access
    at: npt.NDArray[np.int64]
    when: npt.NDArray[np.int64]
    writes: bool


@dataclass(eq=False)
class Segment:
    """Calls for the iterations of batched loops, each directly in the one before: how many, by depth. None: once.

    `widths`: most elements that a call computes for one iteration, by the loops on which it depends. `frees`: values
    not needed after the last.
    """

    loops: dict[int, int] = field(default_factory=dict[int, int])
    calls: list[Call] = field(default_factory=list[Call])
    widths: dict[frozenset[int], int] = field(default_factory=dict[frozenset[int], int])
    frees: tuple[int, ...] = ()

    def parts(self, elements: int) -> Iterator[Ranges]:
        """All iterations, the innermost loop fastest, in parts as large as leaves calls at most so many elements."""
        steps = dict.fromkeys(self.loops, 1)
        for axis, count in reversed(self.loops.items()):
            widths = [n * prod(steps[a] for a in axes) for axes, n in self.widths.items() if axis in axes]
            steps[axis] = min(count, max(1, elements // max(widths, default=1)))
        for lows in product(*(range(0, count, steps[axis]) for axis, count in self.loops.items())):
            at = zip(lows, self.loops.items(), strict=True)
            yield {axis: (low, min(low + steps[axis], count)) for low, (axis, count) in at}


@dataclass(frozen=True, eq=False)
class Plan:
    """One launch: what it computes, what it counts, and what it moves in which order."""

    segments: list[Segment]
    values: int
    instructions: int
    links: Counter[str]
    moves: list[Move]
    ahead: dict[tuple[int, ...], bool] = field(default_factory=dict[tuple[int, ...], bool])

    def loads(self) -> list[Transfer]:
        """All calls that read off-chip memory."""
        calls = [call for segment in self.segments for call in segment.calls]
        return [call for call in calls if isinstance(call, Transfer) and call.output is not None]

    def reads_ahead(self, bases: Sequence[int], size: int) -> bool:
        """Whether, with the arguments at these places of a memory, nothing is read where something was written before:
        then all that is read can be read at the beginning."""
        key = tuple(bases)
        if key not in self.ahead:
            self.ahead[key] = self._reads_ahead(key, size)
        return self.ahead[key]

    def _reads_ahead(self, bases: tuple[int, ...], size: int) -> bool:
        written = np.zeros(size, np.bool_)
        number = np.concatenate([np.full(move.when.size, n) for n, move in enumerate(self.moves)])
        place = np.concatenate([np.broadcast_to(move.at, move.when.shape).ravel() for move in self.moves])
        for n in np.argsort(np.concatenate([move.when.ravel() for move in self.moves]), kind="stable"):
            move = self.moves[number[n]]
            covered = move.part.bytes(written, bases[move.view.buffer] + int(place[n]))
            if covered is None:
                return False
            if move.writes:
                covered[...] = True
            elif covered.any():
                return False
        return True


def finished(segments: Sequence[Segment]) -> list[Segment]:
    """Without calls whose value nobody needs, and with what each of the others frees."""
    last: set[int] = set()
    made: list[Segment] = []
    for segment in reversed(segments):
        # A call on fewer loops is not called for every part: its value stays.
        within = {call.output for call in segment.calls if len(call.axes) == len(segment.loops)}
        calls: list[Call] = []
        late: list[int] = []
        for call in reversed(segment.calls):
            if call.output is not None and call.output not in last:
                continue
            ends = [value for value in dict.fromkeys(call.inputs) if value not in last]
            last.update(ends)
            now = [value for value in ends if value in within or not segment.loops]
            late += [value for value in ends if value not in now]
            calls.append(replace(call, frees=tuple(now)))
        made.append(Segment(segment.loops, calls[::-1], segment.widths, tuple(late)))
    return made[::-1]
