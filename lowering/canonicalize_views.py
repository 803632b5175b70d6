"""Rewrites of views: those that do nothing go, one on top of another becomes one, constants are moved at once."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineMap

from ..dialects.dtypes import convert, element
from ..dialects.graph_base import GraphOp
from ..dialects.graph_primitives import ConstantOp, ViewOp
from ..dialects.graph_shape import ReshapeOp, TransposeOp, permutation_of
from ..dialects.graph_types import ints_attr, shape_of, static_shape
from ..dialects.index_map import IndexMap, gather_box
from .canonicalize_scalar import constant_of, make_constant


def simplify_view(op: GraphOp) -> SSAValue | GraphOp | None:
    """A value that the op equals, a new op that does the same with less, or None."""
    match op:
        case ViewOp():
            return _view(op)
        case TransposeOp():
            return _transpose(op)
        case ReshapeOp():
            return _reshape(op)
        case _:
            return None


def _plain(value: SSAValue) -> ViewOp | None:
    """The view that makes a value, if it has one piece and no box."""
    owner = value.owner
    return owner if isinstance(owner, ViewOp) and len(owner.args) == 1 and owner.lower is None else None


def _view(op: ViewOp) -> SSAValue | GraphOp | None:
    shape = static_shape(op.res.type)
    if len(op.args) == 1 and op.lower is None and op.args[0].type == op.res.type:
        normal = IndexMap.try_affine(op.affine_maps[0], shape)
        if normal is not None and normal == IndexMap.try_affine(AffineMap.identity(len(shape)), shape):
            return op.args[0]
    operands: list[SSAValue] = []
    maps: list[AffineMap] = []
    for value, map_ in zip(op.args, op.affine_maps, strict=True):
        below = _plain(value)
        composed = None if below is None else IndexMap.try_affine(below.affine_maps[0].compose(map_), shape)
        # Two views whose composition has no mixed-radix form stay two: kernels can load only such forms.
        operands.append(value if below is None or composed is None else below.args[0])
        maps.append(map_ if composed is None else composed.to_affine())
    if all(new is old for new, old in zip(operands, op.args, strict=True)):
        return None
    properties: dict[str, Attribute] = {**op.properties, "maps": ArrayAttr(AffineMapAttr(m) for m in maps)}
    return ViewOp.make(operands, op.res.type, properties)


def _transpose(op: TransposeOp) -> SSAValue | GraphOp | None:
    order = permutation_of(op.properties, len(shape_of(op.res.type)))
    if order == tuple(range(len(order))):
        return op.args[0]
    inner = op.args[0].owner
    if not isinstance(inner, TransposeOp):
        return None
    below = permutation_of(inner.properties, len(order))
    return TransposeOp.make([inner.args[0]], op.res.type, {"permutation": ints_attr(below[p] for p in order)})


def _reshape(op: ReshapeOp) -> SSAValue | GraphOp | None:
    if op.args[0].type == op.res.type:
        return op.args[0]
    inner = op.args[0].owner
    return ReshapeOp.make([inner.args[0]], op.res.type) if isinstance(inner, ReshapeOp) else None


def fold_view(op: GraphOp) -> ConstantOp | None:
    """A view of constants as a constant; else None."""
    if not isinstance(op, ViewOp):
        return None
    arrays = [constant_of(value) for value in op.args]
    known = [array for array in arrays if array is not None]
    if len(known) != len(arrays):
        return None
    row = element(op.res.type)
    fill = np.asarray(op.fill_value or 0, np.float64 if row.kind == "float" else np.int64)
    result = np.full(static_shape(op.res.type), convert(fill, row))
    for map_, box, array in zip(op.affine_maps, op.boxes, known, strict=True):
        if all(low < high for low, high in box):
            result[tuple(slice(low, high) for low, high in box)] = gather_box(map_, box, array)
    return make_constant(result, op)
