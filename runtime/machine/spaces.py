"""Regions of bytes that views touch, numbered as they come, each with those that it shares a byte with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.transfer import Region
from .access import Runs, runs_meet
from .affine import Counters
from .cases import Cases
from .program import Instruction

Use: TypeAlias = "tuple[int, Instruction, tuple[int, ...]]"
"""An access: a number (in its engine, or of its core), the instruction and the counters of the loops around it."""


@dataclass(eq=False)
class Place:
    """A region of bytes: `meets` are the places that share a byte with it, itself among them."""

    low: int
    high: int
    base: int
    runs: Runs
    meets: list[Place] = field(default_factory=list["Place"])
    reads: dict[int, Use] = field(default_factory=dict[int, "Use"])
    writes: dict[int, Use] = field(default_factory=dict[int, "Use"])


class Space:
    """All places of one memory; views that cover the same bytes share one."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self.known: dict[tuple[int, bytes, bytes], Place] = {}
        self.bounds: npt.NDArray[np.int64] = np.empty((64, 2), np.int64)

    def place(self, base: int, runs: Runs) -> Place:
        starts, ends = runs
        key = (base + int(starts[0]), (starts - starts[0]).tobytes(), (ends - starts[0]).tobytes())
        if key not in self.known:
            self.known[key] = self._add(base, runs)
        return self.known[key]

    def meeting(self, base: int, runs: Runs) -> list[Place]:
        """The places that share a byte with a region."""
        count = len(self.places)
        low, high = base + int(runs[0][0]), base + int(runs[1][-1])
        near = np.flatnonzero((self.bounds[:count, 0] < high) & (self.bounds[:count, 1] > low))
        found = [self.places[number] for number in near]
        return [other for other in found if runs_meet(runs, other.runs, other.base - base) is not None]

    def _add(self, base: int, runs: Runs) -> Place:
        place = Place(base + int(runs[0][0]), base + int(runs[1][-1]), base, runs)
        count = len(self.places)
        for other in self.meeting(base, runs):
            place.meets.append(other)
            other.meets.append(place)
        place.meets.append(place)
        if count == len(self.bounds):
            self.bounds = np.concatenate([self.bounds, np.empty_like(self.bounds)])
        self.bounds[count] = place.low, place.high
        self.places.append(place)
        return place


def touched(step: Instruction, cases: Cases, number: int, counters: Counters) -> Region | None:
    """What an instruction touches of a view: the active region, or all of it where it is written afresh. None for no
    bytes."""
    view = step.views[number]
    if number == len(step.views) - 1 and step.fresh:
        part: Region = tuple((0, extent) for extent in view.shape)
    else:
        case = cases.at(counters)
        if case.accesses[number] is None:
            return None
        part = tuple((0, 1) if axis < 0 else case.region[axis] for axis in step.axes[number])
    return None if any(low >= high for low, high in part) else part
