"""What the text layer needs to know of an operation's definition, worked out once per name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol, cast

from xdsl.dialects.builtin import UnregisteredOp
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrSizedSegments, IRDLOperation
from xdsl.traits import IsolatedFromAbove


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
    """`properties`: names in the order of the definition, segment sizes first."""

    cls: type[Operation]
    properties: tuple[str, ...]
    operands: tuple[str, ...]
    isolated: bool
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
            return OpInfo(op_class, (), (), isolated, True, infers, checks)
        definition = op_class.get_irdl_definition()
        segments = [
            option.attribute_name
            for option in definition.options
            if isinstance(option, AttrSizedSegments) and option.as_property
        ]
        names = tuple(dict.fromkeys([*segments, *definition.properties]))
        operands = tuple(name for name, _ in definition.operands)
        return OpInfo(op_class, names, operands, isolated, bool(definition.results), infers, checks)
