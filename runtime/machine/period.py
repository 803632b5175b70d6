"""Skipping over iterations that repeat: where a loop has reached a period, the rest of it is that period again.

The state of a simulation is where every engine stands and what it waits for, all times counted from the moment that the
next transfer begins (what lies before that moment can delay nothing any more). If the state is the same at two
iterations of a loop but for the loop's counter, then what happened between them happens again, as long as the
instructions of later iterations touch regions of the same sizes and no engine leaves the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.hardware import ForOp
from .affine import AffineList
from .program import Instruction, Loop, View

IntArray: TypeAlias = npt.NDArray[np.int64]
State: TypeAlias = tuple[object, ...]
Walk: TypeAlias = "Callable[[Sequence[Any], list[Any]], Iterator[object]]"


@dataclass(frozen=True)
class Seen:
    """A state of a loop: iteration and time of the transfer it was seen at, the iterations of the engines that are
    least far, and what had been counted."""

    value: int
    time: int
    least: int
    counts: tuple[int, ...]


@dataclass(eq=False)
class Instance:
    """One execution of a loop, the counters around it being `outer`: states seen, and where it was looked at last."""

    outer: list[int]
    lower: int
    upper: int
    states: dict[State, Seen] = field(default_factory=dict[State, Seen])
    looked: dict[int, int] = field(default_factory=dict[int, int])
    bounds: IntArray | None = None


class Periods:
    """The current executions of the loops of a kernel. `loops` have the steps of all engines."""

    def __init__(self, loops: Iterable[Loop], walk: Walk) -> None:
        self.loops = {loop.op: loop for loop in loops}
        self.walk = walk
        self.instances: dict[ForOp, Instance] = {}
        self.regular: dict[ForOp, bool] = {}

    def instance(self, loop: Loop, outer: Sequence[int], lower: int, upper: int) -> Instance | None:
        """The execution of a loop around an engine; None for a loop inside which bounds depend on its counter."""
        regular = self.regular.get(loop.op)
        if regular is None:
            body = self.loops[loop.op].body
            regular = self.regular[loop.op] = not any(_bounds_depend(node, loop.depth) for node in body)
        if not regular:
            return None
        found = self.instances.get(loop.op)
        if found is None or found.outer != outer:
            found = self.instances[loop.op] = Instance(list(outer), lower, upper)
        return found

    def repetitions(self, instance: Instance, loop: Loop, seen: Seen, value: int, most: int) -> int:
        """How often the iterations from `seen` to `value` can follow once more, the engine farthest ahead being in
        iteration `most` now."""
        period = value - seen.value
        if instance.bounds is None:
            instance.bounds = self._bounds(instance, self.loops[loop.op])
        bounds = instance.bounds
        last = instance.upper - 1
        if bounds.size:
            equal = np.all(bounds[:, period:] == bounds[:, : bounds.shape[1] - period], axis=0)
            first = seen.least - instance.lower
            broken = np.flatnonzero(~equal[first:])
            if broken.size:  # iteration `first + broken` is unlike that one period later, which is not reached
                last = min(last, instance.lower + first + int(broken[0]) + period - 1)
        return max((last - most) // period, 0)

    def _bounds(self, instance: Instance, loop: Loop) -> IntArray:
        """Bounds of all active regions in one iteration that depend on the counter: a row each, a column for every
        iteration."""
        count = instance.upper - instance.lower
        counters: list[Any] = [*instance.outer, np.arange(instance.lower, instance.upper, dtype=np.int64)]
        counters += [0] * (_depth(loop) - len(counters))
        rows: dict[bytes, IntArray] = {}
        done: set[tuple[object, ...]] = set()
        for step in self.walk(loop.body, counters):
            if not isinstance(step, Instruction) or loop.depth not in step.depends:
                continue
            key = (step, *(counters[depth] for depth in sorted(step.depends) if depth > loop.depth))
            if key not in done:
                done.add(key)
                for view in step.views:
                    for row in _rows(view, counters, count):
                        rows[row.tobytes()] = row
        changing = [row for row in rows.values() if (row != row[0]).any()]
        return np.stack(changing) if changing else np.empty((0, count), np.int64)


def _rows(view: View, counters: Sequence[Any], count: int) -> Iterator[IntArray]:
    for bound in (view.start, view.valid):
        if bound is not None:
            for value, extent in zip(_at(bound, counters), view.shape, strict=True):
                yield np.broadcast_to(np.clip(np.asarray(value, np.int64), 0, extent), (count,))


def _at(bound: AffineList, counters: Sequence[Any]) -> tuple[object, ...]:
    """Bounds for all values of one counter at once: compiled expressions work on arrays just as on numbers."""
    return bound.at(counters)


def _bounds_depend(node: object, depth: int) -> bool:
    if not isinstance(node, Loop):
        return False
    if depth in node.lower.depends or depth in node.upper.depends:
        return True
    return any(_bounds_depend(inner, depth) for inner in node.body)


def _depth(loop: Loop) -> int:
    return max([loop.depth + 1, *(_depth(node) for node in loop.body if isinstance(node, Loop))])
