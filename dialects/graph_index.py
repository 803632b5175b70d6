"""Named ops that move elements to or from places that the data say, and those that find places or run along an axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def

from .dtypes import by_name, element
from .errors import UserError
from .graph_base import GraphOp
from .graph_types import (
    Properties,
    Tensor,
    get_flag,
    get_int,
    get_string,
    normalize_axis,
    shape_of,
    static_shape,
    tensor_type,
)

SCATTER_REDUCTIONS = {"none": None, "add": "sum", "mul": "prod", "max": "max", "min": "min"}
"""What `reduction` of a scatter may be → the monoid that combines."""


class IndexOp(GraphOp):
    """Operand 1 holds indices along `axis` of operand 0: integers, negative ones counted from the end."""

    axis = opt_prop_def(IntegerAttr)

    @classmethod
    def expect_indices(cls, indices: Tensor) -> None:
        """Raises UserError that names the type unless indices are integers."""
        if element(indices).kind != "int":
            raise UserError(f"{cls.what()} takes integers as indices, got {element(indices).name} in {indices}")

    @classmethod
    def axis_of(cls, properties: Properties, rank: int) -> int:
        """The axis counted from the front (default 0)."""
        return normalize_axis(get_int(properties, "axis", 0, cls.what()), rank, cls.what())


@irdl_op_definition
class GatherOp(IndexOp):
    """out[a…, i…, b…] = x[a…, indices[i…], b…], the index in the place of `axis`; 0 for an index outside of x.

    `finite` says that x holds no NaN and no infinity, so that 0·x = 0: the rows may then be chosen by a matrix product.
    """

    name = "graph.gather"
    finite = opt_prop_def(UnitAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, indices = cls.expect_operands(operand_types, 2)
        cls.expect_indices(indices)
        get_flag(properties, "finite", cls.what())
        shape = shape_of(source)
        axis = cls.axis_of(properties, len(shape))
        return [tensor_type(source.element_type, [*shape[:axis], *shape_of(indices), *shape[axis + 1 :]])]


@irdl_op_definition
class GatherElementsOp(IndexOp):
    """out[…, i, …] = x[…, indices[…, i, …], …]; 0 for an index outside.

    Other dimensions of the indices are at most x's.
    """

    name = "graph.gather_elements"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, indices = cls.expect_operands(operand_types, 2)
        cls.expect_indices(indices)
        check_beside(cls, source, indices, cls.axis_of(properties, len(shape_of(source))))
        return [tensor_type(source.element_type, shape_of(indices))]


@irdl_op_definition
class ScatterElementsOp(IndexOp):
    """x with element […, indices[…, i, …], …] replaced by (or combined with) updates[…, i, …].

    reduction = "none": the last of several updates of one element counts; "add", "mul", "max", "min": all of them and
    the old element are combined. An index outside of x changes nothing.
    """

    name = "graph.scatter_elements"
    reduction = opt_prop_def(StringAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, indices, updates = cls.expect_operands(operand_types, 3)
        cls.expect_indices(indices)
        cls.expect_same_element([source, updates])
        if scatter_reduction(properties) != "none":
            cls.expect_number(source)
        check_beside(cls, source, indices, cls.axis_of(properties, len(shape_of(source))))
        if shape_of(indices) != shape_of(updates):
            raise UserError(f"{cls.what()} takes indices and updates of one shape, got {indices} and {updates}")
        return [source]


def scatter_reduction(properties: Properties) -> str:
    """How updates are combined. Raises UserError for an unknown way."""
    name = get_string(properties, "reduction", "none", "'graph.scatter_elements'")
    if name not in SCATTER_REDUCTIONS:
        known = ", ".join(SCATTER_REDUCTIONS)
        raise UserError(f"'graph.scatter_elements' reduction is one of {known}, got \"{name}\"")
    return name


def check_beside(cls: type[GraphOp], source: Tensor, indices: Tensor, axis: int) -> None:
    """Raises UserError unless the indices fit beside the source: same rank, no other dimension larger."""
    whole, part = static_shape(source), static_shape(indices)
    fits = len(whole) == len(part) and all(
        p <= w for d, (w, p) in enumerate(zip(whole, part, strict=True)) if d != axis
    )
    if not fits:
        raise UserError(f"{cls.what()}: indices {indices} do not fit beside {source} along axis {axis}")


class AlongAxisOp(GraphOp):
    """Takes one tensor of numbers and goes along its `axis` (default: the last)."""

    axis = opt_prop_def(IntegerAttr)

    @classmethod
    def source_and_axis(cls, operand_types: Sequence[Attribute], properties: Properties) -> tuple[Tensor, int]:
        """The operand's type, and the axis counted from the front. Raises UserError where they do not fit."""
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_number(source)
        return source, normalize_axis(get_int(properties, "axis", -1, cls.what()), len(shape_of(source)), cls.what())


class PlaceOp(AlongAxisOp):
    """The index along `axis` of the first (with `last`: the last) extremal element; the axis stays with size 1.

    A NaN counts as extremal. Indices are i64, or another integer type that is written.
    """

    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    MONOID: ClassVar[str]
    last = opt_prop_def(UnitAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, axis = cls.source_and_axis(operand_types, properties)
        get_flag(properties, "last", cls.what())
        shape = list(shape_of(source))
        shape[axis] = 1
        return [tensor_type(by_name("i64").attribute, shape)]


@irdl_op_definition
class ArgMaxOp(PlaceOp):
    """The index of the greatest element along `axis`."""

    name = "graph.arg_max"
    MONOID: ClassVar[str] = "max"


@irdl_op_definition
class ArgMinOp(PlaceOp):
    """The index of the least element along `axis`."""

    name = "graph.arg_min"
    MONOID: ClassVar[str] = "min"


class RunningOp(AlongAxisOp):
    """Each element combined with all before it along `axis`, in the accumulator type.

    `exclusive` leaves the element itself out, `reverse` takes those after it instead.
    """

    MONOID: ClassVar[str]
    exclusive = opt_prop_def(UnitAttr)
    reverse = opt_prop_def(UnitAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, _ = cls.source_and_axis(operand_types, properties)
        for name in ("exclusive", "reverse"):
            get_flag(properties, name, cls.what())
        return [source]


@irdl_op_definition
class CumSumOp(RunningOp):
    """Running sums along `axis`."""

    name = "graph.cum_sum"
    MONOID: ClassVar[str] = "sum"


@irdl_op_definition
class CumProdOp(RunningOp):
    """Running products along `axis`."""

    name = "graph.cum_prod"
    MONOID: ClassVar[str] = "prod"
