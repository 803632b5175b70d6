"""The base of the graph ops: positional tensor operands, one result, types inferred from operands and properties.

A subclass states its rule in `infer_types`; the verifier compares. Where the result type is part of what the user
says (a reshape, a cast), `infer_types` asks for it and the rule stands in `check_types`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Literal, Self, cast

from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation, result_def, traits_def, var_operand_def
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .dtypes import element
from .errors import UserError
from .graph_types import Properties, Tensor, as_tensor, broadcast, shape_of, tensor_type


class GraphOp(IRDLOperation):
    """A pure op on tensors with one result.

    ELEMENT_RULE says how far a written result type may differ from the inferred one in its element type: "same" not
    at all, "kind" to another type of the same kind (f16 to f32), as for products that are kept wider.
    """

    args = var_operand_def()
    res = result_def()
    traits = traits_def(Pure())
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "same"

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        """The result types. Raises UserError if operands or properties break the op's rule, or for an op whose type
        must be written."""
        raise UserError(f"{cls.what()} needs its result type written")

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        """Raises UserError unless `result` is a result type the op may have."""
        inferred = as_tensor(cls.infer_types(operand_types, properties)[0], cls.what())
        fits = shape_of(inferred) == shape_of(result)
        if fits and inferred.element_type != result.element_type:
            fits = cls.ELEMENT_RULE == "kind" and element(inferred).kind == element(result).kind
        if not fits:
            raise UserError(f"{cls.what()}: the written type {result} disagrees with the inferred {inferred}")

    @classmethod
    def what(cls) -> str:
        """The op's name as messages quote it."""
        return f"'{cls.name}'"

    @classmethod
    def expect_operands(cls, operand_types: Sequence[Attribute], low: int, high: int | None = None) -> list[Tensor]:
        """The operand types as tensors. Raises UserError unless there are `low` (to `high`) of them."""
        top = low if high is None else high
        if not low <= len(operand_types) <= top:
            count = str(low) if low == top else f"{low} to {top}"
            raise UserError(f"{cls.what()} takes {count} operand{'s' * (count != '1')}, got {len(operand_types)}")
        return [as_tensor(t, cls.what()) for t in operand_types]

    @classmethod
    def expect_float(cls, type_: Tensor) -> None:
        """Raises UserError that names the type unless its elements are floating-point numbers."""
        if element(type_).kind != "float":
            raise UserError(f"{cls.what()} takes floating-point numbers, got {element(type_).name} in {type_}")

    @classmethod
    def expect_number(cls, type_: Tensor) -> None:
        """Raises UserError that names the type unless its elements are numbers."""
        if element(type_).kind == "bool":
            raise UserError(f"{cls.what()} takes numbers, got i1 in {type_}; convert it with graph.cast")

    @classmethod
    def expect_same_element(cls, types: Sequence[Tensor]) -> Attribute:
        """The one element type of all operands. Raises UserError that names both if they differ."""
        for other in types[1:]:
            if other.element_type != types[0].element_type:
                raise UserError(
                    f"{cls.what()} takes operands of one element type, got {types[0].element_type} and "
                    f"{other.element_type}; convert one with graph.cast"
                )
        return types[0].element_type

    @classmethod
    def broadcast_type(cls, element_type: Attribute, types: Sequence[Tensor]) -> Tensor:
        """The tensor of `element_type` over the broadcast of the operands' shapes."""
        return tensor_type(element_type, broadcast([shape_of(t) for t in types], cls.what()))

    @property
    def result_tensor(self) -> Tensor:
        """The type of the result."""
        return cast(Tensor, self.res.type)

    def verify_(self) -> None:
        try:
            self.check_types([a.type for a in self.args], self.properties, as_tensor(self.res.type, self.what()))
        except UserError as error:
            raise VerifyException(error.message) from error

    @classmethod
    def make(
        cls,
        operands: Sequence[SSAValue],
        result_type: Attribute | None = None,
        properties: Properties | None = None,
    ) -> Self:
        """A new op; the result type is inferred unless given. Raises UserError if it cannot be."""
        props = dict(properties or {})
        type_ = cls.infer_types([o.type for o in operands], props)[0] if result_type is None else result_type
        return cls.create(operands=operands, result_types=[type_], properties=props)
