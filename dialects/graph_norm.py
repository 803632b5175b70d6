"""Named reductions and what is built on them: softmax, normalisations, sums and extrema over axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def

from .errors import UserError
from .graph_base import GraphOp
from .graph_types import (
    Properties,
    broadcast,
    get_flag,
    get_int,
    get_ints,
    get_number,
    get_string,
    normalize_axes,
    normalize_axis,
    shape_of,
    tensor_type,
)


class AxisOp(GraphOp):
    """Works along one `axis` (default the last) of a floating-point tensor and keeps its type."""

    axis = opt_prop_def(IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_float(source)
        normalize_axis(get_int(properties, "axis", -1, cls.what()), len(shape_of(source)), cls.what())
        return [source]


@irdl_op_definition
class SoftmaxOp(AxisOp):
    """exp(x − max x) / Σ exp(x − max x) along `axis`.

    A row of −∞ only gives NaN, as the formula does, or 0 with {masked_rows = "zero"}.
    """

    name = "graph.softmax"
    masked_rows = opt_prop_def(StringAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        masked_rows(properties)
        return super().infer_types(operand_types, properties)


def masked_rows(properties: Properties) -> str:
    """What a fully masked row of a softmax becomes: nan or zero. Raises UserError for something else."""
    choice = get_string(properties, "masked_rows", "nan", "'graph.softmax'")
    if choice not in ("nan", "zero"):
        raise UserError(f'\'graph.softmax\' masked_rows is "nan" or "zero", got "{choice}"')
    return choice


@irdl_op_definition
class LogSoftmaxOp(AxisOp):
    """x − max x − log Σ exp(x − max x) along `axis`."""

    name = "graph.log_softmax"


class NormOp(GraphOp):
    """Normalises over the dimensions `axis` … last (default the last one), then scales by operand 1 if there is one.

    `epsilon` (default 1e-5, rounded to the compute type) keeps the root away from 0. Further operands broadcast to x.
    """

    MOST_OPERANDS: ClassVar[int] = 2
    axis = opt_prop_def(IntegerAttr)
    epsilon = opt_prop_def(FloatAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 1, cls.MOST_OPERANDS)
        source = types[0]
        for type_ in types:
            cls.expect_float(type_)
            if broadcast([shape_of(source), shape_of(type_)], cls.what()) != shape_of(source):
                raise UserError(f"{cls.what()}: {type_} does not broadcast to {source}")
        normalize_axis(get_int(properties, "axis", -1, cls.what()), len(shape_of(source)), cls.what())
        get_number(properties, "epsilon", 1e-5, cls.what())
        return [source]


@irdl_op_definition
class LayerNormOp(NormOp):
    """(x − mean) / √(variance + epsilon) · scale + bias; operands x, scale, bias, the last two optional.

    The variance is the mean square of x − mean.
    """

    name = "graph.layer_norm"
    MOST_OPERANDS: ClassVar[int] = 3


@irdl_op_definition
class RmsNormOp(NormOp):
    """x / √(mean of x² + epsilon) · scale; operands x and, optionally, scale."""

    name = "graph.rms_norm"


class ReductionOp(GraphOp):
    """Reduces `axes` (default all) of a tensor; {keepdims} leaves them with size 1, otherwise they go.

    The result may be written in another element type of the same kind: sums are kept in the accumulator type.
    """

    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    axes = opt_prop_def(DenseArrayBase)
    keepdims = opt_prop_def(UnitAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_number(source)
        shape = shape_of(source)
        axes = reduced_axes(properties, len(shape), cls.what())
        if get_flag(properties, "keepdims", cls.what()):
            return [tensor_type(source.element_type, [1 if d in axes else s for d, s in enumerate(shape)])]
        return [tensor_type(source.element_type, [s for d, s in enumerate(shape) if d not in axes])]


def reduced_axes(properties: Properties, rank: int, what: str) -> tuple[int, ...]:
    """The axes of a named reduction, ascending; all of them if none are given."""
    return normalize_axes(get_ints(properties, "axes", range(rank), what), rank, what)


@irdl_op_definition
class ReduceSumOp(ReductionOp):
    """The sum."""

    name = "graph.reduce_sum"


@irdl_op_definition
class ReduceProdOp(ReductionOp):
    """The product."""

    name = "graph.reduce_prod"


@irdl_op_definition
class ReduceMaxOp(ReductionOp):
    """The greatest element; NaN if there is one."""

    name = "graph.reduce_max"


@irdl_op_definition
class ReduceMinOp(ReductionOp):
    """The least element; NaN if there is one."""

    name = "graph.reduce_min"


@irdl_op_definition
class ReduceMeanOp(ReductionOp):
    """The sum divided by the number of elements; floating-point numbers only."""

    name = "graph.reduce_mean"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        for type_ in cls.expect_operands(operand_types, 1):
            cls.expect_float(type_)
        return super().infer_types(operand_types, properties)
