"""The order of a loop's body in which it has the fewest stages, and in which they share the least."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.ir import Block, Operation, SSAValue

from ..dialects import tile
from .stage_kinds import Kind, kind_of, touched


def reorder(loop: tile.ForOp) -> None:
    """Moves the ops of a body in buffer form: what is ready for one engine first, then what is for the other, in turns.

    Two ops that touch a buffer, one of them writing, keep their order. An op that changes what its iteration takes over
    from the one before waits for the turn in which its result is used, so that one stage does all of that:

        max; exp; rescale o; [product]; add to o   →   max; exp; [product]; rescale o; add to o
    """
    block = loop.body.block
    ops = [op for op in block.ops if not isinstance(op, tile.AllocOp | tile.SliceOp | tile.YieldOp)]
    before = predecessors(ops)
    turns = _turns(ops, before)
    _wait(ops, before, turns, block)
    order = sorted(ops, key=lambda op: turns[op])  # stable: in their old order within a turn
    _rebuild(block, order)


def predecessors(ops: Sequence[Operation]) -> dict[Operation, set[Operation]]:
    """Per op, those before it that it must not overtake."""
    readers: dict[SSAValue, list[Operation]] = {}
    writer: dict[SSAValue, Operation] = {}
    found: dict[Operation, set[Operation]] = {}
    for op in ops:
        earlier: set[Operation] = set()
        for buffer, writes in touched(op):
            if buffer in writer:
                earlier.add(writer[buffer])
            if writes:
                earlier.update(readers.get(buffer, ()))
        for buffer, writes in touched(op):
            if writes:
                writer[buffer] = op
                readers[buffer] = []
        for buffer, writes in touched(op):
            if not writes:
                readers.setdefault(buffer, []).append(op)
        found[op] = earlier - {op}
    return found


def _turns(ops: Sequence[Operation], before: Mapping[Operation, set[Operation]]) -> dict[Operation, int]:
    """The turn of each op: engines alternate, an op has the first turn of its engine in which all it needs is there."""
    kinds: dict[Operation, Kind | None] = {op: kind_of(op) for op in ops}
    first = next((kind for op in ops if (kind := kinds[op]) is not None), "matrix")
    turns: dict[Operation, int] = {}
    for op in ops:
        earliest = max((turns[other] for other in before[op]), default=0)
        kind = kinds[op]
        if kind == "both":  # a turn of its own
            earliest += any(kinds[other] is not None for other in before[op])
        elif kind is not None and (kind == first) != (earliest % 2 == 0):
            earliest += 1
        turns[op] = earliest
    return turns


def _wait(
    ops: Sequence[Operation], before: Mapping[Operation, set[Operation]], turns: dict[Operation, int], block: Block
) -> None:
    after: dict[Operation, list[Operation]] = {op: [] for op in ops}
    for op, earlier in before.items():
        for other in earlier:
            after[other].append(op)
    for op in reversed(ops):
        carried = [
            b
            for b, writes in touched(op)
            if writes and not (isinstance(b.owner, Operation) and b.owner.parent is block)
        ]
        if not carried or not after[op]:
            continue
        latest = min(turns[other] for other in after[op])
        same = [o for o in after[op] if turns[o] == latest and any(b in carried for b, _ in touched(o))]
        if latest > turns[op] and (latest - turns[op]) % 2 == 0 and same:
            turns[op] = latest


def _rebuild(block: Block, order: Sequence[Operation]) -> None:
    """Puts the ops in order; an allocation or a slice stands before the first op that needs it."""
    last = block.last_op
    assert last is not None
    placed: set[Operation] = set()

    def place(op: Operation) -> None:
        for value in _needed(op):
            owner = value.owner
            if isinstance(owner, tile.AllocOp | tile.SliceOp) and owner.parent is block and owner not in placed:
                place(owner)
        if op not in placed:
            placed.add(op)
            op.detach()
            block.insert_op_before(op, last)

    unused = [op for op in block.ops if isinstance(op, tile.AllocOp | tile.SliceOp)]
    for op in (*order, *unused):
        place(op)


def _needed(op: Operation) -> Iterator[SSAValue]:
    for inner in op.walk():
        yield from inner.operands
