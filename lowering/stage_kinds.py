"""Which engine computes an op in buffer form, and which buffers it touches."""

from __future__ import annotations

from typing import Literal, TypeAlias

from xdsl.ir import Operation, SSAValue

from ..dialects import tile
from .buffers import root

Kind: TypeAlias = Literal["matrix", "vector", "both"]


def kind_of(op: Operation) -> Kind | None:
    """The engine that computes an op or the ops in a loop; None for what only moves or fills."""
    match op:
        case tile.ContractOp():
            return "matrix"
        case tile.MapOp() | tile.ReduceOp():
            return "vector"
        case tile.ForOp():
            kinds: set[Kind] = {kind for inner in op.body.block.ops if (kind := kind_of(inner)) is not None}
            return kinds.pop() if len(kinds) == 1 else "both" if kinds else None
        case _:
            return None


def touched(op: Operation) -> list[tuple[SSAValue, bool]]:
    """Buffers that an op, or the ops of a loop, read (False) or write (True)."""
    if isinstance(op, tile.ForOp):
        return [pair for inner in op.body.block.ops for pair in touched(inner)]
    if isinstance(op, tile.StoreOp):
        return [(root(op.args[0]), False), (root(op.destination), True)]
    if not isinstance(op, tile.TileOp) or isinstance(op, tile.SliceOp) or op.into is None:
        return []
    found = [(root(value), False) for value in op.tiles]
    if isinstance(op, tile.ContractOp) and op.accumulate is not None and not starts_anew(op):
        found.append((root(op.target), False))
    return [*found, (root(op.target), True)]


def starts_anew(op: tile.ContractOp) -> bool:
    """Whether a product that accumulates begins from zero each time."""
    return op.init is not None and not op.init.data.results
