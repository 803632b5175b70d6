"""Extents and element type inside the parameters of a type: `16x512xf32` or, for rank 0, `f32`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


def extents_of(shape: Sequence[int]) -> ArrayAttr[IntAttr]:
    """A shape as the attribute that types store."""
    return ArrayAttr([IntAttr(extent) for extent in shape])


def parse_shape(parser: AttrParser) -> tuple[Sequence[int], Attribute]:
    """Extents and element type; raises xDSL's ParseError on anything else."""
    return parser.parse_ranked_shape()


def print_shape(printer: Printer, shape: Sequence[int], element: Attribute) -> None:
    """What `parse_shape` reads."""
    for extent in shape:
        printer.print_string(f"{extent}x")
    printer.print_attribute(element)


def verify_shape(shape: Sequence[int], what: str) -> None:
    """Raises VerifyException where an extent is negative; `what` names the type in the message."""
    if any(extent < 0 for extent in shape):
        raise VerifyException(f"{what} extents must not be negative, got {list(shape)}")
