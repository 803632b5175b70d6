"""The `plan` pass: an offset for every buffer, on chip and off chip."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ..dialects import tile
from ..dialects.dtypes import type_name
from ..dialects.errors import UserError
from ..dialects.graph_functions import OUTPUTS
from ..dialects.graph_primitives import ConstantOp, WeightOp
from ..dialects.target import Memory, Target, target_of
from ..dialects.tile_types import BufferType
from .bufferize_layout import slot_bytes
from .liveness import Lifetime, lifetimes, takeovers
from .plan_greedy import place_greedily
from .plan_inplace import launch_takeovers
from .plan_interval import Interval, Placement, live_bytes, pins_clash
from .plan_names import ARGUMENTS, DROPPED, MEMORY, OFFSET, WORKSPACE
from .plan_order import best_order, launches_of, reorder
from .plan_search import place as place_by_search
from .plan_slots import drop_slots
from .plan_validate import validate_plan
from .plan_validate_function import validate_function
from .plan_waits import Engines, cost_of, with_fewer_waits

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class PlanPass(ModulePass):
    """Requires buffer form; ensures that every `tile.alloc` has an `offset`.

    1. In each kernel every memory is planned by itself: lifetimes in list order, all of a loop for what comes from
       outside it; a narrower elementwise result may take over the bytes of the operand that dies with it; buffers of
       several slots keep them through their loop if there is room. What does not fit loses slots (`DROPPED`), one at a
       time, first where fewest bytes are transferred ahead of their use. Of plans with one peak one is taken in which
       engines wait less for each other's bytes.
    2. Off chip one address space holds inputs, outputs, constants and weights side by side, then the arena of
       intermediates, planned in the same way; the result of a launch may take over the bytes of an operand that dies
       with it. The offset of an intermediate is an address, not relative to the arena.
       Kernels are launched in another order where that lowers the arena's peak.

    Greedy orders come first; where they need more than is ever alive at once, `nodes` partial plans are searched.

    `keep`: offsets that are there (an edited dump) stay where they are and are checked; by default all are recomputed.
    Rejects (UserError) what does not fit, with the buffers alive at the peak, and stale offsets, with both buffers.
    """

    name = "plan"
    keep: bool = False
    nodes: int = 2000

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        for kernel in [k for k in op.ops if isinstance(k, tile.KernelOp)]:
            self.kernel(kernel, target)
        for function in [f for f in op.ops if isinstance(f, FuncOp) and OUTPUTS in f.attributes]:
            self.function(function, target)

    def kernel(self, kernel: tile.KernelOp, target: Target) -> None:
        block = kernel.body.block
        lives = lifetimes(block, target)
        pairs = takeovers(block, lives)
        engines = Engines(block, target)
        report: dict[str, Attribute] = {}
        dropped: dict[str, Attribute] = {}
        for memory in sorted({life.memory for life in lives}):
            count = 0
            while True:
                held = [life for life in lives if life.memory == memory]
                taken = [pair for pair in pairs if pair[0].memory == memory]
                try:
                    found = self.place(held, taken, target.memories[memory], memory, kernel, engines=engines)
                    break
                except UserError:
                    less = 0 if self.keep else drop_slots(held, target.memories[memory].bytes)
                    if not less:
                        raise
                count += less
                lives = lifetimes(block, target)
                pairs = takeovers(block, lives)
                engines = Engines(block, target)
            report[memory] = _numbers([found.peak, found.lower_bound])
            _log.debug(
                "@%s in %s: %d buffers in %d bytes, at least %d needed, %d slots dropped",
                kernel.sym_name.data, memory, len(held), found.peak, found.lower_bound, count,
            )  # fmt: skip
            if count:
                dropped[memory] = IntegerAttr(count, i64)
        validate_plan(block, target)
        kernel.attributes[MEMORY] = DictionaryAttr(report)
        if dropped:
            kernel.attributes[DROPPED] = DictionaryAttr(dropped)

    def function(self, function: FuncOp, target: Target) -> None:
        block = function.body.block
        memory = target.offchip_memory
        addresses: list[int] = []
        base = 0
        for arg in block.args:
            assert isinstance(arg.type, BufferType)
            addresses.append(base)
            base += slot_bytes(arg.type, memory)
        for op in block.ops:
            if isinstance(op, ConstantOp | WeightOp):
                kinds = [
                    use.operation.results[0].type for use in op.res.uses if isinstance(use.operation, tile.AliasOp)
                ]
                op.attributes[OFFSET] = IntegerAttr(base, i64)
                base += next((slot_bytes(kind, memory) for kind in kinds if isinstance(kind, BufferType)), 0)
        if base > memory.bytes:
            message = f"inputs, outputs and constants take {base} bytes and do not fit into '{target.offchip}' of"
            raise UserError(f"{message} {memory.bytes}", function.location)
        if not self.keep:
            self.order(function, target, memory.bytes - base)
        lives = lifetimes(block, target)
        pairs = launch_takeovers(function, _kernels(function), lives)
        found = self.place(lives, pairs, memory, target.offchip, function, base)
        function.attributes[ARGUMENTS] = DenseArrayBase.from_list(i64, addresses)
        validate_function(function, target)
        function.attributes[WORKSPACE] = IntegerAttr(found.peak, i64)
        whole = {target.offchip: _numbers([base + found.peak, base + found.lower_bound])}
        function.attributes[MEMORY] = DictionaryAttr(whole)

    def order(self, function: FuncOp, target: Target, room: int) -> None:
        """Reorders launches where dependences leave freedom and the arena's peak becomes lower."""
        kernels = _kernels(function)
        align = target.offchip_memory.align

        def peak() -> int:
            lives = lifetimes(function.body.block, target)
            units = _units(lives, launch_takeovers(function, kernels, lives))
            return self.placed([self.interval(unit, True, 0, align) for unit in units], room).peak

        sizes: dict[Operation, int] = {life.alloc: life.size for life in lifetimes(function.body.block, target)}
        order = best_order(launches_of(function, kernels, sizes))
        if order == sorted(order):
            return
        before = peak()
        reorder(function, order)
        if peak() >= before:
            reorder(function, [order.index(number) for number in range(len(order))])

    def place(
        self,
        lives: Sequence[Lifetime],
        pairs: Sequence[tuple[Lifetime, Lifetime]],
        memory: Memory,
        name: str,
        owner: Operation,
        base: int = 0,
        engines: Engines | None = None,
    ) -> Placement:
        """Sets the offsets in one memory, `base` and up; with `engines` such that few of them wait for reused bytes."""
        room = memory.bytes - base
        if self.keep:
            pairs = [(held, made) for held, made in pairs if held.alloc.offset == made.alloc.offset]
        best: tuple[Placement, list[list[Lifetime]], list[Interval]] | None = None
        for extended in (True, False):
            for joined in (pairs, pairs[:0]) if pairs else (pairs,):
                units = _units(lives, joined)
                intervals = [self.interval(unit, extended, base, memory.align) for unit in units]
                if extended and pins_clash(intervals):
                    continue  # kept offsets that were planned without the extension
                found = self.placed(intervals, room)
                if best is None or found.peak < best[0].peak:
                    best = found, units, intervals
            if best is not None and best[0].peak <= room:
                break
            if best is not None and all(life.whole == (life.start, life.end) for life in lives):
                break
        assert best is not None
        found, units, intervals = best
        if found.peak > room:
            raise _too_big(units, intervals, found, room, name, owner)
        if engines is not None:
            found = with_fewer_waits(intervals, found, cost_of(units, engines))
        for unit, offset in zip(units, found.offsets, strict=True):
            for life in unit:
                life.alloc.offset = IntegerAttr(base + offset, i64)
        return found

    def placed(self, intervals: Sequence[Interval], room: int) -> Placement:
        """Greedy orders, and the search where they miss the lower bound. Kept offsets that cannot be right go through:
        `validate_plan` says what is wrong with them."""
        if pins_clash(intervals) or any(one.pinned is not None and one.pinned % one.align for one in intervals):
            return place_greedily(intervals)
        return place_by_search(intervals, room, self.nodes)

    def interval(self, unit: Sequence[Lifetime], extended: bool, base: int, align: int) -> Interval:
        spans = [life.whole if extended else (life.start, life.end) for life in unit]
        offset = unit[0].alloc.offset if self.keep else None
        pinned = None if offset is None else offset.value.data - base
        if pinned is not None and pinned < 0:
            what = f"{describe(unit[0])} at {pinned + base}"
            raise UserError(f"stale offset: {what} lies where other things do, below {base}", unit[0].alloc.location)
        start, end = min(first for first, _ in spans), max(last for _, last in spans)
        return Interval(start, end + 1, max(life.size for life in unit), pinned, align)


def _kernels(function: FuncOp) -> dict[str, tile.KernelOp]:
    module = function.parent_op()
    assert isinstance(module, ModuleOp)
    return {op.sym_name.data: op for op in module.ops if isinstance(op, tile.KernelOp)}


def _units(lives: Sequence[Lifetime], pairs: Sequence[tuple[Lifetime, Lifetime]]) -> list[list[Lifetime]]:
    """What gets one offset: a buffer, or a chain of buffers each of which takes over the one before."""
    unit = {life: [life] for life in lives}
    for held, made in pairs:
        joined = unit[held]
        joined += unit[made]
        for life in unit[made]:
            unit[life] = joined
    seen: dict[int, list[Lifetime]] = {}
    for life in lives:
        seen.setdefault(id(unit[life]), unit[life])
    return list(seen.values())


def planned_bytes(owner: Operation, memory: str) -> tuple[int, int]:
    """Highest byte used and most bytes alive at once in a memory of a planned kernel or function."""
    report = owner.attributes.get(MEMORY)
    values = report.data.get(memory) if isinstance(report, DictionaryAttr) else None
    peak, bound = cast("ArrayAttr[IntegerAttr]", values) if values is not None else (IntegerAttr(0, i64),) * 2
    return peak.value.data, bound.value.data


def _numbers(values: Sequence[int]) -> ArrayAttr[Attribute]:
    return ArrayAttr[Attribute]([IntegerAttr(value, i64) for value in values])


def _too_big(
    units: Sequence[Sequence[Lifetime]],
    intervals: Sequence[Interval],
    found: Placement,
    room: int,
    memory: str,
    owner: Operation,
) -> UserError:
    live, where = live_bytes(intervals)
    alive = [
        (interval.size, unit[0])
        for unit, interval in zip(units, intervals, strict=True)
        if interval.start <= where < interval.end
    ]
    alive.sort(key=lambda pair: -pair[0])
    notes = [(f"{describe(life)} takes {size} bytes", life.alloc.location) for size, life in alive]
    if live > room:
        many = "buffer" if len(alive) == 1 else "buffers"
        message = f"memory '{memory}' has {room} bytes, {live} are needed at once by {len(alive)} {many}"
    else:
        message = (
            f"memory '{memory}' has {room} bytes; {live} are needed at once, and the best plan found takes {found.peak}"
        )
    listed = ", ".join(f"{describe(life)} {size}" for size, life in alive[:8])
    more = f" and {len(alive) - 8} more" if len(alive) > 8 else ""
    return UserError(f"{message}: {listed}{more}", owner.location, notes)


def describe(life: Lifetime) -> str:
    shape = "x".join(str(extent) for extent in life.type.shape)
    hint = life.alloc.res[0].name_hint
    slots = f" in {life.slots} slots" if life.slots > 1 else ""
    return f"{'%' + hint + ': ' if hint else ''}{shape}x{type_name(life.type.element_type)}{slots}"
