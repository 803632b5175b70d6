"""Executes a plan on bytes: off-chip memory is read and written, what would lie on chip are arrays.

The iterations of batched loops are taken a part at a time, as many as keep the arrays in the caches of this computer.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .batch import Apply, Call, Counting, Places, Plan, Ranges, Segment, Transfer, part_of
from .memory import MemoryBytes
from .program import Launch

Array: TypeAlias = npt.NDArray[Any]

PART = 1 << 18
"""Elements of the widest value of a part: 1 MiB of f32."""


class Replay:
    """One launch of a kernel by its plan."""

    def __init__(self, plan: Plan, launch: Launch, memory: MemoryBytes) -> None:
        self.plan, self.launch, self.memory = plan, launch, memory
        self.overwritten = self._overwritten()
        self.before: dict[int, Array] = {}
        """What the overwritten arguments held when the kernel began."""

    def possible(self) -> bool:
        """Whether all that is loaded lies in memory and is defined, and nothing is loaded after something was written
        there under another name."""
        return self._apart() and self._within() and self._defined()

    def _within(self) -> bool:
        for load in self.plan.loads():
            number, places = load.view.buffer, load.places.at
            base, size = self.launch.bases[number], self.memory.size
            if number in self.overwritten:
                base, size = 0, self.launch.kernel.buffers[number].size
            if base + int(places.min()) + load.part.offset < 0 or base + int(places.max()) + load.part.end > size:
                return False
        return True

    def _overwritten(self) -> set[int]:
        """Arguments with bytes that are written under another name."""
        kernel, bases = self.launch.kernel, self.launch.bases
        spans = [(bases[n], bases[n] + kernel.buffers[n].size) for n in range(kernel.arguments)]
        read = {view.buffer for step in kernel.instructions() for view in step.views[:-1]} & set(
            range(kernel.arguments)
        )
        written = {step.output.buffer for step in kernel.instructions()} & set(range(kernel.arguments))
        return {
            m
            for n in written
            for m in read | written
            if n != m and spans[n][0] < spans[m][1] and spans[m][0] < spans[n][1]
        }

    def _apart(self) -> bool:
        kernel = self.launch.kernel
        if any(step.output.buffer in self.overwritten for step in kernel.instructions()):
            return False
        return not self.overwritten or self.plan.reads_ahead(self.launch.bases[: kernel.arguments], self.memory.size)

    def _defined(self) -> bool:
        owner = self.memory.owner
        if owner is None:
            return True
        whole: dict[int, bool] = {}
        for load in self.plan.loads():
            number = load.view.buffer
            mine = self.launch.owners[number] if self.memory.owned else 1
            base, size = self.launch.bases[number], self.launch.kernel.buffers[number].size
            if number not in whole:
                whole[number] = bool((owner[base : base + size] == mine).all())
            if whole[number]:
                continue
            for first, lead in load.places.leads():
                covered = load.part.bytes(owner, base + first, lead)
                if covered is None or not (covered == mine).all():
                    return False
        return True

    def run(self) -> None:
        """All segments in order."""
        values: list[Array | None] = [None] * self.plan.values
        for n in self.overwritten:
            base, size = self.launch.bases[n], self.launch.kernel.buffers[n].size
            self.before[n] = self.memory.data[base : base + size].copy()
        for segment in self.plan.segments:
            before: Ranges | None = None
            for ranges in segment.parts(PART):
                moved = None if before is None else {axis for axis in ranges if ranges[axis] != before[axis]}
                self._part(segment, ranges, moved, values)
                before = ranges
            for value in segment.frees:
                values[value] = None

    def _part(self, segment: Segment, ranges: Ranges, moved: set[int] | None, values: list[Array | None]) -> None:
        """`moved` are the loops whose iterations are others than in the part before; None in the first part."""
        for call in segment.calls:
            if moved is not None and moved.isdisjoint(call.axes):
                continue
            result = self._call(call, ranges, [values[n] for n in call.inputs])
            if call.output is not None:
                values[call.output] = result
            for value in call.frees:
                values[value] = None

    def _call(self, call: Call, ranges: Ranges, inputs: list[Any]) -> Array | None:
        match call:
            case Apply(function=function):
                return function(*inputs)
            case Counting(counters=counters, function=function):
                return function([part_of(c, ranges) if isinstance(c, np.ndarray) else c for c in counters])
            case Transfer(output=None):
                self._store(call, call.places.part(ranges), inputs[0])
                return None
            case Transfer():
                return self._load(call, call.places.part(ranges))
            case _:
                raise AssertionError(call)

    def _load(self, call: Transfer, places: Places) -> Array:
        number, dtype = call.view.buffer, call.view.element.numpy
        overwritten = number in self.before
        data, base = (self.before[number], 0) if overwritten else (self.memory.data, self.launch.bases[number])
        found = [call.part.read(data, base + at, dtype, lead) for at, lead in places.leads()]
        if len(found) == 1:
            return found[0]
        shape = found[0].shape[places.at.ndim :]
        return np.concatenate([array.reshape(1, *shape) for array in found]).reshape(*places.at.shape, *shape)

    def _store(self, call: Transfer, places: Places, value: Array) -> None:
        base, element = self.launch.bases[call.view.buffer], call.view.element
        owner = self.launch.owners[call.view.buffer]
        leads = places.leads()
        shape = (*places.at.shape, *call.part.logical)
        values = [value] if len(leads) == 1 else list(np.broadcast_to(value, shape).reshape(-1, *call.part.logical))
        for (at, lead), part in zip(leads, values, strict=True):
            call.part.write(self.memory.data, base + at, element.numpy, part, lead)
            self.memory.define(call.part, base + at, element.bytes, owner, lead)
