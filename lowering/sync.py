"""The `sync` pass: counting events between engines, as few as order every conflict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import hardware
from ..dialects.errors import UserError
from ..dialects.target import target_of
from .early import load_early
from .sync_clip import Roots
from .sync_conflicts import Conflicts, conflicts_of
from .sync_events import Event, Placed, item_op, least_events
from .sync_numbers import merged, numbered
from .sync_trace import Body, Trace, trace_of


@dataclass(frozen=True)
class SyncPass(ModulePass):
    """Requires kernels of instructions; ensures that every two instructions of different engines that touch a common
    byte, one of them writing, are ordered, and that no event can be left out. See docs/sync.md.

    1. Events that are there already are dropped.
    2. `a` before `b` in one iteration → `signal` after `a`, `wait` before `b`.
    3. `b` must wait for `a` of c iterations ago → the same, with c signals before the outermost loop around them and
       c waits after it.
    4. Events of two engines share a number where their signals and waits come in the same order, or apart; where the
       numbers of the target do not do, two events become one that orders more.

    With `early`, loads at the front of a kernel begin before the launch before has ended, where they read what is there
    and fill bytes that it leaves free: they are marked, brought before other loads of their engine, and buffers of
    alternate kernels are moved apart in memory (lowering/early.py).

    Rejects (UserError) kernels that need more events at a time than the target has.
    """

    name = "sync"

    early: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        slots = target_of(op).event_slots
        for old in [o for o in op.walk() if isinstance(o, hardware.EventOp)]:
            Rewriter.erase_op(old)
        if self.early:
            load_early(op)
        roots = shared_buffers(op)
        for kernel in [k for k in op.ops if isinstance(k, hardware.KernelOp)]:
            trace = trace_of(kernel, roots)
            conflicts = conflicts_of(trace, roots)
            events, numbers = choose(kernel, trace, conflicts, slots)
            write(trace, events, numbers)


def choose(
    kernel: hardware.KernelOp, trace: Trace, conflicts: Conflicts, slots: int
) -> tuple[list[Event], Mapping[Event, int]]:
    """The least events and their numbers below `slots`. Raises UserError where there are not enough numbers."""
    events = least_events(trace, conflicts)
    while True:
        numbers, crowded = numbered(events, slots)
        if crowded is None:
            return events, numbers
        fewer = merged(events, crowded)
        if fewer is None:
            source, sink = trace.engines[crowded.source], trace.engines[crowded.sink]
            raise UserError(
                f"kernel @{kernel.sym_name.data} needs more than the {slots} events that engines '{source}' and "
                f"'{sink}' have between them",
                item_op(crowded.body, crowded.first).location,
                [("the instruction that waits", item_op(crowded.body, crowded.second).location)],
            )
        events = least_events(trace, conflicts, fewer)


def shared_buffers(module: ModuleOp) -> Roots:
    """The arguments of kernels that some launch gives the same bytes as another argument."""
    kernels = {k.sym_name.data: k for k in module.ops if isinstance(k, hardware.KernelOp)}
    groups: dict[SSAValue, SSAValue] = {}

    def find(value: SSAValue) -> SSAValue:
        while value in groups:
            value = groups[value]
        return value

    for program in [p for p in module.ops if isinstance(p, hardware.ProgramOp)]:
        for op in program.body.block.ops:
            kernel = kernels.get(op.callee.string_value()) if isinstance(op, hardware.LaunchOp) else None
            if kernel is None:
                continue
            seen: dict[SSAValue, SSAValue] = {}
            for given, arg in zip(op.operands, kernel.body.block.args, strict=True):
                first = seen.setdefault(_root(given), arg)
                if find(first) is not find(arg):
                    groups[find(arg)] = find(first)
    return {value: find(value) for value in groups}


def _root(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, hardware.AliasOp):
        value = value.owner.source
    return value


def write(trace: Trace, events: Sequence[Event], numbers: Mapping[Event, int]) -> None:
    """Inserts the signals and waits."""
    placed = Placed.of(events, trace.root)

    def make(kind: type[hardware.EventOp], event: Event, count: int, at: Operation) -> Operation:
        properties: dict[str, Attribute] = {
            "event": IntegerAttr(numbers[event], i64),
            "from": StringAttr(trace.engines[event.source]),
            "to": StringAttr(trace.engines[event.sink]),
        }
        if count > 1:
            properties["count"] = IntegerAttr(count, i64)
        made = kind.create(properties=properties)
        made.location = at.location
        return made

    for body in _bodies(trace.root):
        for index in range(len(body.items)):
            at, op = (body, index), item_op(body, index)
            before = [make(hardware.SignalOp, e, e.distance, op) for e in placed.credits.get(at, ())]
            before += [make(hardware.WaitOp, e, 1, op) for e in placed.waits.get(at, ())]
            after = [make(hardware.SignalOp, e, 1, op) for e in placed.signals.get(at, ())]
            after += [make(hardware.WaitOp, e, e.distance, op) for e in placed.drains.get(at, ())]
            if before:
                Rewriter.insert_op(before, InsertPoint.before(op))
            if after:
                Rewriter.insert_op(after, InsertPoint.after(op))


def _bodies(body: Body) -> list[Body]:
    found = [body]
    for item in body.items:
        if isinstance(item, Body):
            found += _bodies(item)
    return found
