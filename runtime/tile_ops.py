"""What the compute ops of the tile dialect mean on arrays and masks of defined elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import DenseArrayBase, DictionaryAttr, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute

from ..dialects import scalar, tile
from ..dialects.dtypes import accumulator_type, common_compute_type, element
from ..dialects.errors import UserError
from ..dialects.graph_types import get_numbers
from ..dialects.instruction_rules import is_position, position
from .contraction import einsum
from .reference_numbers import Numbers

Array: TypeAlias = npt.NDArray[Any]
Masked: TypeAlias = tuple[Array, Array]
"""Elements, and which of them are defined."""


def immediate(numbers: Numbers, attr: Attribute) -> tuple[Array, Attribute]:
    """A written scalar as a held array of rank 0, and its element type."""
    if not isinstance(attr, FloatAttr | IntegerAttr):
        raise UserError(f"'{attr}' is not a scalar value")
    number = cast("FloatAttr[Any] | IntegerAttr[Any]", attr)
    kind = cast(Attribute, number.type)
    return numbers.enter(np.asarray(number.value.data), kind), kind


def apply_stage(numbers: Numbers, op: tile.MoveOp, data: Array, result: Attribute) -> Array:
    """What a move makes of the elements of its tile."""
    source = tile.element_of(op.tiles[0])
    if not op.computes:
        return numbers.cast(data, source, result)
    factor, kind = (None, source) if op.scale is None else immediate(numbers, op.scale)
    made = numbers.lift(data, common_compute_type([source, kind]))
    if factor is not None:
        made = scalar.apply(scalar.lookup("mul"), numbers.lift_all([made, factor], [source, kind]), {})
    if op.activation is not None:
        made = scalar.apply(scalar.lookup(op.activation.data), [made], {})
    return numbers.lower(made, result)


def apply_map(numbers: Numbers, op: tile.MapOp, tiles: Sequence[Masked], result: Attribute) -> Masked:
    """One scalar operator; `tiles` are the valid parts of the operands, `result` the element type to round to."""
    arguments: list[Array] = []
    types: list[Attribute] = []
    kinds = [tile.element_of(value) for value in op.tiles]
    slots = op.immediates.data if op.immediates is not None else range(len(tiles))
    for slot in slots:
        if isinstance(slot, int) or is_position(slot):
            number = slot if isinstance(slot, int) else position(slot)
            arguments.append(tiles[number][0])
            types.append(kinds[number])
        else:
            value, kind = immediate(numbers, slot)
            arguments.append(value)
            types.append(kind)
    defined = np.asarray(True)
    for _, mask in tiles:
        defined = defined & mask
    row = scalar.lookup(op.fn.data)
    if len(arguments) != row.arity:
        raise UserError(f"'{op.fn.data}' takes {row.arity} operands, got {len(arguments)}", op.location)
    if row.name in ("cast", "identity"):
        return numbers.cast(arguments[0], types[0], result), defined
    if row.name == "select":
        operands = [arguments[0], *numbers.lift_all(arguments[1:], types[1:])]
    else:
        operands = numbers.lift_all(arguments, types)
    properties = {"params": op.params} if isinstance(op.params, DictionaryAttr) else {}
    value = scalar.apply(row, operands, get_numbers(properties, "params", f"'{row.name}'"))
    return numbers.lower(value, result), defined


def reduced_axes(op: tile.ReduceOp) -> tuple[int, ...]:
    """The dimensions that a reduction shrinks to 1."""
    return tuple(cast("DenseArrayBase[IntegerType]", op.axes).get_values())


def apply_reduce(numbers: Numbers, op: tile.ReduceOp, source: Masked, result: Attribute) -> Masked:
    """A monoid over `axes` of the valid part. Undefined where nothing, or something undefined, is reduced."""
    data, defined = source
    axes = reduced_axes(op)
    lifted = numbers.lift(data, accumulator_type(tile.element_of(op.tiles[0])))
    ufunc = scalar.monoid(op.monoid.data).ufunc
    empty = any(data.shape[axis] == 0 for axis in axes)
    mask = np.logical_and.reduce(defined, axis=axes, keepdims=True) & (not empty)
    if empty:
        return np.zeros(mask.shape, numbers.held(element(result))), mask
    with np.errstate(all="ignore"):
        total = np.asarray(ufunc.reduce(lifted, axis=axes, keepdims=True, dtype=lifted.dtype))
    return numbers.lower(total, result), mask


def apply_contract(
    numbers: Numbers, op: tile.ContractOp, lhs: Masked, rhs: Masked, before: Masked | None, result: Attribute
) -> Masked:
    """lhs · rhs, added to `before` where there is one. Operands are cut to the common valid extents already."""
    spec = op.spec.data
    accumulator = accumulator_type(tile.element_of(op.tiles[0]))
    with np.errstate(all="ignore"):
        total = einsum(spec, numbers.lift(lhs[0], accumulator), numbers.lift(rhs[0], accumulator))
    wrong = einsum(spec, (~lhs[1]).astype(np.float32), np.ones(rhs[1].shape, np.float32))
    wrong = wrong + einsum(spec, np.ones(lhs[1].shape, np.float32), (~rhs[1]).astype(np.float32))
    defined = wrong == 0
    if before is not None:
        with np.errstate(all="ignore"):
            total = total + numbers.lift(before[0], accumulator)
        defined = defined & before[1]
    return numbers.lower(total, result), defined
