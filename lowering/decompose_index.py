"""Decompositions of gathers, scatters, extrema and running sums: by comparing indices with positions.

Every one of them chooses elements: position v is chosen where `index = v`. Choosing is a `select`, so that NaN and
infinities elsewhere do not matter, and at most one element of each sum differs from 0, so that sums are exact.
"""

from __future__ import annotations

import math

import numpy as np
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

from ..dialects import cost
from ..dialects.dtypes import by_name, element
from ..dialects.graph_base import GraphOp
from ..dialects.graph_index import SCATTER_REDUCTIONS, PlaceOp, RunningOp, scatter_reduction
from ..dialects.graph_primitives import ConstantOp, IotaOp, TakeOp
from ..dialects.graph_types import get_flag, get_int, static_shape, tensor_type
from ..dialects.scalar import MONOIDS, Value
from ..dialects.target import known_target
from .decompose_emit import Emitter
from .decompose_views import padded, reshaped

_I32 = by_name("i32").attribute
_MULTIPLIED = ("f64", "f32", "f16", "bf16", "i8", "ui8")
"""Element types that machines have products of."""


def _axis(op: GraphOp, default: int) -> int:
    return get_int(op.properties, "axis", default, op.what()) % len(static_shape(op.args[0].type))


def positions(emit: Emitter, size: int, rank: int, dim: int) -> SSAValue:
    """0, 1, … along one dimension, size 1 elsewhere."""
    type_ = tensor_type(_I32, [size if d == dim else 1 for d in range(rank)])
    return emit.insert(IotaOp.make([], type_, {"dim": IntegerAttr(dim, i64)}))


def _constant(emit: Emitter, number: Value, kind: str) -> SSAValue:
    return emit.insert(ConstantOp.of(np.asarray(number), by_name(kind).attribute))


def _wrapped(emit: Emitter, indices: SSAValue, size: int) -> SSAValue:
    """Indices as i32, negative ones counted from the end."""
    indices = emit.map("cast", indices, to=_I32)
    negative = emit.map("lt", indices, _constant(emit, 0, "i32"))
    return emit.map("select", negative, emit.map("add", indices, _constant(emit, size, "i32")), indices)


def _chosen(emit: Emitter, hit: SSAValue, value: SSAValue, axis: int) -> SSAValue:
    """Σ over an axis of the elements where `hit` holds; truth values as integers on the way."""
    row = element(value.type)
    if row.kind == "bool":
        total = _chosen(emit, hit, emit.map("cast", value, to=_I32), axis)
        return emit.map("cast", total, to=row.attribute)
    zero = _constant(emit, 0, row.name)
    return emit.reduce("sum", emit.map("select", hit, value, zero, to=row.attribute), [axis], to=row.attribute)


def gather(emit: Emitter, op: GraphOp) -> SSAValue:
    """Rows by address where that takes fewer bytes than all there are. Otherwise by comparison: [A, V, B] at [I] →
    Σ over v of select(indices = v, x, 0) in [A, I, v, B]; of finite numbers, a product."""
    x, indices = op.args
    row = element(x.type)
    shape, axis = static_shape(x.type), _axis(op, 0)
    size, count = shape[axis], math.prod(static_shape(indices.type))
    outer, inner = math.prod(shape[:axis]), math.prod(shape[axis + 1 :])
    if _rows_pay(op, count * outer, inner * row.bytes, math.prod(shape) * row.bytes):
        return emit.insert(TakeOp.make([x, _wrapped(emit, indices, size)], None, {"axis": IntegerAttr(axis, i64)}))
    if get_flag(op.properties, "finite", op.what()) and row.name in _MULTIPLIED:
        places = _wrapped(emit, reshaped(emit, indices, [count, 1]), size)
        hit = emit.map("cast", emit.map("eq", places, positions(emit, size, 2, 1)), to=row.attribute)
        sums = emit.result_element if row.kind == "float" else _I32
        rows = emit.contract("iv,avb->aib", hit, reshaped(emit, x, [outer, size, inner]), sums)
        if row.kind != "float":
            rows = emit.map("cast", rows, to=emit.result_element)
        return reshaped(emit, rows, emit.result_shape)
    places = _wrapped(emit, reshaped(emit, indices, [1, count, 1, 1]), size)
    hit = emit.map("eq", places, positions(emit, size, 4, 2))
    found = _chosen(emit, hit, reshaped(emit, x, [outer, 1, size, inner]), 2)
    return reshaped(emit, found, emit.result_shape)


def _rows_pay(op: GraphOp, rows: int, row_bytes: int, whole: int) -> bool:
    """Whether so many rows, each moved by itself, take fewer bytes of the bus than the whole table, on a target that
    can do that."""
    target = known_target(op)
    if target is None or not target.gathers:
        return False
    return rows * cost.granule_bytes(row_bytes, 1, target.offchip_memory.granule) < whole


def gather_elements(emit: Emitter, op: GraphOp) -> SSAValue:
    """Σ over v of select(indices = v, x, 0), v a dimension of its own behind the axis."""
    x, indices = op.args
    axis, wanted = _axis(op, 0), static_shape(indices.type)
    size = static_shape(x.type)[axis]
    part = [size if d == axis else s for d, s in enumerate(wanted)]
    if part != list(static_shape(x.type)):
        x = emit.view([x], [AffineMap.identity(len(part))], part)
    places = _wrapped(emit, reshaped(emit, indices, [*wanted[: axis + 1], 1, *wanted[axis + 1 :]]), size)
    hit = emit.map("eq", places, positions(emit, size, len(part) + 1, axis + 1))
    found = _chosen(emit, hit, reshaped(emit, x, [*part[:axis], 1, *part[axis:]]), axis + 1)
    return reshaped(emit, found, emit.result_shape)


def scatter_elements(emit: Emitter, op: GraphOp) -> SSAValue:
    """Updates u that hit position p: hit[…, p, u, …] = (indices[…, u, …] = p), combined over u, then with x.

    "none": the greatest u that hits p is chosen; where none does, x stays.
    """
    x, indices, updates = op.args
    shape, axis = static_shape(x.type), _axis(op, 0)
    row, size = element(x.type), shape[axis]
    places = _wrapped(emit, indices, size)
    missing = [
        0 if d == axis else s - p for d, (s, p) in enumerate(zip(shape, static_shape(indices.type), strict=True))
    ]
    if any(missing):  # beside the indices nothing is hit
        places = padded(emit, places, [0] * len(shape), missing, -1)
        updates = padded(emit, updates, [0] * len(shape), missing, 0)
    count = static_shape(places.type)[axis]
    spread = [*shape[:axis], 1, count, *shape[axis + 1 :]]
    places, updates = reshaped(emit, places, spread), reshaped(emit, updates, spread)
    rank = len(spread)
    hit = emit.map("eq", places, positions(emit, size, rank, axis))
    name = SCATTER_REDUCTIONS[scatter_reduction(op.properties)]
    if name is not None:
        neutral = _constant(emit, MONOIDS[name].identity(row), row.name)
        chosen = emit.map("select", hit, updates, neutral, to=row.attribute)
        total = reshaped(emit, emit.reduce(name, chosen, [axis + 1]), shape)
        return emit.map(MONOIDS[name].combine.name, x, total, to=emit.result_element)
    order = positions(emit, count, rank, axis + 1)
    last = emit.reduce("max", emit.map("select", hit, order, _constant(emit, -1, "i32")), [axis + 1])
    found = reshaped(emit, _chosen(emit, emit.map("eq", last, order), updates, axis + 1), shape)
    touched = emit.map("ge", reshaped(emit, last, shape), _constant(emit, 0, "i32"))
    return emit.map("select", touched, found, x, to=emit.result_element)


def place(emit: Emitter, op: GraphOp) -> SSAValue:
    """The least (greatest) position that holds the extremum or a NaN."""
    assert isinstance(op, PlaceOp)
    x, axis = op.args[0], _axis(op, -1)
    shape = static_shape(x.type)
    hit = emit.map("eq", x, emit.reduce(op.MONOID, x, [axis], to=element(x.type).attribute))
    if element(x.type).kind == "float":
        hit = emit.map("or", hit, emit.map("isnan", x))
    last = get_flag(op.properties, "last", op.what())
    outside = _constant(emit, -1 if last else shape[axis], "i32")
    order = emit.map("select", hit, positions(emit, shape[axis], len(shape), axis), outside)
    return emit.map("cast", emit.reduce("max" if last else "min", order, [axis]), to=emit.result_element)


def running(emit: Emitter, op: GraphOp) -> SSAValue:
    """The monoid over j of select(j ≤ i, x[j], neutral) in […, i, j, …]."""
    assert isinstance(op, RunningOp)
    x, axis = op.args[0], _axis(op, -1)
    shape = static_shape(x.type)
    size, rank = shape[axis], len(shape) + 1
    exclusive, reverse = (get_flag(op.properties, name, op.what()) for name in ("exclusive", "reverse"))
    i, j = positions(emit, size, rank, axis), positions(emit, size, rank, axis + 1)
    fn = ("gt" if exclusive else "ge") if reverse else ("lt" if exclusive else "le")
    neutral = _constant(emit, MONOIDS[op.MONOID].identity(element(x.type)), element(x.type).name)
    spread = reshaped(emit, x, [*shape[:axis], 1, size, *shape[axis + 1 :]])
    chosen = emit.map("select", emit.map(fn, j, i), spread, neutral, to=element(x.type).attribute)
    return reshaped(emit, emit.reduce(op.MONOID, chosen, [axis + 1], to=emit.result_element), shape)
