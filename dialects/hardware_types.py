"""The type of the hardware level: a view, the bytes that one operand of one instruction touches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@irdl_attr_definition
class ViewType(ParametrizedAttribute, TypeAttribute):
    """`!hardware.view<16x512xf32, "ub">`: shape, element type and memory; the address is in `hardware.view`."""

    name = "hardware.view"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute
    memory: StringAttr

    def __init__(self, shape: Sequence[int], element_type: Attribute, memory: str) -> None:
        super().__init__(ArrayAttr([IntAttr(extent) for extent in shape]), element_type, StringAttr(memory))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent.data for extent in self.extents)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            memory = parser.parse_str_literal()
        return [ArrayAttr([IntAttr(extent) for extent in shape]), element, StringAttr(memory)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            for extent in self.shape:
                printer.print_string(f"{extent}x")
            printer.print_attribute(self.element_type)
            printer.print_string(", ")
            printer.print_string_literal(self.memory.data)

    def verify(self) -> None:
        if any(extent < 0 for extent in self.shape):
            raise VerifyException(f"view extents must not be negative, got {list(self.shape)}")
