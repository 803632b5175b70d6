"""Lifetimes of buffers in list order, loops respected: what `plan` places."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, Operation

from ..dialects import tile
from ..dialects.dtypes import byte_width
from ..dialects.target import Target
from ..dialects.tile_types import BufferType
from .ahead import crossing, handed_over, skewed_around
from .bufferize_layout import slot_bytes
from .buffers import accesses, slots_of


@dataclass(frozen=True, eq=False)
class Lifetime:
    """One buffer: bytes of all its slots, first and last position (inclusive) at which it holds something.

    `whole` is the range if a buffer of several slots is kept through the loop it is in, so that its next slot can be
    filled early, and if what one engine makes for another is kept through a loop whose stages run ahead of one another,
    so that none waits for bytes; equal to [start, end] for others.
    """

    alloc: tile.AllocOp
    memory: str
    size: int
    start: int
    end: int
    whole: tuple[int, int]

    @property
    def slots(self) -> int:
        return slots_of(self.alloc)

    @property
    def type(self) -> BufferType:
        kind = self.alloc.res[0].type
        assert isinstance(kind, BufferType)
        return kind


@dataclass(frozen=True)
class Positions:
    """The number of each op in list order, and of the last op inside it."""

    first: dict[Operation, int]
    last: dict[Operation, int]


def number(block: Block) -> Positions:
    """Numbers the ops of a block and of all loops in it, in list order."""
    positions = Positions({}, {})

    def visit(inner: Block, count: int) -> int:
        for op in inner.ops:
            positions.first[op] = count
            count += 1
            if isinstance(op, tile.ForOp):
                count = visit(op.body.block, count)
            positions.last[op] = count - 1
        return count

    visit(block, 0)
    return positions


def lifetimes(block: Block, target: Target) -> list[Lifetime]:
    """The lifetimes of all buffers allocated in a block or in its loops, in list order.

    A buffer allocated outside a loop and touched inside lives for the whole loop. A buffer that nothing touches lives
    where it is allocated.
    """
    positions = number(block)
    return [_lifetime(op, positions, target) for op in positions.first if isinstance(op, tile.AllocOp)]


def _lifetime(alloc: tile.AllocOp, positions: Positions, target: Target) -> Lifetime:
    home = alloc.parent
    assert home is not None
    start, end = positions.first[alloc], -1
    ranges: list[tuple[int, int]] = []
    for op in accesses(alloc.res[0]):
        outer: Operation = op
        while outer.parent is not home:
            parent = outer.parent_op()
            assert parent is not None
            outer = parent
        ranges.append((positions.first[outer], positions.last[outer]))
    if ranges:
        start, end = min(first for first, _ in ranges), max(last for _, last in ranges)
    end = max(start, end)
    whole = (start, end)
    kind = alloc.res[0].type
    assert isinstance(kind, BufferType)
    slots = slots_of(alloc)
    loop = alloc.parent_op()
    if slots > 1 and isinstance(loop, tile.ForOp):
        whole = (positions.first[loop] + 1, positions.last[loop])
        if crossing(alloc):  # one iteration fills it while another reads it
            start, end = whole
    skewed = skewed_around(alloc)
    if skewed is not None and handed_over(alloc):
        whole = (min(whole[0], positions.first[skewed] + 1), max(whole[1], positions.last[skewed]))
    size = slots * slot_bytes(kind, target.memories[kind.memory.data])
    return Lifetime(alloc, kind.memory.data, size, start, end, whole)


def takeovers(block: Block, lives: list[Lifetime]) -> list[tuple[Lifetime, Lifetime]]:
    """Pairs (operand, result) of elementwise ops whose result may lie on the bytes of the operand.

    The operand dies where the result is made, both have one slot and the same shape, and the result's elements are not
    wider: an instruction reads all its input before it writes. Each buffer is an operand of one pair, a result of one.
    """
    positions = number(block)
    by_alloc = {life.alloc: life for life in lives}
    given: set[tile.AllocOp] = set()
    pairs: list[tuple[Lifetime, Lifetime]] = []
    for op, here in positions.first.items():
        if not isinstance(op, tile.MapOp) or op.into is None:
            continue
        made = by_alloc.get(op.target.owner) if isinstance(op.target.owner, tile.AllocOp) else None
        if made is None or made.start != here or made.slots != 1:
            continue
        for value in op.tiles:
            held = by_alloc.get(value.owner) if isinstance(value.owner, tile.AllocOp) else None
            if held is not None and held.alloc not in given and _may_take(held, made, here):
                given.add(held.alloc)
                pairs.append((held, made))
                break
    return pairs


def _may_take(held: Lifetime, made: Lifetime, here: int) -> bool:
    return (
        held is not made
        and held.end == here
        and held.slots == 1
        and held.memory == made.memory
        and held.alloc.parent is made.alloc.parent
        and held.type.shape == made.type.shape
        and byte_width(made.type.element_type) <= byte_width(held.type.element_type)
    )
