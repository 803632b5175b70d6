"""The type of the hardware level: a view, the bytes that one operand of one instruction touches."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from .shape_text import extents_of, parse_shape, print_shape, verify_shape


@irdl_attr_definition
class ViewType(ParametrizedAttribute, TypeAttribute):
    """`!hardware.view<16x512xf32, "ub">`: shape, element type and memory; the address is in `hardware.view`."""

    name = "hardware.view"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute
    memory: StringAttr

    def __init__(self, shape: Sequence[int], element_type: Attribute, memory: str) -> None:
        super().__init__(extents_of(shape), element_type, StringAttr(memory))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent.data for extent in self.extents)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parse_shape(parser)
            parser.parse_punctuation(",")
            memory = parser.parse_str_literal()
        return [extents_of(shape), element, StringAttr(memory)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.shape, self.element_type)
            printer.print_string(", ")
            printer.print_string_literal(self.memory.data)

    def verify(self) -> None:
        verify_shape(self.shape, "view")
