"""Decompositions of the ops that move elements: each is one view (two for padded windows)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

from ..dialects.graph_base import GraphOp
from ..dialects.graph_shape import permutation_of, slice_of
from ..dialects.graph_types import get_int, get_ints, get_number, static_shape
from ..dialects.graph_window import windows_of
from ..dialects.index_map import Box, IndexMap, reshape_affine
from .decompose_emit import Emitter


def transpose(emit: Emitter, op: GraphOp) -> SSAValue:
    """out[i…] = x[i permuted]."""
    source = static_shape(op.args[0].type)
    map_ = IndexMap.permutation(source, permutation_of(op.properties, len(source)))
    return emit.view([op.args[0]], [map_.to_affine()], emit.result_shape)


def reshape(emit: Emitter, op: GraphOp) -> SSAValue:
    """The row-major index split anew."""
    return reshaped(emit, op.args[0], emit.result_shape)


def reshaped(emit: Emitter, value: SSAValue, shape: Sequence[int]) -> SSAValue:
    """A view of `value` as `shape`, in row-major order."""
    return emit.view([value], [reshape_affine(static_shape(value.type), shape)], shape)


def without_dims(emit: Emitter, value: SSAValue, dims: Sequence[int]) -> SSAValue:
    """A view without the listed dimensions, all of size 1; the value itself if there are none."""
    shape = static_shape(value.type)
    kept = [d for d in range(len(shape)) if d not in dims]
    return reshaped(emit, value, [shape[d] for d in kept]) if dims else value


def expand(emit: Emitter, op: GraphOp) -> SSAValue:
    """Dimensions of size 1 read at 0."""
    map_ = IndexMap.broadcast(static_shape(op.args[0].type), emit.result_shape)
    return emit.view([op.args[0]], [map_.to_affine()], emit.result_shape)


def take_slice(emit: Emitter, op: GraphOp) -> SSAValue:
    """out[i] = x[start + step·i]."""
    starts, sizes, steps = slice_of(op.properties, len(emit.result_shape))
    return emit.view([op.args[0]], [IndexMap.slice(sizes, starts, steps).to_affine()], sizes)


def concat(emit: Emitter, op: GraphOp) -> SSAValue:
    """One piece for each operand, at its offset along the axis."""
    shape = emit.result_shape
    axis = get_int(op.properties, "axis", None, op.what()) % len(shape)
    offset = 0
    maps: list[AffineMap] = []
    boxes: list[Box] = []
    for value in op.args:
        size = static_shape(value.type)[axis]
        boxes.append([(offset, offset + size) if d == axis else (0, s) for d, s in enumerate(shape)])
        maps.append(shift([offset if d == axis else 0 for d in range(len(shape))]))
        offset += size
    return emit.view(op.args, maps, shape, boxes)


def pad(emit: Emitter, op: GraphOp) -> SSAValue:
    """The operand in a box, the value around it."""
    low, high = (get_ints(op.properties, name, None, op.what()) for name in ("low", "high"))
    return padded(emit, op.args[0], low, high, get_number(op.properties, "value", 0.0, op.what()))


def padded(emit: Emitter, value: SSAValue, low: Sequence[int], high: Sequence[int], fill: float) -> SSAValue:
    """A view with `low` elements before and `high` after each dimension, all `fill`."""
    source = static_shape(value.type)
    shape = [before + size + after for before, size, after in zip(low, source, high, strict=True)]
    if shape == list(source):
        return emit.view([value], [AffineMap.identity(len(shape))], shape)
    box = [(before, before + size) for before, size in zip(low, source, strict=True)]
    return emit.view([value], [shift(low)], shape, [box], fill)


def window(emit: Emitter, op: GraphOp) -> SSAValue:
    """A padded view, then one with stride · position + dilation · tap in the place of each windowed axis."""
    x = op.args[0]
    rank = len(static_shape(x.type))
    windows = windows_of(op.properties, rank)
    ends = {axis: (low, high) for axis, low, high in zip(windows.axes, windows.low, windows.high, strict=True)}
    low, high = ([ends.get(d, (0, 0))[side] for d in range(rank)] for side in (0, 1))
    if any(low) or any(high):
        x = padded(emit, x, low, high, get_number(op.properties, "value", 0.0, op.what()))
    terms = [[(1, d)] for d in range(rank)]
    for i, axis in enumerate(windows.axes):
        terms[axis] = [(windows.strides[i], axis), (windows.dilations[i], rank + i)]
    map_ = IndexMap.linear(emit.result_shape, terms, [0] * rank)
    return emit.view([x], [map_.to_affine()], emit.result_shape)


def shift(offsets: Sequence[int]) -> AffineMap:
    """(d0, d1, …) → (d0 − offset0, d1 − offset1, …)."""
    dims = [AffineExpr.dimension(d) for d in range(len(offsets))]
    return AffineMap(len(dims), 0, tuple(d - o if o else d for d, o in zip(dims, offsets, strict=True)))
