"""One named op per row of the scalar table: graph.add, graph.exp, …; and the few that need more than a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, IntegerAttr, StringAttr
from xdsl.ir import Attribute
from xdsl.irdl import irdl_op_definition, opt_prop_def

from .errors import UserError
from .graph_base import GraphOp
from .graph_primitives import check_params
from .graph_types import Properties, Tensor, get_number, get_string, shape_of
from .scalar import TABLE, ScalarOp, infer_element


class ElementwiseOp(GraphOp):
    """A scalar operator of the table on every element, operands broadcast as NumPy does.

    Means `graph.map {fn = <the op's own name>}`; the result's element type follows from the operands.
    """

    SCALAR: ClassVar[ScalarOp]
    params = opt_prop_def(DictionaryAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        check_params(cls.SCALAR.name, properties, cls.what())
        types = cls.expect_operands(operand_types, cls.SCALAR.arity)
        return [cls.broadcast_type(infer_element(cls.SCALAR, [t.element_type for t in types], cls.what()), types)]


def _define(row: ScalarOp) -> type[ElementwiseOp]:
    members = {
        "__doc__": f"Elementwise `{row.name}`; see the table of scalar operators.",
        "__module__": __name__,
        "name": f"graph.{row.name}",
    }
    defined = irdl_op_definition(type(f"{row.name.title().replace('_', '')}Op", (ElementwiseOp,), members))
    defined.SCALAR = row
    return defined


# `cast` has a rule of its own below.
ELEMENTWISE: dict[str, type[ElementwiseOp]] = {name: _define(row) for name, row in TABLE.items() if name != "cast"}


@irdl_op_definition
class CastOp(GraphOp):
    """Converts to the element type of the written result type; see `dtypes.convert` for rounding and saturation."""

    name = "graph.cast"

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        (source,) = cls.expect_operands(operand_types, 1)
        if shape_of(source) != shape_of(result):
            raise UserError(f"{cls.what()} keeps the shape, got {source} and {result}")


@irdl_op_definition
class WhereOp(GraphOp):
    """`%a` where the i1 condition holds, else `%b`: operands condition, a, b, broadcast as NumPy does."""

    name = "graph.where"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 3)
        cls.expect_same_element(types[1:])
        return [cls.broadcast_type(infer_element(TABLE["select"], [t.element_type for t in types], cls.what()), types)]


@irdl_op_definition
class ClipOp(GraphOp):
    """min(max(x, low), high); a missing bound does not bind; NaN stays NaN."""

    name = "graph.clip"
    low = opt_prop_def(FloatAttr | IntegerAttr)
    high = opt_prop_def(FloatAttr | IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_number(source)
        for bound in ("low", "high"):
            if bound in properties:
                get_number(properties, bound, None, cls.what())
        return [source]


@irdl_op_definition
class GeluOp(GraphOp):
    """x · Φ(x), Φ the normal distribution function.

    approximate = "none": x/2 · (1 + erf(x · √½)); "tanh": x/2 · (1 + tanh(√(2/π) · (x + 0.044715·x³))). The three
    constants are rounded to the compute type.
    """

    name = "graph.gelu"
    approximate = opt_prop_def(StringAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_float(source)
        gelu_form(properties)
        return [source]


def gelu_form(properties: Properties) -> str:
    """Which form: none or tanh. Raises UserError for another `approximate`."""
    form = get_string(properties, "approximate", "none", "'graph.gelu'")
    if form not in ("none", "tanh"):
        raise UserError(f'\'graph.gelu\' approximate is "none" or "tanh", got "{form}"')
    return form


@irdl_op_definition
class SiluOp(GraphOp):
    """x · sigmoid(x)."""

    name = "graph.silu"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        cls.expect_float(source)
        return [source]
