"""What instructions mean on arrays: the inputs' active regions in, the output's active region out.

Arithmetic is in the compute type of the operands; the result is rounded once, to the type of the output. Arrays may
have further dimensions in front, one for each loop around the instruction: what is computed for many iterations at
once is, bit for bit, what is computed for each. For that, products and sums are taken of dense operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import Attribute

from ...dialects import hardware, scalar
from ...dialects.attributes import int_values
from ...dialects.dtypes import ElementType, accumulator_type, common_compute_type, convert, element
from ...dialects.errors import UserError
from ...dialects.graph_types import get_numbers
from ...dialects.instruction_rules import is_position, position
from ...dialects.transfer import Region
from ..contraction import contraction
from ..reference_numbers import Numbers
from .program import Instruction

Array: TypeAlias = npt.NDArray[Any]
DType: TypeAlias = np.dtype[Any]
_NUMBERS = Numbers("native")


@dataclass(frozen=True)
class Operator:
    """`apply` takes the inputs in these `types`; what it gives, in type `computed`, is converted to `result`."""

    types: tuple[DType, ...]
    apply: Callable[..., Array]
    computed: DType
    result: ElementType

    def __call__(self, inputs: Sequence[Array]) -> Array:
        taken = (array.astype(t, copy=False) for array, t in zip(inputs, self.types, strict=True))
        return convert(self.apply(*taken), self.result)


@lru_cache(maxsize=1 << 12)
def operator(step: Instruction) -> Operator:
    """What a transfer, a vector instruction or a reduction computes. Raises UserError for a wrong number of
    operands."""
    match step.op:
        case hardware.VectorOp():
            return _vector(step, step.op)
        case hardware.ReduceOp():
            return _reduce(step, step.op)
        case hardware.DmaOp() if step.op.computes:
            return _output_stage(step, step.op)
        case _:
            return _converted(step)


def _converted(step: Instruction) -> Operator:
    source = step.views[0].element.numpy
    return Operator((source,), np.asarray, source, step.output.element)


def _output_stage(step: Instruction, op: hardware.DmaOp) -> Operator:
    """A transfer that scales and activates on the way."""
    source, factor = step.views[0].element.attribute, None
    kinds = [source]
    if op.scale is not None:
        factor, kind = scalar_value(op.scale)
        kinds.append(kind)
    compute = element(common_compute_type(kinds)).numpy
    factor = None if factor is None else factor.astype(compute)
    function = scalar.lookup(op.activation.data).function if op.activation is not None else None

    def apply(array: Array) -> Array:
        made = array if factor is None else array * factor
        return made if function is None else np.asarray(function(made))

    return Operator((compute,), apply, compute, step.output.element)


def scalar_value(attr: Attribute) -> tuple[Array, Attribute]:
    """A written number as an array of rank 0 in its type."""
    if not isinstance(attr, FloatAttr | IntegerAttr):
        raise UserError(f"'{attr}' is not a number")
    number = cast("FloatAttr[Any] | IntegerAttr[Any]", attr)
    kind = cast(Attribute, number.type)
    return _NUMBERS.enter(np.asarray(number.value.data), kind), kind


def _vector(step: Instruction, op: hardware.VectorOp) -> Operator:
    """One scalar operator."""
    inputs = step.views[:-1]
    slots = list(op.immediates.data) if op.immediates is not None else list(range(len(inputs)))
    numbers = [slot if isinstance(slot, int) else position(slot) if is_position(slot) else None for slot in slots]
    written = [scalar_value(slot) if not isinstance(slot, int) and not is_position(slot) else None for slot in slots]
    kinds = [
        inputs[n].element.attribute if n is not None else cast(tuple[Array, Attribute], value)[1]
        for n, value in zip(numbers, written, strict=True)
    ]
    row = scalar.lookup(op.fn.data)
    if len(slots) != row.arity:
        raise UserError(f"'{row.name}' takes {row.arity} operands, got {len(slots)}")
    types = [view.element.numpy for view in inputs]
    converts = row.name in ("cast", "identity")
    data = 1 if row.name == "select" else len(slots) if converts else 0  # the first operand that computes
    if data < len(slots):
        compute = _NUMBERS.held(element(common_compute_type(kinds[data:])))
        for n in set(numbers[data:]) - set(numbers[:data]) - {None}:
            types[cast(int, n)] = compute
        written = [w if w is None or d < data else (w[0].astype(compute), w[1]) for d, w in enumerate(written)]
    else:
        compute = None
    params = get_numbers({"params": op.params}, "params", f"'{row.name}'") if op.params is not None else {}
    function = row.function

    def apply(*arrays: Array) -> Array:
        operands = [
            cast(tuple[Array, Attribute], value)[0] if n is None else arrays[n]
            for n, value in zip(numbers, written, strict=True)
        ]
        if converts:
            return operands[0]
        operands[data:] = [operand.astype(compute, copy=False) for operand in operands[data:]]
        return np.asarray(function(*operands, **params))

    if converts:
        computed = element(kinds[0]).numpy
    else:
        assert compute is not None
        computed = np.dtype(np.bool_) if row.result == "bool" else compute
    return Operator(tuple(types), apply, computed, step.output.element)


def _reduce(step: Instruction, op: hardware.ReduceOp) -> Operator:
    """A monoid over axes, in the accumulator type."""
    rank = len(step.views[0].shape)
    reduced = sorted(axis % rank - rank for axis in int_values(op.axes))
    kept = [d - rank for d in range(rank) if d - rank not in reduced]
    lifted = _NUMBERS.held(element(accumulator_type(step.views[0].element.attribute)))
    ufunc = scalar.monoid(op.monoid.data).ufunc
    rounds = lifted.kind not in "iub" and ufunc not in (np.maximum, np.minimum)

    def apply(source: Array) -> Array:
        if reduced and reduced[-1] != -1:
            return _folded(ufunc, source, reduced)
        if not rounds:
            return np.asarray(ufunc.reduce(source, axis=tuple(reduced), keepdims=True, dtype=lifted))
        lead = source.ndim - rank
        turned = source.transpose([*range(lead), *(d + source.ndim for d in kept), *(d + source.ndim for d in reduced)])
        rows = np.ascontiguousarray(turned).reshape(*turned.shape[: turned.ndim - len(reduced)], -1)
        total = np.asarray(ufunc.reduce(rows, axis=-1, dtype=lifted))
        whole = [1 if d - rank in reduced else source.shape[lead + d] for d in range(rank)]
        return total.reshape(*source.shape[:lead], *whole)

    return Operator((lifted,), apply, lifted, step.output.element)


def _folded(ufunc: np.ufunc, source: Array, axes: Sequence[int]) -> Array:
    """A monoid over axes of which none is the last: halves of each are combined, element by element, until one is left.

    NumPy would combine rows of the last axis one after another, which is slow where they are short.
    """
    for axis in axes:
        source = np.moveaxis(source, axis, 0)
        while len(source) > 1:
            half = len(source) // 2
            folded = np.asarray(ufunc(source[:half], source[half : 2 * half]))
            if len(source) % 2:
                ufunc(folded[0], source[-1], out=folded[0])
            source = folded
        source = np.moveaxis(source, 0, axis)
    return source


def product_type(step: Instruction) -> DType:
    """In which type products are added up: f32; i32 for 8-bit integers, whose exact sums are found with 64-bit
    floats."""
    left, right = step.views[0].element, step.views[1].element
    if left.kind == "int" and right.kind == "int" and max(left.bytes, right.bytes) == 1:
        return np.dtype(np.float64)
    return _NUMBERS.held(element(accumulator_type(left.attribute)))


def matrices(op: hardware.MatmulOp, side: int, array: Array) -> Array:
    """One operand of a product in its type (0: lhs, 1: rhs), dense, as the product takes it."""
    found = contraction(op.spec.data)
    return np.ascontiguousarray(found.rhs(array) if side else found.lhs(array))


def product(
    step: Instruction, op: hardware.MatmulOp, region: Region, lhs: Array, rhs: Array, before: Array | None
) -> Array:
    """lhs · rhs, both as `matrices`, added to `before` over the region."""
    sizes = {
        letter: region[axis][1] - region[axis][0]
        for part, axes in zip(op.letters(), step.axes, strict=True)
        for letter, axis in zip(part, axes, strict=True)
    }
    total = contraction(op.spec.data).product(lhs, rhs, sizes)
    if total.dtype == np.float64 and step.views[0].element.kind == "int":
        total = total.astype(np.int64).astype(np.int32)
    if before is not None:
        before = before.astype(total.dtype, copy=False)
        grows = np.broadcast_shapes(total.shape, before.shape) != total.shape
        total = np.add(total, before, out=None if grows else total)
    return convert(total, step.output.element)


def iota(step: Instruction, counters: Sequence[int | Array], region: Region) -> Array:
    """`map`(counters, positions) over the region; a counter may be an array over iterations."""
    assert step.map is not None
    rank = len(region)
    around = [c.reshape(*c.shape, *[1] * rank) if isinstance(c, np.ndarray) else c for c in counters[: len(step.loops)]]
    positions = [
        np.arange(low, high).reshape([-1 if d == axis else 1 for d in range(rank)])
        for axis, (low, high) in enumerate(region)
    ]
    (value,) = step.map.at(cast("list[int]", [*around, *positions]))
    return convert(np.asarray(value, np.int64), step.output.element)


def filled(step: Instruction, op: hardware.FillOp) -> Array:
    """The written value in the output's type."""
    value, _ = scalar_value(op.value)
    return convert(value, element(step.output.element.attribute))
