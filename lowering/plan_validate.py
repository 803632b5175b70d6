"""An independent check of a plan: no helper is shared with the planner.

Lifetimes are not computed from positions but observed: the ops are walked as they execute, every loop for two
iterations, and a buffer lives from the first to the last step that touches it. Two iterations are enough to see what
one iteration keeps for the next; where ops run ahead, as many more as they do.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod

from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr

from ..dialects import tile
from ..dialects.dtypes import element
from ..dialects.errors import UserError
from ..dialects.target import Target
from ..dialects.tile_types import BufferType
from .ahead import ahead_of
from .plan_validate_launch import writes_what_it_read


@dataclass(eq=False)
class Seen:
    """One incarnation of a buffer in the walk: its bytes, and the steps that touch it."""

    alloc: tile.AllocOp
    low: int
    high: int
    steps: list[int] = field(default_factory=list[int])
    makers: list[Operation] = field(default_factory=list[Operation])


def validate_plan(block: Block, target: Target) -> None:
    """Checks the offsets of all buffers allocated in a block and its loops.

    Raises UserError for a missing offset, one that breaks the alignment or leaves the memory, and for two buffers that
    share bytes while both hold something (naming both), and for one of fewer slots than
    iterations that it holds at a time. Two kinds of op alone may write over the operand that they are
    the last to read, at the same offset: an elementwise op, with elements that are not wider, and a launch of a kernel
    that reads and writes each element once, in the same iteration.
    """
    walk = _Walk(target)
    walk.block(block, {})
    for memory in {_type(seen.alloc).memory.data for seen in walk.seen}:
        _check_overlaps([seen for seen in walk.seen if _type(seen.alloc).memory.data == memory], memory)
    for alloc in {seen.alloc for seen in walk.seen}:
        _check_slots(alloc, [seen for seen in walk.seen if seen.alloc is alloc and seen.steps])


class _Walk:
    def __init__(self, target: Target) -> None:
        self.target = target
        self.step = 0
        self.seen: list[Seen] = []

    def block(self, block: Block, outer: dict[SSAValue, Seen]) -> None:
        here = self.names(block, outer)
        for op in block.ops:
            self.op(op, here)

    def names(self, block: Block, outer: dict[SSAValue, Seen]) -> dict[SSAValue, Seen]:
        """The buffers of one execution of a block."""
        here = dict(outer)
        for op in block.ops:
            match op:
                case tile.AllocOp():
                    here[op.res[0]] = self.allocate(op)
                case tile.SliceOp() | tile.AliasOp():
                    if op.args[0] in here:
                        here[op.res[0]] = here[op.args[0]]
                case _:
                    pass
        return here

    def op(self, op: Operation, here: dict[SSAValue, Seen]) -> None:
        match op:
            case tile.AllocOp() | tile.SliceOp() | tile.AliasOp():
                pass
            case tile.ForOp():
                self.loop(op, here)
            case _:
                self.step += 1
                for value in op.operands:
                    if value in here:
                        here[value].steps.append(self.step)
                        here[value].makers.append(op)

    def loop(self, loop: tile.ForOp, outer: dict[SSAValue, Seen]) -> None:
        body = loop.body.block
        depth = max((ahead_of(op) for op in body.ops), default=0)
        trips = _trips(loop)
        count = 2 + depth if trips is None else min(2 + depth, trips)
        iterations = [self.names(body, outer) for _ in range(count)]
        for step in range(-depth, count):
            for op in body.ops:
                if 0 <= step + ahead_of(op) < count:
                    self.op(op, iterations[step + ahead_of(op)])

    def allocate(self, op: tile.AllocOp) -> Seen:
        kind = _type(op)
        memory = self.target.memories.get(kind.memory.data)
        if memory is None:
            raise UserError(f"{_name(op)} lies in no memory of target '{self.target.name}'", op.location)
        if op.offset is None:
            raise UserError(f"{_name(op)} has no offset", op.location)
        low = op.offset.value.data
        high = low + _bytes(op, memory.align)
        if low % memory.align:
            raise UserError(
                f"stale offset: {_name(op)} at {low} is not aligned to {memory.align} in '{kind.memory.data}'",
                op.location,
            )
        if high > memory.bytes:
            raise UserError(
                f"stale offset: {_name(op)} reaches byte {high} of '{kind.memory.data}', which has {memory.bytes}",
                op.location,
            )
        found = Seen(op, low, high)
        self.seen.append(found)
        return found


def _check_slots(alloc: tile.AllocOp, seen: list[Seen]) -> None:
    """The next iteration but N - 1 takes the slot of this one, which nothing may use from then on."""
    slots = alloc.slots.value.data if alloc.slots is not None else 1
    for one, later in zip(seen, seen[slots:], strict=False):
        if one.steps[-1] > later.steps[0]:
            raise UserError(
                f"{_name(alloc)} has {slots} slot{'s' * (slots > 1)}, and more iterations hold something at a time",
                alloc.location,
            )


def _check_overlaps(seen: list[Seen], memory: str) -> None:
    """Sweeps over the steps; what is alive is kept sorted by its lowest byte and, overlaps apart, disjoint."""
    starts = sorted((one for one in seen if one.steps), key=lambda one: one.steps[0])
    ends = sorted(starts, key=lambda one: one.steps[-1])
    alive: list[tuple[int, int]] = []
    number = {id(one): index for index, one in enumerate(starts)}
    gone = 0
    for index, one in enumerate(starts):
        now = one.steps[0]
        while ends[gone].steps[-1] < now:
            key = (ends[gone].low, number[id(ends[gone])])
            spot = bisect_left(alive, key)
            if spot < len(alive) and alive[spot] == key:
                alive.pop(spot)
            gone += 1
        for other in _neighbours(alive, starts, one):
            if other.alloc is not one.alloc and not _takes_over(other, one) and not _takes_over(one, other):
                raise UserError(
                    f"stale offset: {_name(one.alloc)} at [{one.low}, {one.high}) of '{memory}' overlaps "
                    f"{_name(other.alloc)} at [{other.low}, {other.high}) while both are in use",
                    one.alloc.location,
                    [(f"{_name(other.alloc)} is allocated here", other.alloc.location)],
                )
        insort(alive, (one.low, index))


def _neighbours(alive: list[tuple[int, int]], starts: list[Seen], one: Seen) -> Iterator[Seen]:
    """What is alive and shares a byte with `one`. To the left only the last few can: before them all is disjoint,
    but for a pair that takes over."""
    spot = bisect_left(alive, (one.low, -1))
    for _, index in alive[max(0, spot - 3) : spot]:
        if starts[index].high > one.low:
            yield starts[index]
    while spot < len(alive) and alive[spot][0] < one.high:
        yield starts[alive[spot][1]]
        spot += 1


def _takes_over(old: Seen, new: Seen) -> bool:
    """Whether `new` is the result of an op that reads `old` last and may write over it, at the same offset."""
    op = new.makers[0]
    if old.steps[-1] != new.steps[0] or old.low != new.low:
        return False
    if isinstance(op, tile.LaunchOp):
        return writes_what_it_read(op, old.alloc.res[0], new.alloc.res[0])
    if not isinstance(op, tile.MapOp):
        return False
    before, after = _type(old.alloc), _type(new.alloc)
    direct = old.alloc.res[0] in op.operands[:-1] and op.operands[-1] is new.alloc.res[0]
    narrower = element(after.element_type).bytes <= element(before.element_type).bytes
    return direct and narrower and before.shape == after.shape and old.alloc.slots is None and new.alloc.slots is None


def _type(op: tile.AllocOp) -> BufferType:
    kind = op.res[0].type
    assert isinstance(kind, BufferType)
    return kind


def _bytes(op: tile.AllocOp, align: int) -> int:
    """Bytes of all slots: the last byte that the layout's strides reach, up to the alignment, times the slots."""
    kind = _type(op)
    width = element(kind.element_type).bytes
    reach = width
    for numbers in kind.layout.dims:
        values = [number.data for number in numbers]
        reach += sum((extent - 1) * stride for extent, stride in zip(values[::2], values[1::2], strict=True))
    slots = op.slots.value.data if op.slots is not None else 1
    return (reach + align - 1) // align * align * slots if prod(kind.shape) else align * slots


def _trips(op: tile.ForOp) -> int | None:
    """How many iterations a loop has; None where that depends on outer counters."""
    lows, highs = ([r.value for r in m.data.results if isinstance(r, AffineConstantExpr)] for m in (op.lower, op.upper))
    if len(lows) == len(op.lower.data.results) and len(highs) == len(op.upper.data.results):
        return max(0, min(highs) - max(lows))
    return None


def _name(op: tile.AllocOp) -> str:
    hint = op.res[0].name_hint
    kind = _type(op)
    shape = "x".join(str(extent) for extent in kind.shape)
    return f"buffer {'%' + hint + ' ' if hint else ''}({shape}x{element(kind.element_type).name})"
