"""Which pairs of instructions need an event: all conflicts, then the least set that still orders each of them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from ..dialects import hardware
from .sync_trace import Access, Instance, Trace


@dataclass(frozen=True, eq=False)
class Event:
    """`source` must have finished before `sink` starts, `distance` iterations of their common loops later.

    `first` and `second` are the ops that contain them in the innermost common block; `outer` is the outermost loop
    around that block, None at the top of the kernel.
    """

    source: hardware.InstructionOp
    sink: hardware.InstructionOp
    first: Operation
    second: Operation
    outer: Operation | None
    distance: int

    @property
    def engines(self) -> tuple[str, str]:
        return self.source.engine.data, self.sink.engine.data


def conflicts(trace: Trace) -> list[tuple[Instance, Instance]]:
    """Pairs on different engines that touch a common byte, one of them writing, with no write of the same bytes between."""
    live: dict[object, list[tuple[Instance, Access]]] = {}
    found: dict[tuple[int, int], tuple[Instance, Instance]] = {}
    for instance in trace.instances:
        for access in sorted(instance.accesses, key=lambda a: a.writes):
            held = live.setdefault(access.footprint.space, [])
            kept: list[tuple[Instance, Access]] = []
            for earlier, other in held:
                if (access.writes or other.writes) and other.footprint.overlaps(access.footprint):
                    if earlier.engine != instance.engine:
                        found[earlier.number, instance.number] = (earlier, instance)
                    if access.writes and access.footprint.covers(other.footprint):
                        continue
                elif (
                    not access.writes
                    and not other.writes
                    and earlier.engine == instance.engine
                    and access.footprint.covers(other.footprint)
                ):
                    continue  # a later read of the same engine stands for it
                kept.append((earlier, other))
            kept.append((instance, access))
            live[access.footprint.space] = kept
    return list(found.values())


def candidates(pairs: list[tuple[Instance, Instance]]) -> list[Event]:
    """One event per pair of instructions, at the least distance that any of its conflicts has."""
    least: dict[tuple[Operation, Operation], int] = {}
    for earlier, later in pairs:
        loop = common_loop(earlier.op, later.op)
        distance = later.linear[loop] - earlier.linear[loop]
        key = (earlier.op, later.op)
        least[key] = min(distance, least.get(key, distance))
    return [_event(source, sink, distance) for (source, sink), distance in least.items()]


def _event(source: Operation, sink: Operation, distance: int) -> Event:
    assert isinstance(source, hardware.InstructionOp) and isinstance(sink, hardware.InstructionOp)
    block = common_block(source, sink)
    first, second = ancestor_in(source, block), ancestor_in(sink, block)
    loops = _loops(first)
    return Event(source, sink, first, second, loops[0] if loops else None, distance)


def _loops(op: Operation) -> list[Operation]:
    """Loops around an op, outermost first."""
    found: list[Operation] = []
    parent = op.parent_op()
    while isinstance(parent, hardware.ForOp):
        found.append(parent)
        parent = parent.parent_op()
    return found[::-1]


def common_loop(left: Operation, right: Operation) -> Operation | None:
    """The innermost loop around both, None where only the kernel is."""
    shared = None
    for a, b in zip(_loops(left), _loops(right), strict=False):
        if a is not b:
            break
        shared = a
    return shared


def common_block(left: Operation, right: Operation) -> Block:
    loop = common_loop(left, right)
    if isinstance(loop, hardware.ForOp):
        return loop.body.block
    loops = _loops(left)
    block = (loops[0] if loops else left).parent
    assert block is not None
    return block


def ancestor_in(op: Operation, block: Block) -> Operation:
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


class Order:
    """Happens-before on a trace: engines in order, and events whose k-th wait follows their k-th signal."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.previous: list[int | None] = []
        last: dict[str, int] = {}
        for instance in trace.instances:
            self.previous.append(last.get(instance.engine))
            last[instance.engine] = instance.number

    def edges(self, event: Event) -> list[tuple[int, int]]:
        """What an event orders: (last instance before a signal, first instance after the wait that matches it)."""
        source, sink = event.engines
        signals = [span.end for span in self.trace.spans[event.first]]
        waits = [span.start for span in self.trace.spans[event.second]]
        if event.distance and event.outer is not None:
            end = self.trace.spans[event.outer][-1].end
            waits = [*waits[event.distance :], *[end] * min(event.distance, len(signals))]
        found: list[tuple[int, int]] = []
        for signal, wait in zip(signals, waits, strict=False):
            before, after = self.trace.before(source, signal), self.trace.after(sink, wait)
            if before is not None and after is not None:
                found.append((before, after))
        return found

    def ordered(self, edges: list[list[int]], pairs: list[tuple[int, int]]) -> bool:
        """Whether every pair is ordered by `edges` (predecessors of each instance) and the engines' own order."""
        ancestors: list[int] = []
        for number, previous in enumerate(self.previous):
            mask = 0
            if previous is not None:
                mask = ancestors[previous] | (1 << previous)
            for before in edges[number]:
                mask |= ancestors[before] | (1 << before)
            ancestors.append(mask)
        return all(ancestors[later] >> earlier & 1 for earlier, later in pairs)


def least_events(trace: Trace) -> list[Event]:
    """Events such that every conflict is ordered and none of them can be left out."""
    pairs = conflicts(trace)
    events = candidates(pairs)
    order = Order(trace)
    wanted = [(earlier.number, later.number) for earlier, later in pairs]
    orders = {event: order.edges(event) for event in events}

    def holds(kept: list[Event]) -> bool:
        edges: list[list[int]] = [[] for _ in trace.instances]
        for event in kept:
            for before, after in orders[event]:
                if before < after:
                    edges[after].append(before)
        return order.ordered(edges, wanted)

    kept = events
    for event in sorted(events, key=lambda e: -_span(e, trace)):
        rest = [other for other in kept if other is not event]
        if holds(rest):
            kept = rest
    return kept


def _span(event: Event, trace: Trace) -> int:
    """How far apart an event's ends are: the farther, the likelier that others imply it."""
    first, second = trace.spans[event.first][0], trace.spans[event.second][0]
    return abs(second.start - first.start) + event.distance * (len(trace.instances) + 1)
