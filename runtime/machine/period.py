"""Skipping over iterations that repeat: where a loop has reached a period, the rest of it is that period again.

The state of a simulation is where every engine stands and what it waits for, all times counted from the earliest moment
at which anything can go on. If the state is the same at two
iterations of a loop but for the loop's counter, then what happened between them happens again, as long as the
instructions of later iterations touch regions of the same sizes and no engine leaves the loop.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.hardware import ForOp
from .affine import AffineList
from .program import Instruction, Loop, Node
from .tally import Counts

IntArray: TypeAlias = npt.NDArray[np.int64]
State: TypeAlias = tuple[object, ...]


@dataclass(frozen=True)
class Seen:
    """A state of a loop: iteration and time it was seen at, the iteration of the engine that is least far, and what had
    been counted."""

    value: int
    time: int
    least: int
    counts: Counts


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

    def __init__(self, loops: Iterable[Loop]) -> None:
        self.loops = {loop.op: loop for loop in loops}
        self.instances: dict[ForOp, Instance] = {}
        self.regular: dict[ForOp, bool] = {}

    def instance(self, loop: Loop, outer: Sequence[int], lower: int, upper: int) -> Instance | None:
        """The execution of a loop around an engine; None for a loop inside which bounds depend on its counter."""
        regular = self.regular.get(loop.op)
        if regular is None:
            body = self.loops[loop.op].body
            regular = self.regular[loop.op] = not any(bounds_depend(node, loop.depth) for node in body)
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
            instance.bounds = bounds_over(self.loops[loop.op], instance.outer, instance.lower, instance.upper)
        bounds = instance.bounds
        last = instance.upper - 1
        if bounds.size:
            equal = np.all(bounds[:, period:] == bounds[:, : bounds.shape[1] - period], axis=0)
            first = seen.least - instance.lower
            broken = np.flatnonzero(~equal[first:])
            if broken.size:  # iteration `first + broken` is unlike that one period later, which is not reached
                last = min(last, instance.lower + first + int(broken[0]) + period - 1)
        return max((last - most) // period, 0)


def bounds_over(loop: Loop, outer: Sequence[int], lower: int, upper: int) -> IntArray:
    """Bounds of all active regions in one iteration that change with the loop's counter: a row each, a column for
    every iteration in [lower, upper). `outer` are the counters around the loop."""
    count = upper - lower
    counters: list[Any] = [*outer, np.arange(lower, upper, dtype=np.int64)]
    counters += [0] * (_depth(loop) - len(counters))
    rows: dict[bytes, IntArray] = {}
    for step, inner in _inside(loop.body, ()):
        for view in step.views:
            for bound in (view.start, view.valid):
                if bound is not None and loop.depth in bound.depends:
                    for row in _rows(bound, view.shape, loop.depth, inner, counters, count):
                        rows[row.tobytes()] = row
    return np.stack(list(rows.values())) if rows else np.empty((0, count), np.int64)


def _inside(body: Sequence[Node], loops: tuple[Loop, ...]) -> Iterator[tuple[Instruction, tuple[Loop, ...]]]:
    """Every instruction with the loops of the body around it, outermost first."""
    for node in body:
        if isinstance(node, Loop):
            yield from _inside(node.body, (*loops, node))
        elif isinstance(node, Instruction):
            yield node, loops


def _rows(
    bound: AffineList, shape: Sequence[int], depth: int, inner: Sequence[Loop], counters: list[Any], count: int
) -> Iterator[IntArray]:
    """What the bounds of a view are over the iterations, where they change, for every value of the inner counters that
    they depend on too."""
    for number, (depends, extent) in enumerate(zip(bound.each, shape, strict=True)):
        if depth in depends:
            for _ in _values(inner, _needed(depends, inner), counters):
                value = np.asarray(bound.at(counters)[number], np.int64)  # compiled expressions work on arrays too
                row = np.broadcast_to(np.clip(value, 0, extent), (count,))
                if (row != row[0]).any():
                    yield row


def _needed(depends: frozenset[int], inner: Sequence[Loop]) -> frozenset[int]:
    """Depths of the inner loops whose counters matter, for a bound or for the bounds of a loop that matters."""
    found = depends
    for loop in reversed(inner):
        if loop.depth in found:
            found = found | loop.lower.depends | loop.upper.depends
    return found


def _values(loops: Sequence[Loop], needed: frozenset[int], counters: list[Any]) -> Iterator[None]:
    """Sets `counters` to every combination of the needed counters of nested loops."""
    if not loops:
        yield
        return
    loop, rest = loops[0], loops[1:]
    if loop.depth not in needed:
        yield from _values(rest, needed, counters)
        return
    for value in range(loop.lower.at(counters), loop.upper.at(counters)):
        counters[loop.depth] = value
        yield from _values(rest, needed, counters)


def bounds_depend(node: object, depth: int) -> bool:
    """Whether a loop in or at `node` has bounds over the counter at `depth`."""
    if not isinstance(node, Loop):
        return False
    if depth in node.lower.depends or depth in node.upper.depends:
        return True
    return any(bounds_depend(inner, depth) for inner in node.body)


def _depth(loop: Loop) -> int:
    return max([loop.depth + 1, *(_depth(node) for node in loop.body if isinstance(node, Loop))])
