"""What is valid of a tile in value form, per dimension, as an expression of loop counters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ..dialects import tile
from ..dialects.attributes import int_values
from .affine_bounds import reach
from .place_aligned import counter_range


@dataclass(frozen=True)
class Bound:
    """An expression over counters: dimension n is `counters[n]`. It may be more than the extent."""

    counters: tuple[SSAValue, ...]
    expr: AffineExpr

    def covers(self, extent: int) -> bool:
        """Whether all of a dimension is valid, whatever the counters are."""
        return reach(self.expr, [counter_range(counter) for counter in self.counters])[0] >= extent


def valid_bounds(value: SSAValue) -> list[Bound] | None:
    """The valid elements of each dimension (semantics 4.1); None where no one expression says it."""
    shape = tile.shape_of(value)
    if isinstance(value, BlockArgument):
        loop = value.owner.parent_op()
        return valid_bounds(loop.inits[value.index - 1]) if isinstance(loop, tile.ForOp) else None
    op = value.owner
    match op:
        case tile.LoadOp() | tile.FillOp() | tile.EmptyOp() | tile.IotaOp() | tile.SliceOp():
            return [Bound(tuple(op.counters), expr) for expr in op.valid.data.results]
        case tile.MoveOp():
            return valid_bounds(op.tiles[0])
        case tile.InsertOp():
            return valid_bounds(op.tiles[1])
        case tile.ForOp():
            return valid_bounds(op.inits[op.res.index(value)])
        case tile.ReduceOp():
            found, reduced = valid_bounds(op.tiles[0]), set(int_values(op.axes))
            return found and [Bound((), AffineConstantExpr(1)) if d in reduced else b for d, b in enumerate(found)]
        case tile.MapOp():
            found = [valid_bounds(source) for source in op.tiles]
            names = [tuple(range(len(shape)))] * (len(found) + 1)
        case tile.ContractOp():
            found = [valid_bounds(source) for source in op.tiles[:2]]
            names = [tuple(letters) for letters in op.letters()]
        case _:
            return None
    return _met(op, found, names, shape)


def _met(
    op: tile.TileOp, found: Sequence[list[Bound] | None], names: Sequence[Sequence[object]], shape: Sequence[int]
) -> list[Bound] | None:
    """The least of what is valid in the operands. `names`: of the dimensions of each operand, and of the result."""
    bounds = {name: Bound((), AffineConstantExpr(extent)) for name, extent in zip(names[-1], shape, strict=True)}
    extents = dict(zip(names[-1], shape, strict=True))
    for source, operand, dims in zip(op.tiles, found, names, strict=False):
        if operand is None:
            return None
        for name, bound, extent in zip(dims, operand, tile.shape_of(source), strict=True):
            if name not in bounds or extent != extents[name] or bound.covers(extent) or bound == bounds[name]:
                continue
            if not bounds[name].covers(extent):
                return None  # no one expression is the lesser of two
            bounds[name] = bound
    return list(bounds.values())


def stated(bounds: Sequence[Bound]) -> tuple[list[SSAValue], AffineMapAttr]:
    """Counters, and the map from them to the bounds, for an op that states what is valid."""
    counters = list(dict.fromkeys(counter for bound in bounds for counter in bound.counters))
    results: list[AffineExpr] = []
    for bound in bounds:
        places: list[AffineExpr] = [AffineDimExpr(counters.index(counter)) for counter in bound.counters]
        results.append(bound.expr.replace_dims_and_symbols(places, []))
    return counters, AffineMapAttr(AffineMap(len(counters), 0, tuple(results)))
