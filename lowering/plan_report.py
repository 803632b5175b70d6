"""What there is to say of a plan: how good it is, and what lies where, for reports and pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..dialects import tile
from ..dialects.attributes import int_values
from ..dialects.dtypes import type_name
from ..dialects.graph_functions import OUTPUTS, output_arguments
from ..dialects.graph_primitives import ConstantOp, WeightOp
from ..dialects.target import Target, target_of
from ..dialects.tile_types import BufferType
from .bufferize_layout import slot_bytes
from .liveness import Lifetime, lifetimes, number
from .plan import describe, planned_bytes
from .plan_interval import Interval, live_bytes
from .plan_large import first_fit_peak
from .plan_names import ARGUMENTS, OFFSET


@dataclass(frozen=True)
class Placed:
    """One buffer: its name, the bytes it has and the positions at which it is needed. `region`: what else it is than an
    intermediate (input, output, constant)."""

    name: str
    interval: Interval
    offset: int
    location: Attribute | None = None
    region: str = ""


@dataclass(frozen=True)
class MemoryPlan:
    """The plan of one memory for one owner, a kernel or a function; of bare buffers both are empty."""

    owner: str
    memory: str
    placed: tuple[Placed, ...]
    capacity: int | None = None
    bound: int | None = None
    """The most bytes alive at once as the planner took it; by default counted here."""

    @property
    def intervals(self) -> list[Interval]:
        return [one.interval for one in self.placed]

    @property
    def peak(self) -> int:
        """The highest byte used, plus one."""
        return max((one.offset + one.interval.size for one in self.placed), default=0)

    @property
    def max_live(self) -> int:
        """The most bytes held at once: no plan has a lower peak."""
        return live_bytes(self.intervals)[0] if self.bound is None else self.bound

    @property
    def fragmentation(self) -> float:
        """The part of the peak that is not in use even when most is."""
        return 1 - self.max_live / self.peak if self.peak else 0.0

    @property
    def separate(self) -> int:
        """Bytes that buffers of their own would take, each in a place that nothing else uses."""
        return sum(one.interval.size for one in self.placed)

    @property
    def first_fit(self) -> int:
        """Bytes that a first-fit allocator at run time would take."""
        return first_fit_peak(self.intervals)

    def at_peak(self) -> list[Placed]:
        """The buffers held when most bytes are, the largest first."""
        _, where = live_bytes(self.intervals)
        alive = [one for one in self.placed if one.interval.start <= where < one.interval.end]
        return sorted(alive, key=lambda one: -one.interval.size)


def plans_of(module: ModuleOp) -> list[MemoryPlan]:
    """The plans of a module after `plan`: of each kernel its memories on chip, of a function the memory off chip."""
    target = target_of(module)
    found: list[MemoryPlan] = []
    for op in module.ops:
        if isinstance(op, tile.KernelOp):
            found += _of_block(op, op.sym_name.data, op.body.block, target, [])
        elif isinstance(op, FuncOp) and OUTPUTS in op.attributes and ARGUMENTS in op.attributes:
            found += _of_block(op, op.sym_name.data, op.body.block, target, _regions(op, target))
    return found


def _of_block(owner: Operation, name: str, block: Block, target: Target, fixed: Sequence[Placed]) -> list[MemoryPlan]:
    lives: dict[str, list[Lifetime]] = {target.offchip: []} if fixed else {}
    for life in lifetimes(block, target):
        lives.setdefault(life.memory, []).append(life)
    found: list[MemoryPlan] = []
    for memory, held in sorted(lives.items()):
        peak, bound = planned_bytes(owner, memory)
        # Slots are kept through their loop if there was room for that.
        kept = [Interval(life.whole[0], life.whole[1] + 1, life.size) for life in held]
        if live_bytes(kept)[0] > peak:
            kept = [Interval(life.start, life.end + 1, life.size) for life in held]
        placed = list(fixed) if memory == target.offchip else []
        for life, interval in zip(held, kept, strict=True):
            if life.alloc.offset is not None:
                placed.append(Placed(describe(life), interval, life.alloc.offset.value.data, life.alloc.location))
        found.append(MemoryPlan(name, memory, tuple(placed), target.memories[memory].bytes, bound))
    return found


def _regions(function: FuncOp, target: Target) -> list[Placed]:
    """Inputs, outputs and constants: each has bytes of its own for the whole program."""
    block = function.body.block
    end = max(number(block).last.values()) + 1
    offsets = function.attributes[ARGUMENTS]
    assert isinstance(offsets, DenseArrayBase)
    inputs = len(block.args) - output_arguments(function)
    found: list[Placed] = []

    def add(value: SSAValue, kind: BufferType, offset: int, region: str, location: Attribute | None) -> None:
        shape = "x".join(map(str, kind.shape))
        name = f"%{value.name_hint or region}: {shape}x{type_name(kind.element_type)}"
        size = slot_bytes(kind, target.memories[target.offchip]) if prod(kind.shape) else 0
        found.append(Placed(name, Interval(0, end, size), offset, location, region))

    for position, (arg, offset) in enumerate(
        zip(block.args, int_values(cast("DenseArrayBase[Any]", offsets)), strict=True)
    ):
        assert isinstance(arg.type, BufferType)
        add(arg, arg.type, offset, "input" if position < inputs else "output", arg.location)
    for op in block.ops:
        held = op.attributes.get(OFFSET)
        if isinstance(op, ConstantOp | WeightOp) and isinstance(held, IntegerAttr):
            offset = cast("IntegerAttr[Any]", held).value.data
            for kind in _kinds(op):
                add(op.res, kind, offset, "constant", op.location)
    return found


def _kinds(op: Operation) -> list[BufferType]:
    """The buffer that a constant is read as, if it is read."""
    users = [use.operation for use in op.results[0].uses]
    kinds = [user.results[0].type for user in users if isinstance(user, tile.AliasOp)]
    return [kind for kind in kinds if isinstance(kind, BufferType)][:1]
