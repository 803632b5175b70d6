"""What instructions mean on arrays: the inputs' active regions in, the output's active region out.

Arithmetic is in the compute type of the operands; the result is rounded once, to the type of the output.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from ...dialects import hardware, scalar
from ...dialects.attributes import int_values
from ...dialects.dtypes import ElementType, accumulator_type, convert, element
from ...dialects.errors import UserError
from ...dialects.graph_types import get_numbers
from ...dialects.instruction_rules import is_position, position
from ...dialects.transfer import Region
from ..reference_numbers import Numbers
from ..reference_primitives import einsum
from .program import Instruction

Array: TypeAlias = npt.NDArray[Any]
_NUMBERS = Numbers("native")


def scalar_value(attr: Attribute) -> tuple[Array, Attribute]:
    """A written number as an array of rank 0 in its type."""
    if not isinstance(attr, FloatAttr | IntegerAttr):
        raise UserError(f"'{attr}' is not a number")
    number = cast("FloatAttr[Any] | IntegerAttr[Any]", attr)
    kind = cast(Attribute, number.type)
    return _NUMBERS.enter(np.asarray(number.value.data), kind), kind


def vector(step: Instruction, op: hardware.VectorOp, inputs: Sequence[Array]) -> Array:
    """One scalar operator. Raises UserError for a wrong number of operands."""
    kinds = [view.element.attribute for view in step.views]
    slots: Sequence[Attribute | int] = op.immediates.data if op.immediates is not None else range(len(inputs))
    arguments: list[Array] = []
    types: list[Attribute] = []
    for slot in slots:
        if isinstance(slot, int) or is_position(slot):
            number = slot if isinstance(slot, int) else position(slot)
            value, kind = inputs[number], kinds[number]
        else:
            value, kind = scalar_value(slot)
        arguments.append(value)
        types.append(kind)
    row = scalar.lookup(op.fn.data)
    if len(arguments) != row.arity:
        raise UserError(f"'{row.name}' takes {row.arity} operands, got {len(arguments)}")
    result = step.output.element
    if row.name in ("cast", "identity"):
        return convert(arguments[0], result)
    if row.name == "select":
        operands = [arguments[0], *_NUMBERS.lift_all(arguments[1:], types[1:])]
    else:
        operands = _NUMBERS.lift_all(arguments, types)
    params = get_numbers({"params": op.params}, "params", f"'{row.name}'") if op.params is not None else {}
    return _rounded(scalar.apply(row, operands, params), result)


def reduce(step: Instruction, op: hardware.ReduceOp, source: Array) -> Array:
    """A monoid over axes, in the accumulator type."""
    lifted = _NUMBERS.lift(source, accumulator_type(step.views[0].element.attribute))
    ufunc = scalar.monoid(op.monoid.data).ufunc
    with np.errstate(all="ignore"):
        total = np.asarray(ufunc.reduce(lifted, axis=int_values(op.axes), keepdims=True, dtype=lifted.dtype))
    return _rounded(total, step.output.element)


def product(step: Instruction, op: hardware.MatmulOp, lhs: Array, rhs: Array, before: Array | None) -> Array:
    """lhs · rhs, added to `before`, in f32 (integers in i32; their exact sums are found with 64-bit floats)."""
    left, right = step.views[0].element, step.views[1].element
    with np.errstate(all="ignore"):
        if left.kind == "int" and right.kind == "int" and max(left.bytes, right.bytes) == 1:
            total = (
                einsum(op.spec.data, lhs.astype(np.float64), rhs.astype(np.float64)).astype(np.int64).astype(np.int32)
            )
        else:
            accumulator = accumulator_type(left.attribute)
            total = einsum(op.spec.data, _NUMBERS.lift(lhs, accumulator), _NUMBERS.lift(rhs, accumulator))
        if before is not None:
            total = total + before.astype(total.dtype, copy=False)
    return _rounded(total, step.output.element)


def iota(step: Instruction, counters: Sequence[int], region: Region) -> Array:
    """`map`(counters, positions) over the region."""
    assert step.map is not None
    rank = len(region)
    positions = [
        np.arange(low, high).reshape([-1 if d == axis else 1 for d in range(rank)])
        for axis, (low, high) in enumerate(region)
    ]
    (value,) = step.map.at([*counters[: len(step.loops)], *cast("list[int]", positions)])
    return convert(np.asarray(value, np.int64), step.output.element)


def _rounded(value: Array, result: ElementType) -> Array:
    with np.errstate(all="ignore"):
        return convert(value, result)


def copied(step: Instruction, source: Array) -> Array:
    """A transfer's data in the destination's type."""
    return _rounded(source, step.output.element)


def filled(step: Instruction, op: hardware.FillOp) -> Array:
    """The written value in the output's type."""
    value, _ = scalar_value(op.value)
    return _rounded(value, element(step.output.element.attribute))
