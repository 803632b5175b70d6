"""Rewrites of scalar operators by the algebra of their table, bit for bit; folding of those on constants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute, SSAValue

from ..dialects import scalar
from ..dialects.dtypes import common_compute_type, convert, dense, dense_array, element, splat
from ..dialects.graph_base import GraphOp
from ..dialects.graph_elementwise import CastOp, ElementwiseOp, WhereOp
from ..dialects.graph_primitives import ConstantOp, MapOp
from ..dialects.graph_types import get_numbers, shape_of, static_shape
from ..dialects.scalar import ScalarOp

Array = npt.NDArray[Any]


def scalar_of(op: GraphOp) -> ScalarOp | None:
    """The scalar operator that an op applies to every element, if it is one."""
    match op:
        case MapOp():
            return scalar.lookup(op.fn.data)
        case ElementwiseOp():
            return op.SCALAR
        case CastOp():
            return scalar.TABLE["cast"]
        case WhereOp():
            return scalar.TABLE["select"]
        case _:
            return None


def constant_of(value: SSAValue) -> Array | None:
    """The elements of a value that is a constant."""
    return dense_array(value.owner.value) if isinstance(value.owner, ConstantOp) else None


def splat_of(value: SSAValue) -> Array | None:
    """The one element of a constant whose elements are all the same, bit for bit, as a rank-0 array."""
    return splat(value.owner.value) if isinstance(value.owner, ConstantOp) else None


def make_constant(array: Array, op: GraphOp) -> ConstantOp:
    """A constant of the result type of `op`, for an array in the stored dtype."""
    return ConstantOp.make([], op.res.type, {"value": dense(array, op.result_tensor.element_type)})


def simplify_scalar(op: GraphOp) -> SSAValue | ConstantOp | None:
    """What `op` may be replaced by: a value it equals bit for bit, a new constant, or None."""
    row = scalar_of(op)
    if row is None:
        return None
    operands = list(op.args)
    if row.name in ("cast", "identity"):
        return _if_same(operands[0], op) if _same_element(operands[0], op) else None
    if row.name == "select":
        return _select(op, operands)
    if row.arity == 1:
        return _repeated(row, op, operands[0])
    return _pair(row, op, operands)


def _if_same(value: SSAValue, op: GraphOp) -> SSAValue | None:
    return value if value.type == op.res.type else None


def _same_element(value: SSAValue, op: GraphOp) -> bool:
    return element(value.type) == element(op.res.type)


def _select(op: GraphOp, operands: Sequence[SSAValue]) -> SSAValue | None:
    condition, a, b = operands
    if a is b:
        return _if_same(a, op)
    known = splat_of(condition)
    if known is None or shape_of(condition.type) not in ((), shape_of(op.res.type)):
        return None
    return _if_same(a if known else b, op)


def _repeated(row: ScalarOp, op: GraphOp, operand: SSAValue) -> SSAValue | None:
    """f(f(x)) is x for an involution, f(x) for an idempotent operator; all three in one type."""
    inner = operand.owner
    if not isinstance(inner, GraphOp) or scalar_of(inner) is not row or operand.type != op.res.type:
        return None
    if row.involution:
        return _if_same(inner.args[0], op)
    return operand if row.idempotent and not row.params else None


def _pair(row: ScalarOp, op: GraphOp, operands: Sequence[SSAValue]) -> SSAValue | ConstantOp | None:
    """f(x, e) is x, f(x, z) is z, f(x, x) is x, by the table."""
    a, b = operands
    if a is b and row.idempotent:
        return _if_same(a, op)
    compute = common_compute_type([a.type, b.type])
    kind = element(compute).kind
    for value, other in ((a, b), (b, a)) if row.commutative else ((a, b),):
        known = splat_of(other)
        if known is None:
            continue
        known = convert(known, element(compute))
        if kind in row.identity and _equal_bits(known, row.identity[kind]) and _if_same(value, op):
            return value
        if kind in row.absorbing and _equal_bits(known, row.absorbing[kind]):
            stored = convert(np.full(static_shape(op.res.type), row.absorbing[kind], known.dtype), element(op.res.type))
            return make_constant(stored, op)
    return None


def _equal_bits(known: Array, wanted: float | int | bool) -> bool:
    """Equality that tells −0 from +0."""
    return bool(known == wanted) and bool(np.signbit(np.float64(known)) == np.signbit(np.float64(wanted)))


def fold_scalar(op: GraphOp) -> ConstantOp | None:
    """The op on constant operands as a constant, computed and rounded as any evaluation does; else None."""
    row = scalar_of(op)
    arrays = [constant_of(value) for value in op.args]
    known = [array for array in arrays if array is not None]
    if row is None or len(known) != len(arrays):
        return None
    target = element(op.res.type)
    if row.name == "cast":
        return make_constant(convert(known[0], target), op)
    types: list[Attribute] = [value.type for value in op.args]
    first = 1 if row.name == "select" else 0
    compute = element(common_compute_type(types[first:])).numpy
    with np.errstate(all="ignore"):
        lifted = [*known[:first], *(array.astype(compute) for array in known[first:])]
    value = scalar.apply(row, lifted, get_numbers(op.properties, "params", op.what()))
    return make_constant(convert(np.broadcast_to(value, static_shape(op.res.type)), target), op)
