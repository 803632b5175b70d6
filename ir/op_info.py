"""What the text layer needs to know of an operation's definition, worked out once per name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrSizedSegments, BaseAttr, IRDLOperation
from xdsl.traits import IsolatedFromAbove

_OURS = ("graph", "tile", "hardware")


class InfersTypes(Protocol):
    """Operations whose result types follow from operands and properties (see the graph dialect)."""

    @classmethod
    def infer_types(
        cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute]
    ) -> list[Attribute]: ...

    @classmethod
    def check_types(
        cls, operand_types: Sequence[Attribute], properties: Mapping[str, Attribute], result: Attribute
    ) -> None: ...


@dataclass(frozen=True)
class OpInfo:
    """`properties`: names in the order of the definition, segment sizes first, each with the attribute class that its
    definition asks for (None where it says more than a class). `strict`: of our dialects, where a name without a
    dialect in front is a property or a mistake.
    """

    cls: type[Operation]
    properties: Mapping[str, type[Attribute] | None]
    operands: tuple[str, ...]
    isolated: bool
    strict: bool
    has_results: bool
    infers: type[InfersTypes] | None
    checks: type[InfersTypes] | None

    @staticmethod
    @cache
    def of(op_class: type[Operation]) -> OpInfo:
        isolated = op_class.has_trait(IsolatedFromAbove)
        infers = cast("type[InfersTypes]", op_class) if hasattr(op_class, "infer_types") else None
        checks = cast("type[InfersTypes]", op_class) if hasattr(op_class, "check_types") else None
        if not issubclass(op_class, IRDLOperation) or issubclass(op_class, UnregisteredOp):
            return OpInfo(op_class, {}, (), isolated, False, True, infers, checks)
        definition = op_class.get_irdl_definition()
        segments = [
            option.attribute_name
            for option in definition.options
            if isinstance(option, AttrSizedSegments) and option.as_property
        ]
        properties: dict[str, type[Attribute] | None] = dict.fromkeys(segments)
        for name, prop in definition.properties.items():
            properties[name] = prop.constr.attr if isinstance(prop.constr, BaseAttr) else None
        operands = tuple(name for name, _ in definition.operands)
        strict = definition.name.partition(".")[0] in _OURS
        return OpInfo(op_class, properties, operands, isolated, strict, bool(definition.results), infers, checks)
