"""Types of the tile level: tiles (values held on chip) and buffers (the bytes that hold them)."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .layout import LayoutAttr
from .shape_text import extents_of, parse_shape, print_shape, verify_shape


@irdl_attr_definition
class TileType(ParametrizedAttribute, TypeAttribute):
    """`!tile.tile<16x512xf32, "ub">`: a dense block of elements held on chip.

    The memory is empty (and not printed) until the `place` pass has chosen it.
    """

    name = "tile.tile"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute
    memory: StringAttr

    def __init__(self, shape: Sequence[int], element_type: Attribute, memory: str = "") -> None:
        super().__init__(extents_of(shape), element_type, StringAttr(memory))

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent.data for extent in self.extents)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parse_shape(parser)
            memory = parser.parse_str_literal() if parser.parse_optional_punctuation(",") else ""
        return [extents_of(shape), element, StringAttr(memory)]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.shape, self.element_type)
            if self.memory.data:
                printer.print_string(", ")
                printer.print_string_literal(self.memory.data)

    def verify(self) -> None:
        verify_shape(self.shape, "tile")


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """`!tile.buffer<16x512xf32, "ub", #tile.layout<[16, 2048], [512, 4]>>`: bytes of one memory read as a tile.

    The layout lists, per logical dimension, pairs of extent and byte stride.
    """

    name = "tile.buffer"
    extents: ArrayAttr[IntAttr]
    element_type: Attribute
    memory: StringAttr
    layout: LayoutAttr

    def __init__(self, shape: Sequence[int], element_type: Attribute, memory: str, layout: LayoutAttr) -> None:
        super().__init__(extents_of(shape), element_type, StringAttr(memory), layout)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(extent.data for extent in self.extents)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            shape, element = parse_shape(parser)
            parser.parse_punctuation(",")
            memory = parser.parse_str_literal()
            parser.parse_punctuation(",")
            layout = parser.parse_attribute()
        return [extents_of(shape), element, StringAttr(memory), layout]

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            print_shape(printer, self.shape, self.element_type)
            printer.print_string(", ")
            printer.print_string_literal(self.memory.data)
            printer.print_string(", ")
            printer.print_attribute(self.layout)

    def verify(self) -> None:
        verify_shape(self.shape, "buffer")
        if not self.memory.data:
            raise VerifyException("a buffer names its memory")
