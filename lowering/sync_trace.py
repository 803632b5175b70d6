"""A short run of a kernel: the accesses of every instruction with the trip counts of long loops cut down.

Slots are used in turn, so a loop of N slots repeats every N iterations. A trip count is cut to the least number above
N that is equal to it modulo N: the order in which slots follow one another across nested loops stays what it is.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import lcm, prod
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import hardware
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.hardware_types import ViewType
from ..dialects.layout import Layout

Evaluate: TypeAlias = Callable[[Sequence[int]], int]
Runs: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Starts and ends of contiguous bytes, ascending."""


@dataclass(frozen=True, eq=False)
class Footprint:
    """The bytes that one view touches in one iteration, in one memory (or off-chip buffer)."""

    space: object
    base: int
    runs: Runs
    key: object

    @property
    def low(self) -> int:
        return self.base + int(self.runs[0][0])

    @property
    def high(self) -> int:
        return self.base + int(self.runs[1][-1])

    def overlaps(self, other: Footprint) -> bool:
        if self.space != other.space or self.high <= other.low or other.high <= self.low:
            return False
        return _overlap(self.key, other.key, other.base - self.base, _Pair(self.runs, other.runs))

    def covers(self, other: Footprint) -> bool:
        """Whether every byte of the other one is surely among these."""
        if self.space != other.space or self.low > other.low or self.high < other.high:
            return False
        return len(self.runs[0]) == 1 or (self.key == other.key and self.base == other.base)


class _Pair:
    """Carries two run lists past the cache key."""

    def __init__(self, left: Runs, right: Runs) -> None:
        self.left, self.right = left, right

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Pair)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=1 << 14)
def _overlap(left: object, right: object, shift: int, pair: _Pair) -> bool:
    starts, ends = pair.left
    other_starts, other_ends = pair.right[0] + shift, pair.right[1] + shift
    # The first of these runs that ends behind the start of each other run must not begin before that run's end.
    first = np.searchsorted(ends, other_starts, side="right")
    inside = first < len(starts)
    return bool(np.any(starts[first[inside]] < other_ends[inside]))


@dataclass(eq=False)
class Access:
    footprint: Footprint
    writes: bool


@dataclass(eq=False)
class Instance:
    """One execution of an instruction in the short run."""

    number: int
    op: hardware.InstructionOp
    engine: str
    linear: dict[Operation | None, int]
    accesses: list[Access]


@dataclass(eq=False)
class Span:
    """The instances of one execution of an op of a block: numbers [start, end)."""

    start: int
    end: int


@dataclass(eq=False)
class Trace:
    """Instances in program order, and for every op of every block the spans of its executions, in order."""

    instances: list[Instance] = field(default_factory=list[Instance])
    spans: dict[Operation, list[Span]] = field(default_factory=dict[Operation, list[Span]])
    engines: dict[str, list[int]] = field(default_factory=dict[str, list[int]])

    def before(self, engine: str, number: int) -> int | None:
        """The engine's last instance before a place in program order."""
        numbers = self.engines.get(engine, [])
        place = bisect_left(numbers, number)
        return numbers[place - 1] if place else None

    def after(self, engine: str, number: int) -> int | None:
        """The engine's first instance at or after a place in program order."""
        numbers = self.engines.get(engine, [])
        place = bisect_left(numbers, number)
        return numbers[place] if place < len(numbers) else None


def trace_kernel(kernel: hardware.KernelOp) -> Trace:
    """Runs the kernel's loops, cut down. Raises UserError for loops whose bounds are not constant."""
    return _Tracer(kernel).run()


class _Tracer:
    def __init__(self, kernel: hardware.KernelOp) -> None:
        self.kernel = kernel
        self.trace = Trace()
        self.period = lcm(*(_slots(op) for op in kernel.walk() if isinstance(op, hardware.BufferOp)), 1)
        self.values: dict[SSAValue, int] = {}
        self.linear: dict[Operation | None, int] = {None: 0}
        self.views: dict[SSAValue, Callable[[], Footprint | None]] = {}

    def run(self) -> Trace:
        self.block(self.kernel.body.block)
        return self.trace

    def trip(self, loop: hardware.ForOp) -> int:
        low, high = loop.lower.data.results[0], loop.upper.data.results[0]
        if not isinstance(low, AffineConstantExpr) or not isinstance(high, AffineConstantExpr) or low.value != 0:
            raise UserError("sync needs loops from 0 to a constant", loop.location)
        least = self.period + 1
        if high.value <= least + self.period:
            return high.value
        return least + (high.value - least) % self.period

    def block(self, block: Block) -> None:
        for op in block.ops:
            start = len(self.trace.instances)
            match op:
                case hardware.ForOp():
                    self.loop(op)
                case hardware.InstructionOp():
                    self.instruction(op)
                case _:
                    continue
            self.trace.spans.setdefault(op, []).append(Span(start, len(self.trace.instances)))

    def loop(self, op: hardware.ForOp) -> None:
        parent = op.parent_op()
        outer = self.linear[parent if isinstance(parent, hardware.ForOp) else None]
        trip = self.trip(op)
        for iteration in range(trip):
            self.values[op.counter] = iteration
            self.linear[op] = outer * trip + iteration
            self.block(op.body.block)

    def instruction(self, op: hardware.InstructionOp) -> None:
        accesses: list[Access] = []
        views = op.views
        for number, view in enumerate(views):
            writes = number == len(views) - 1
            footprint = self.footprint(view, writes and op.fresh is not None)
            if footprint is not None:
                accesses.append(Access(footprint, writes))
                if writes and isinstance(op, hardware.MatmulOp) and op.overwrite is None:
                    accesses.append(Access(footprint, False))
        instance = Instance(len(self.trace.instances), op, op.engine.data, dict(self.linear), accesses)
        self.trace.instances.append(instance)
        self.trace.engines.setdefault(instance.engine, []).append(instance.number)

    def footprint(self, view: SSAValue, whole: bool) -> Footprint | None:
        op = view.owner
        assert isinstance(op, hardware.ViewOp)
        kind = op.res.type
        assert isinstance(kind, ViewType)
        counters = [self.values[counter] for counter in op.counters]
        layout = op.layout.layout(byte_width(kind.element_type))
        low, high = [0] * len(kind.shape), list(kind.shape)
        if not whole:
            low = [max(0, v) for v in _values(op.start, counters, low)]
            high = [min(n, v) for n, v in zip(kind.shape, _values(op.valid, counters, high), strict=True)]
        if any(a >= b for a, b in zip(low, high, strict=True)):
            return None
        key = (layout, tuple(low), tuple(high))
        base = _evaluate(op.offset.data.results[0], tuple(counters))
        buffer = op.buffer
        space: object = kind.memory.data
        if isinstance(buffer, BlockArgument):
            space = ("argument", buffer.index)
        elif isinstance(buffer.owner, hardware.BufferOp):
            base += buffer.owner.offset.value.data
        return Footprint(space, base, byte_runs(*key), key)


def _slots(op: hardware.BufferOp) -> int:
    return 1 if op.slots is None else op.slots.value.data


def _values(attr: AffineMapAttr | None, counters: Sequence[int], default: Sequence[int]) -> list[int]:
    if attr is None:
        return list(default)
    return [_evaluate(expr, tuple(counters)) for expr in attr.data.results]


@lru_cache(maxsize=1 << 16)
def _evaluate(expr: AffineExpr, counters: tuple[int, ...]) -> int:
    match expr:
        case AffineConstantExpr(value=value):
            return value
        case AffineDimExpr(position=position):
            return counters[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = _evaluate(lhs, counters), _evaluate(rhs, counters)
            match kind:
                case AffineBinaryOpKind.Add:
                    return left + right
                case AffineBinaryOpKind.Mul:
                    return left * right
                case AffineBinaryOpKind.Mod:
                    return left % right
                case AffineBinaryOpKind.FloorDiv:
                    return left // right
                case _:
                    return -(-left // right)
        case _:
            raise UserError(f"cannot evaluate {expr}")


@lru_cache(maxsize=4096)
def byte_runs(layout: Layout, low: tuple[int, ...], high: tuple[int, ...]) -> Runs:
    """The bytes of the elements in [low, high) of each dimension, as ascending runs."""
    if prod(high) > 0 and _dense(layout, low, high):
        first = layout.address(low)
        last = layout.address([h - 1 for h in high]) + layout.element_bytes
        return np.array([first]), np.array([last])
    addresses = layout.addresses(high)[tuple(slice(start, None) for start in low)].ravel()
    starts = np.unique(addresses)
    ends = starts + layout.element_bytes
    breaks = np.flatnonzero(starts[1:] > ends[:-1])
    return starts[np.concatenate(([0], breaks + 1))], ends[np.concatenate((breaks, [len(ends) - 1]))]


def _dense(layout: Layout, low: Sequence[int], high: Sequence[int]) -> bool:
    """Whether the region is one run, by strides alone."""
    expected = layout.element_bytes
    atoms: list[tuple[int, int]] = []
    for dim, start, end in zip(layout.dims, low, high, strict=True):
        if end - start == 1:
            continue
        if start != 0 or prod(extent for extent, _ in dim) != end:
            return False
        atoms += [atom for atom in dim if atom[0] > 1]
    for extent, stride in sorted(atoms, key=lambda atom: atom[1]):
        if stride != expected:
            return False
        expected *= extent
    return True
