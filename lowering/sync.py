"""The `sync` pass: counting events between engines, as few as order every conflict."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Block, Operation
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import hardware
from ..dialects.errors import UserError
from ..dialects.target import target_of
from .sync_events import Event, least_events
from .sync_trace import trace_kernel


@dataclass(frozen=True)
class SyncPass(ModulePass):
    """Requires kernels of instructions; ensures that every two instructions of different engines that touch a common
    byte, one of them writing, are ordered, and that no event can be left out.

    1. Events that are there already are dropped.
    2. `a` before `b` in one iteration → `signal` after `a`, `wait` before `b`.
    3. `b` must wait for `a` of c iterations ago → the same, with c signals before the outermost loop around them and
       c waits after it.
    4. Events of two engines share a number where their signals and waits come in the same order, or apart.

    Rejects (UserError) kernels that need more events at a time than the target has.
    """

    name = "sync"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        slots = target_of(op).event_slots
        for kernel in [k for k in op.ops if isinstance(k, hardware.KernelOp)]:
            for old in [o for o in kernel.walk() if isinstance(o, hardware.EventOp)]:
                Rewriter.erase_op(old)
            events = least_events(trace_kernel(kernel))
            for event, number in number_events(kernel, events, slots).items():
                insert(event, number)


def number_events(kernel: hardware.KernelOp, events: list[Event], slots: int) -> dict[Event, int]:
    """Event numbers per ordered pair of engines. Raises UserError where `slots` do not do."""
    place = _places(kernel.body.block)
    numbers: dict[Event, int] = {}
    shared: dict[tuple[str, str], list[list[Event]]] = {}
    for event in sorted(events, key=lambda e: (place[e.first], place[e.second])):
        groups = shared.setdefault(event.engines, [])
        for number, group in enumerate(groups):
            if all(_compatible(event, other, place) for other in group):
                group.append(event)
                numbers[event] = number
                break
        else:
            numbers[event] = len(groups)
            groups.append([event])
            if len(groups) > slots:
                source, sink = event.engines
                raise UserError(
                    f"kernel @{kernel.sym_name.data} needs more than the {slots} events that engines '{source}' and "
                    f"'{sink}' have between them",
                    event.source.location,
                    [("the instruction that waits", event.sink.location)],
                )
    return numbers


def _places(block: Block) -> dict[Operation, int]:
    """Position of every op in the text."""
    parent = block.parent_op()
    assert parent is not None
    return {op: position for position, op in enumerate(parent.walk())}


def _compatible(event: Event, other: Event, place: dict[Operation, int]) -> bool:
    """Whether two events can share a number: the k-th wait still matches the k-th signal."""
    if event.first.parent is other.first.parent and event.distance == other.distance:
        signals, waits = place[event.first] - place[other.first], place[event.second] - place[other.second]
        return signals * waits > 0
    (low, high), (other_low, other_high) = _extent(event, place), _extent(other, place)
    return high < other_low or other_high < low


def _extent(event: Event, place: dict[Operation, int]) -> tuple[int, int]:
    """First and last place of the text that an event's signals and waits (all iterations) lie between."""
    if event.outer is None:
        return place[event.first], place[event.second]
    inner = max(place[op] for op in event.outer.walk())
    return place[event.outer] - (event.distance > 0), inner


def insert(event: Event, number: int) -> None:
    """Writes the signal and the wait, credits and drains."""
    source, sink = event.engines

    def make(kind: type[hardware.EventOp], count: int, at: Operation) -> hardware.EventOp:
        properties: dict[str, Attribute] = {
            "event": IntegerAttr(number, i64),
            "from": StringAttr(source),
            "to": StringAttr(sink),
        }
        if count > 1:
            properties["count"] = IntegerAttr(count, i64)
        made = kind.create(properties=properties)
        made.location = at.location
        return made

    Rewriter.insert_op(make(hardware.SignalOp, 1, event.source), InsertPoint.after(event.first))
    Rewriter.insert_op(make(hardware.WaitOp, 1, event.sink), InsertPoint.before(event.second))
    if event.distance:
        assert event.outer is not None
        credit = make(hardware.SignalOp, event.distance, event.source)
        drain = make(hardware.WaitOp, event.distance, event.sink)
        Rewriter.insert_op(credit, InsertPoint.before(event.outer))
        Rewriter.insert_op(drain, InsertPoint.after(event.outer))
