"""A kernel as calls on whole arrays: what `plan.py` makes and `replay.py` executes.

Values are numbered. The array of a value has one axis per loop depth in front (extent 1 where it does not depend on the
loop's counter, or the loop is not batched), then the dimensions of the region it holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .access import Access, Lead
from .program import View

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Call:
    """inputs   values
    output   the value it gives, None for a store
    varies   it depends on the counter of its segment's loop: it is called for every part of it, not for the first alone
    frees    values that nobody needs afterwards
    """

    inputs: tuple[int, ...]
    output: int | None
    varies: bool
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

    def part(self, axis: int | None, low: int, high: int) -> Places:
        """Those of the iterations [low, high) of one loop."""
        if axis is None or self.at.shape[axis] == 1:
            return self
        return Places(self.at[(slice(None),) * axis + (slice(low, high),)], self.strides)


@dataclass(frozen=True, eq=False)
class Transfer(Call):
    """Reads the value from off-chip memory (a load, no inputs) or writes it there."""

    view: View = field(kw_only=True)
    part: Access = field(kw_only=True)
    places: Places = field(kw_only=True)


@dataclass(eq=False)
class Segment:
    """Calls for `count` iterations of the batched loop at depth `axis`; once, where no loop is batched.

    `widest`: most elements that a call computes for one of the iterations. `frees`: values not needed after the last.
    """

    axis: int | None = None
    count: int = 1
    calls: list[Call] = field(default_factory=list[Call])
    widest: int = 1
    frees: tuple[int, ...] = ()


@dataclass(frozen=True, eq=False)
class Plan:
    """One launch: what it computes, and what it counts."""

    segments: list[Segment]
    values: int
    instructions: int
    links: Counter[str]

    def loads(self) -> list[Transfer]:
        """All calls that read off-chip memory."""
        calls = [call for segment in self.segments for call in segment.calls]
        return [call for call in calls if isinstance(call, Transfer) and call.output is not None]


def finished(segments: Sequence[Segment]) -> list[Segment]:
    """Without calls whose value nobody needs, and with what each of the others frees."""
    last: set[int] = set()
    made: list[Segment] = []
    for segment in reversed(segments):
        within = {call.output for call in segment.calls if call.varies}
        calls: list[Call] = []
        late: list[int] = []
        for call in reversed(segment.calls):
            if call.output is not None and call.output not in last:
                continue
            ends = [value for value in dict.fromkeys(call.inputs) if value not in last]
            last.update(ends)
            now = ends if segment.axis is None else [value for value in ends if value in within]
            late += [value for value in ends if value not in now]
            calls.append(replace(call, frees=tuple(now)))
        made.append(Segment(segment.axis, segment.count, calls[::-1], segment.widest, tuple(late)))
    return made[::-1]
