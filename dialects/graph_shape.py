"""Named ops that move elements: each is one `graph.view` after decomposition."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def

from .errors import UserError
from .graph_base import GraphOp
from .graph_types import (
    Dim,
    Properties,
    Shape,
    Tensor,
    broadcast,
    get_int,
    get_ints,
    get_number,
    normalize_axis,
    shape_of,
    shape_text,
    tensor_type,
)


@irdl_op_definition
class TransposeOp(GraphOp):
    """Dimension i of the result is dimension permutation[i] of the operand; reversed if no permutation is given."""

    name = "graph.transpose"
    permutation = opt_prop_def(DenseArrayBase)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        shape = shape_of(source)
        return [tensor_type(source.element_type, [shape[p] for p in permutation_of(properties, len(shape))])]


def permutation_of(properties: Properties, rank: int) -> tuple[int, ...]:
    """The permutation of a transpose. Raises UserError unless it names each axis once."""
    order = get_ints(properties, "permutation", range(rank)[::-1], "'graph.transpose'")
    if sorted(order) != list(range(rank)):
        raise UserError(f"'graph.transpose' permutation {list(order)} does not name each of {rank} axes once")
    return order


@irdl_op_definition
class ReshapeOp(GraphOp):
    """The elements in row-major order in the shape of the written result type."""

    name = "graph.reshape"

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        (source,) = cls.expect_operands(operand_types, 1)
        if cls.expect_same_element([source, result]) and _count(shape_of(source)) != _count(shape_of(result)):
            raise UserError(f"{cls.what()} keeps the number of elements, got {source} and {result}")


def _count(shape: Shape) -> tuple[int, Counter[str]]:
    numbers = math.prod(d for d in shape if isinstance(d, int))
    return numbers, Counter(d for d in shape if isinstance(d, str))


@irdl_op_definition
class ExpandOp(GraphOp):
    """NumPy broadcast to the written result type."""

    name = "graph.expand"

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_same_element([source, result])
        if broadcast([shape_of(source), shape_of(result)], cls.what()) != shape_of(result):
            raise UserError(f"{cls.what()}: {source} does not broadcast to {result}")


@irdl_op_definition
class SliceOp(GraphOp):
    """Element starts + steps · i of each dimension, for i below its size.

    Give `sizes` of the result, or exclusive `limits` of the operand index; steps default to 1 and may be negative.
    """

    name = "graph.slice"
    starts = prop_def(DenseArrayBase)
    sizes = opt_prop_def(DenseArrayBase)
    limits = opt_prop_def(DenseArrayBase)
    steps = opt_prop_def(DenseArrayBase)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        shape = shape_of(source)
        starts, sizes, steps = slice_of(properties, len(shape))
        for dim, start, size, step in zip(shape, starts, sizes, steps, strict=True):
            if isinstance(dim, str):
                raise UserError(f"{cls.what()} needs numbers for dimensions, got '{dim}' in {source}")
            last = start + step * (size - 1)
            if size < 1 or not (0 <= start < dim and 0 <= last < dim):
                raise UserError(
                    f"{cls.what()}: starts {list(starts)}, sizes {list(sizes)}, steps {list(steps)} leave {source}"
                )
        return [tensor_type(source.element_type, sizes)]


def slice_of(properties: Properties, rank: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Starts, sizes and steps of a slice. Raises UserError for missing, wrongly many or contradictory ones."""
    what = "'graph.slice'"
    starts = get_ints(properties, "starts", None, what)
    steps = get_ints(properties, "steps", [1] * rank, what)
    if ("sizes" in properties) == ("limits" in properties):
        raise UserError(f"{what} takes either 'sizes' or 'limits'")
    name = "sizes" if "sizes" in properties else "limits"
    bounds = get_ints(properties, name, None, what)
    if not len(starts) == len(steps) == len(bounds) == rank or 0 in steps:
        raise UserError(f"{what} needs 'starts', '{name}' and nonzero 'steps' for each of {rank} dimensions")
    if name == "limits":
        bounds = tuple(-((start - limit) // step) for start, limit, step in zip(starts, bounds, steps, strict=True))
    return starts, bounds, steps


@irdl_op_definition
class ConcatOp(GraphOp):
    """The operands one after another along `axis`."""

    name = "graph.concat"
    axis = prop_def(IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 1, max(1, len(operand_types)))
        element_type = cls.expect_same_element(types)
        shapes = [shape_of(t) for t in types]
        axis = normalize_axis(get_int(properties, "axis", None, cls.what()), len(shapes[0]), cls.what())
        total = 0
        for shape in shapes:
            size = shape[axis] if len(shape) == len(shapes[0]) else None
            if (
                not isinstance(size, int)
                or shape[:axis] + shape[axis + 1 :] != shapes[0][:axis] + shapes[0][axis + 1 :]
            ):
                texts = " and ".join(shape_text(s) for s in shapes)
                raise UserError(f"{cls.what()}: shapes {texts} do not join along axis {axis}")
            total += size
        return [tensor_type(element_type, [*shapes[0][:axis], total, *shapes[0][axis + 1 :]])]


@irdl_op_definition
class PadOp(GraphOp):
    """`low` elements before and `high` after each dimension, all of them `value` (default 0)."""

    name = "graph.pad"
    low = prop_def(DenseArrayBase)
    high = prop_def(DenseArrayBase)
    value = opt_prop_def(FloatAttr | IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        shape = shape_of(source)
        low, high = (get_ints(properties, name, None, cls.what()) for name in ("low", "high"))
        get_number(properties, "value", 0.0, cls.what())
        if len(low) != len(shape) or len(high) != len(shape) or min((*low, *high), default=0) < 0:
            raise UserError(f"{cls.what()} needs 'low' and 'high' of at least 0 for each of {len(shape)} dimensions")
        padded: list[Dim] = []
        for dim, before, after in zip(shape, low, high, strict=True):
            if isinstance(dim, str) and before + after:
                raise UserError(f"{cls.what()} needs numbers for padded dimensions, got '{dim}' in {source}")
            padded.append(dim if isinstance(dim, str) else before + dim + after)
        return [tensor_type(source.element_type, padded)]
