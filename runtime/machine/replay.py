"""Executes a plan on bytes: off-chip memory is read and written, what would lie on chip are arrays.

The iterations of a batched loop are taken a part at a time, as many as keep the arrays in the caches of this computer.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from .batch import Apply, Call, Counting, Places, Plan, Segment, Transfer
from .memory import MemoryBytes
from .program import Launch

Array: TypeAlias = npt.NDArray[Any]

PART = 1 << 18
"""Elements of the widest value of a part: 1 MiB of f32."""


class Replay:
    """One launch of a kernel by its plan."""

    def __init__(self, plan: Plan, launch: Launch, memory: MemoryBytes) -> None:
        self.plan, self.launch, self.memory = plan, launch, memory

    def possible(self) -> bool:
        """Whether all that is loaded lies in memory and is defined, and nothing that is written is loaded under another
        name."""
        return self._apart() and self._within() and self._defined()

    def _within(self) -> bool:
        for load in self.plan.loads():
            base = self.launch.bases[load.view.buffer]
            low, high = int(load.places.at.min()), int(load.places.at.max())
            if base + low + load.part.offset < 0 or base + high + load.part.end > self.memory.size:
                return False
        return True

    def _apart(self) -> bool:
        kernel, bases = self.launch.kernel, self.launch.bases
        spans = [(bases[n], bases[n] + kernel.buffers[n].size) for n in range(kernel.arguments)]
        read = {view.buffer for step in kernel.instructions() for view in step.views[:-1]} & set(
            range(kernel.arguments)
        )
        written = {step.output.buffer for step in kernel.instructions()} & set(range(kernel.arguments))
        return not any(
            n != m and spans[n][0] < spans[m][1] and spans[m][0] < spans[n][1] for n in written for m in read | written
        )

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
        for segment in self.plan.segments:
            part = max(1, PART // segment.widest)
            for low in range(0, segment.count, part):
                self._part(segment, low, min(low + part, segment.count), values)
            for value in segment.frees:
                values[value] = None

    def _part(self, segment: Segment, low: int, high: int, values: list[Array | None]) -> None:
        for call in segment.calls:
            if low and not call.varies:
                continue
            result = self._call(call, segment.axis, low, high, [values[n] for n in call.inputs])
            if call.output is not None:
                values[call.output] = result
            for value in call.frees:
                values[value] = None

    def _call(self, call: Call, axis: int | None, low: int, high: int, inputs: list[Any]) -> Array | None:
        match call:
            case Apply(function=function):
                return function(*inputs)
            case Counting(counters=counters, function=function):
                cut = (slice(None),) * (axis or 0) + (slice(low, high),)
                return function(
                    [
                        c[cut] if isinstance(c, np.ndarray) and axis is not None and c.shape[axis] > 1 else c
                        for c in counters
                    ]
                )
            case Transfer(output=None):
                self._store(call, call.places.part(axis, low, high), inputs[0])
                return None
            case Transfer():
                return self._load(call, call.places.part(axis, low, high))
            case _:
                raise AssertionError(call)

    def _load(self, call: Transfer, places: Places) -> Array:
        base, dtype = self.launch.bases[call.view.buffer], call.view.element.numpy
        found = [call.part.read(self.memory.data, base + at, dtype, lead) for at, lead in places.leads()]
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
