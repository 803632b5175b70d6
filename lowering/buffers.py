"""Buffers and what shows parts of them: the one way up, the other down."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue

from ..dialects import tile


def root(value: SSAValue) -> SSAValue:
    """The buffer, tile or argument whose bytes a chain of slices and aliases shows."""
    while isinstance(value.owner, tile.SliceOp | tile.AliasOp):
        value = value.owner.args[0]
    return value


def accesses(value: SSAValue) -> Iterator[Operation]:
    """Ops that touch a buffer of the tile level, through slices and aliases too."""
    for use in value.uses:
        if isinstance(use.operation, tile.SliceOp | tile.AliasOp):
            yield from accesses(use.operation.res[0])
        else:
            yield use.operation


def slots_of(op: tile.AllocOp) -> int:
    """Slots of a buffer."""
    return 1 if op.slots is None else op.slots.value.data
