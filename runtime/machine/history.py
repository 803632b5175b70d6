"""Who touched a byte last: told after the fact, by walking the launch again without data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from ...dialects.transfer import Region
from .access import byte_runs
from .affine import Counters
from .cases import Cases
from .program import EventStep, Instruction, Launch
from .queues import Item


def last_write(
    launch: Launch, order: Iterable[Item], cases: Mapping[Instruction, Cases], memory: str, byte: int, end: Item
) -> tuple[Instruction, tuple[int, ...]] | None:
    """The last instruction before `end`, in the order of execution, that wrote or poisoned a byte; None if none did."""
    found: tuple[Instruction, tuple[int, ...]] | None = None
    last, stop = end[0], tuple(end[1])
    for step, counters in order:
        if step is last and tuple(counters) == stop:
            return found
        if isinstance(step, EventStep) or step.output.memory != memory:
            continue
        place = byte - launch.bases[step.output.buffer] - step.output.offset.at(counters)
        if _covers(step, cases[step], counters, place):
            found = step, tuple(counters)
    return found


def _covers(step: Instruction, cases: Cases, counters: Counters, place: int) -> bool:
    """Whether a byte, counted from the start of the output's view, is written or poisoned."""
    case, view = cases.at(counters), step.output
    if case.whole is not None:
        part: Region = tuple((0, extent) for extent in view.shape)
    elif case.accesses[-1] is None:
        return False
    else:
        part = tuple((0, 1) if axis < 0 else case.region[axis] for axis in step.axes[-1])
    starts, ends = byte_runs(view.layout, part)
    run = int(np.searchsorted(starts, place, side="right")) - 1
    return run >= 0 and place < int(ends[run])
