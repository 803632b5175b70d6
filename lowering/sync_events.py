"""Choosing events: the least set under which every conflict of a kernel's trace is ordered.

Engines execute in order, so what an engine knows of the others is one number for each: how many of its instances have
completed before what comes next. A signal hands that knowledge on, the wait that matches it takes it in. Every
conflict is ordered if each instance knows as much as it needs when its turn comes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.ir import Operation

from .sync_conflicts import Conflicts, common_body
from .sync_trace import Body, Instruction, Trace


@dataclass(frozen=True, eq=False)
class Event:
    """Engine `source` signals after item `first` of `body`, engine `sink` waits before item `second`.

    The k-th wait is for the (k − distance)-th signal: `distance` signals come before the outermost loop around the
    body, as many waits after it.
    """

    source: int
    sink: int
    body: Body
    first: int
    second: int
    distance: int

    @property
    def outer(self) -> Body:
        """The body of the outermost loop around the signals and waits."""
        return self.body.chain()[1]

    def implies(self, other: Event) -> bool:
        """Whether it alone orders all that another does."""
        if (self.source, self.sink, self.body) != (other.source, other.sink, other.body):
            return False
        # Seen from the wait of one iteration: an earlier wait of the iteration before, a later signal of the next.
        late = (self.second > other.second) + (self.first < other.first)
        return self.distance + late <= other.distance

    def span(self) -> tuple[int, int, int, int]:
        """How far its ends are apart; the farther, the likelier that others imply it."""
        return (self.distance, self.second - self.first, self.body.rows, -len(self.body.chain()))


def candidates(conflicts: Conflicts) -> list[Event]:
    """One event for each pair of instructions, without those that another one implies."""
    found: list[Event] = []
    for pair in conflicts.pairs:
        body = common_body(pair.first.body, pair.second.body)
        first, second = position(pair.first, body), position(pair.second, body)
        found.append(Event(pair.first.engine, pair.second.engine, body, first, second, pair.distance))
    kept: list[Event] = []
    for event in found:
        if not any(other.implies(event) for other in kept):
            kept = [other for other in kept if not event.implies(other)]
            kept.append(event)
    return kept


def position(instruction: Instruction, body: Body) -> int:
    """The item of a body that an instruction is or lies in."""
    inner: Body = instruction.body
    if inner is body:
        return body.items.index(instruction)
    while inner.parent is not body:
        assert inner.parent is not None
        inner = inner.parent
    return body.items.index(inner)


def item_op(body: Body, index: int) -> Operation:
    """The operation of an item: an instruction or a loop."""
    item = body.items[index]
    if isinstance(item, Instruction):
        return item.op
    assert item.loop is not None
    return item.loop


@dataclass(frozen=True, slots=True)
class Check:
    """An instance of `engine` that needs instances of others: pairs of engine and count."""

    engine: int
    needs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Signal:
    """`passed`: instances of the signalling engine before it."""

    event: Event
    passed: int
    count: int


@dataclass(frozen=True, slots=True)
class Wait:
    event: Event
    count: int


Step: TypeAlias = "Check | Signal | Wait"
Places: TypeAlias = dict[tuple[Body, int], list[Event]]
"""Item of a body → events there."""


@dataclass(eq=False)
class Placed:
    """Events by where they are written. At one item of a body: credits, waits, the item, signals, drains."""

    credits: Places
    waits: Places
    signals: Places
    drains: Places

    @staticmethod
    def of(events: Iterable[Event], root: Body) -> Placed:
        placed = Placed({}, {}, {}, {})
        for event in events:
            placed.signals.setdefault((event.body, event.first), []).append(event)
            placed.waits.setdefault((event.body, event.second), []).append(event)
            if event.distance:
                loop = (root, root.items.index(event.outer))
                placed.credits.setdefault(loop, []).append(event)
                placed.drains.setdefault(loop, []).append(event)
        return placed


def steps_of(trace: Trace, core: int, conflicts: Conflicts, events: Sequence[Event]) -> list[Step]:
    """The trace of one core in program order, reduced to what events order and are ordered by."""
    placed = Placed.of(events, trace.root)
    passed = [0] * len(trace.engines)
    steps: list[Step] = []

    def run(body: Body, row: int) -> None:
        for index, item in enumerate(body.items):
            at = (body, index)
            steps.extend(Signal(event, passed[event.source], event.distance) for event in placed.credits.get(at, ()))
            steps.extend(Wait(event, 1) for event in placed.waits.get(at, ()))
            if isinstance(item, Instruction):
                counts = conflicts.needs.get((item.number, row))
                if counts is not None:
                    needs = tuple((engine, count) for engine, count in enumerate(counts) if count)
                    steps.append(Check(item.engine, needs))
                passed[item.engine] += 1
            else:
                for inner in range(*item.children[row]):
                    run(item, inner)
            steps.extend(Signal(event, passed[event.source], 1) for event in placed.signals.get(at, ()))
            steps.extend(Wait(event, event.distance) for event in placed.drains.get(at, ()))

    run(trace.root, core)
    return steps


def all_ordered(steps: Sequence[Step], engines: int, left_out: frozenset[Event] = frozenset()) -> bool:
    """Whether every instance knows what it needs without the events `left_out`.

    False too where a wait comes before its signal in program order, which could never be executed.
    """
    known = [[0] * engines for _ in range(engines)]
    pending: dict[Event, deque[list[int]]] = {}
    for step in steps:
        if isinstance(step, Check):
            knows = known[step.engine]
            for engine, count in step.needs:
                if knows[engine] < count:
                    return False
        elif step.event in left_out:
            continue
        elif isinstance(step, Signal):
            told = list(known[step.event.source])
            told[step.event.source] = step.passed
            pending.setdefault(step.event, deque()).extend([told] * step.count)
        else:
            knows = known[step.event.sink]
            queue = pending.get(step.event, deque())
            for _ in range(step.count):
                if not queue:
                    return False
                for engine, count in enumerate(queue.popleft()):
                    if knows[engine] < count:
                        knows[engine] = count
    return True


def least_events(trace: Trace, conflicts: Conflicts, events: Sequence[Event] | None = None) -> list[Event]:
    """Events under which every conflict is ordered, none of which can be left out; in text order.

    Starts from `events` (default: one for each pair of instructions in conflict).
    """
    kept = list(candidates(conflicts) if events is None else events)
    cores = [steps_of(trace, core, conflicts, kept) for core in range(trace.root.rows)]
    out: frozenset[Event] = frozenset()
    for event in sorted(kept, key=Event.span, reverse=True):
        if all(all_ordered(steps, len(trace.engines), out | {event}) for steps in cores):
            out |= {event}
            if len(out) % 8 == 0:
                cores = [[s for s in steps if isinstance(s, Check) or s.event not in out] for steps in cores]
    return [event for event in kept if event not in out]
