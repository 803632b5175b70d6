"""NumPy meaning of the primitives of the graph dialect, and of the elementwise ops that are one scalar operator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

from ..dialects import scalar
from ..dialects.dtypes import accumulator_type, convert, dense_array, element
from ..dialects.errors import UserError
from ..dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, ReduceOp, TakeOp, ViewOp, WeightOp
from ..dialects.graph_types import get_ints, get_numbers, static_shape
from ..dialects.index_map import gather_box
from .contraction import einsum
from .reference_numbers import Numbers

Array: TypeAlias = npt.NDArray[Any]
Loader: TypeAlias = Callable[[str, str], Array]


def apply_scalar(
    numbers: Numbers,
    fn: str,
    arrays: Sequence[Array],
    types: Sequence[Attribute],
    result: Attribute,
    properties: Mapping[str, Attribute],
) -> Array:
    """One scalar operator on held arrays: compute in the common compute type, round to the element type of result."""
    row = scalar.lookup(fn)
    if row.name == "cast":
        return numbers.cast(arrays[0], types[0], result)
    if row.name == "select":
        operands = [arrays[0], *numbers.lift_all(arrays[1:], types[1:])]
    else:
        operands = numbers.lift_all(arrays, types)
    value = scalar.apply(row, operands, get_numbers(properties, "params", f"'{fn}'"))
    return numbers.lower(np.broadcast_to(value, static_shape(result)), result)


def reduce(numbers: Numbers, op: ReduceOp, array: Array) -> Array:
    """A monoid over axes, in the accumulator type."""
    source = op.args[0].type
    lifted = numbers.lift(array, accumulator_type(source))
    ufunc = scalar.monoid(op.monoid.data).ufunc
    axes = tuple(a % array.ndim for a in get_ints(op.properties, "axes", None, op.what()))
    with np.errstate(all="ignore"):
        total = np.asarray(ufunc.reduce(lifted, axis=axes, keepdims=True, dtype=lifted.dtype))
    return numbers.lower(total, op.res.type)


def contract(numbers: Numbers, op: ContractOp, a: Array, b: Array) -> Array:
    """A two-operand einsum in the accumulator type."""
    accumulator = accumulator_type(op.args[0].type)
    with np.errstate(all="ignore"):
        total = einsum(op.spec.data, numbers.lift(a, accumulator), numbers.lift(b, accumulator))
    return numbers.lower(total, op.res.type)


def view(numbers: Numbers, op: ViewOp, arrays: Sequence[Array]) -> Array:
    """Each piece gathered into its box; the rest is the fill."""
    row = element(op.res.type)
    fill = 0 if op.fill_value is None else op.fill_value
    value = convert(np.asarray(fill, np.float64 if row.kind == "float" else np.int64), row)
    result = np.full(static_shape(op.res.type), value.astype(numbers.held(row)))
    for map_, box, array in zip(op.affine_maps, op.boxes, arrays, strict=True):
        if all(low < high for low, high in box):
            result[tuple(slice(low, high) for low, high in box)] = gather_box(map_, box, array)
    return result


def take(op: TakeOp, x: Array, indices: Array) -> Array:
    """Rows of x. Raises UserError, at the op, for an index that is no row's."""
    axis = op.axis.value.data % x.ndim
    outside = (indices < 0) | (indices >= x.shape[axis])
    if outside.any():
        wrong = int(indices[outside].flat[0])
        raise UserError(f"index {wrong} is none of the {x.shape[axis]} rows that '{op.name}' takes", op.location)
    return np.take(x, indices.astype(np.int64), axis)


def iota(numbers: Numbers, op: IotaOp) -> Array:
    """The index along one dimension."""
    shape = static_shape(op.res.type)
    axis = op.dim.value.data % len(shape)
    line = np.arange(shape[axis]).reshape([-1 if d == axis else 1 for d in range(len(shape))])
    return np.broadcast_to(numbers.enter(line, op.res.type), shape)


def constant(numbers: Numbers, op: ConstantOp) -> Array:
    """The written values."""
    return numbers.enter(dense_array(op.value), op.res.type)


def weight(numbers: Numbers, op: WeightOp, loader: Loader | None) -> Array:
    """The stored values. Raises UserError without a loader or for values of another shape."""
    if loader is None:
        raise UserError(f"weight '{op.key.data}' of '{op.file.data}' cannot be read here", op.location)
    array = loader(op.file.data, op.key.data)
    if array.shape != static_shape(op.res.type):
        raise UserError(f"weight '{op.key.data}' has shape {list(array.shape)}, written is {op.res.type}", op.location)
    return numbers.enter(array, op.res.type)
