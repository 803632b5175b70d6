"""Reductions along the rows of a tile in two steps, where that is faster.

To reduce along the innermost dimension the vector engine has to combine lanes with one another, which costs
`reduce_factor` times an addition. Whole pieces of rows are combined at the full rate (vector engines address pieces of
an alignment unit by strides). So a row is taken as such pieces, which are combined first, and only one piece per row is
reduced across its lanes:

    %m = tile.reduce %x {axes = [1]} : 48x1      →   %p = tile.slice %x {(d0, d1, d2) -> (d0, 8·d1 + d2)} : 48x64x8
                                                     %q = tile.reduce %p {axes = [1]} : 48x1x8
                                                     %m = tile.reduce %q {axes = [2]}, seen as 48x1
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import cost, tile
from ..dialects.attributes import int_values
from ..dialects.dtypes import byte_width
from ..dialects.target_model import Target
from ..dialects.tile_types import TileType
from .tile_valid import Bound, stated, valid_bounds


def piece(target: Target, memory: str, row: int, width: int, accumulated: int) -> int | None:
    """Elements of a piece of a row that is reduced in two steps; None where one step is as fast, or pieces do not fit.

    row: elements of the row; width, accumulated: bytes of one before and after.
    """
    unit = target.vector_engine
    lanes = target.memories[memory].align // width
    if unit is None or lanes < 1 or row % lanes or row < 2 * lanes:
        return None
    factor = unit[1].reduce_factor
    return lanes if row * width * (factor - 1) > lanes * accumulated * factor else None


def two_step_cycles(
    target: Target, monoid: str, elements: int, row: int, lanes: int, kind: str, width: int, accumulated: int
) -> int:
    """Cycles of both steps. elements: of what is reduced; kind: the type computed in; the rest as for `piece`."""
    first = cost.reduce_cycles(target, monoid, elements, width, kind, across_lanes=False)
    return first + cost.reduce_cycles(target, monoid, elements // row * lanes, accumulated, kind)


def reduce_in_steps(kernel: tile.KernelOp, target: Target) -> None:
    """Rewrites the reductions of a placed kernel whose rows are known to be valid in whole pieces."""
    for op in [op for op in kernel.walk() if isinstance(op, tile.ReduceOp)]:
        kind, result = op.tiles[0].type, op.target.type
        assert isinstance(kind, TileType) and isinstance(result, TileType)
        axes = set(int_values(op.axes))
        last = max((d for d, extent in enumerate(kind.shape) if extent > 1), default=-1)
        if last not in axes:
            continue
        width, accumulated = byte_width(kind.element_type), byte_width(result.element_type)
        lanes = piece(target, kind.memory.data, kind.shape[last], width, accumulated)
        bounds = valid_bounds(op.tiles[0]) if lanes is not None else None
        whole = whole_pieces(bounds[last], kind.shape[last], lanes) if lanes is not None and bounds else None
        if lanes is not None and bounds is not None and whole is not None:
            _split(op, axes, last, lanes, bounds, whole)


def whole_pieces(valid: Bound, row: int, lanes: int) -> Bound | None:
    """How many pieces of a row are valid, where each is as a whole or not at all."""
    if valid.covers(row):
        return Bound((), AffineConstantExpr(row // lanes))
    divided = _divided(valid.expr, lanes)
    return None if divided is None else Bound(valid.counters, divided)


def _divided(expr: AffineExpr, divisor: int) -> AffineExpr | None:
    """A sum of multiples of the divisor, divided by it."""
    match expr:
        case AffineConstantExpr(value=value) if value % divisor == 0:
            return AffineConstantExpr(value // divisor)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = _divided(lhs, divisor), _divided(rhs, divisor)
            return None if left is None or right is None else left + right
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=value)):
            return lhs * (value // divisor) if value % divisor == 0 else None
        case _:
            return None


def _split(op: tile.ReduceOp, axes: set[int], last: int, lanes: int, bounds: Sequence[Bound], valid: Bound) -> None:
    kind, result = op.tiles[0].type, op.target.type
    assert isinstance(kind, TileType) and isinstance(result, TileType)
    memory, shape, pieces = kind.memory.data, kind.shape, kind.shape[last] // lanes
    cut = [*shape[:last], pieces, lanes, *shape[last + 1 :]]
    # Dimension `last` of the tile is dimensions `last` and `last + 1` of the pieces.
    place: list[AffineExpr] = [AffineDimExpr(d + (d > last)) for d in range(len(shape))]
    place[last] = AffineDimExpr(last) * lanes + AffineDimExpr(last + 1)
    lane = Bound((), AffineConstantExpr(lanes))
    cut_bounds = [*bounds[:last], valid, lane, *bounds[last + 1 :]]
    view = _slice(op, op.tiles[0], TileType(cut, kind.element_type, memory), place, cut_bounds)

    reduced = {d + (d > last) for d in axes}
    rows = [1 if d in reduced else extent for d, extent in enumerate(cut)]
    combined = _reduce(op, view.res[0], reduced, TileType(rows, result.element_type, memory))

    flat = [*rows[:last], *rows[last + 1 :]]
    back: list[AffineExpr] = [AffineDimExpr(d - (d > last)) for d in range(len(rows))]
    back[last] = AffineConstantExpr(0)
    one = Bound((), AffineConstantExpr(1))
    row_bounds = [one if d in axes else bound for d, bound in enumerate(bounds)]
    row_bounds[last] = lane
    seen = _slice(op, combined.res[0], TileType(flat, result.element_type, memory), back, row_bounds)

    across = _reduce(op, seen.res[0], {last}, result)
    across.res[0].name_hint = op.target.name_hint
    for made in (view, combined, seen, across):
        made.location = op.location
    Rewriter.insert_op([view, combined, seen], InsertPoint.before(op))
    Rewriter.replace_op(op, across)


def _slice(
    op: tile.ReduceOp, source: SSAValue, kind: TileType, place: Sequence[AffineExpr], bounds: Sequence[Bound]
) -> tile.SliceOp:
    counters, valid = stated(bounds)
    moved = [
        expr.replace_dims_and_symbols([AffineDimExpr(len(counters) + d) for d in range(len(kind.shape))], [])
        for expr in place
    ]
    return tile.SliceOp.create(
        operands=[source, *counters],
        result_types=[kind],
        properties={
            "map": AffineMapAttr(AffineMap(len(counters) + len(kind.shape), 0, tuple(moved))),
            "valid": valid,
        },
    )


def _reduce(op: tile.ReduceOp, source: SSAValue, axes: set[int], result: TileType) -> tile.ReduceOp:
    properties = {"monoid": op.monoid, "axes": DenseArrayBase.from_list(i64, sorted(axes))}
    return tile.ReduceOp.create(operands=[source], result_types=[result], properties=properties)
