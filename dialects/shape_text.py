"""Extents and element type inside the parameters of a type: `16x512xf32` or, for rank 0, `f32`."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, IntAttr
from xdsl.ir import Attribute
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .errors import UserError

MAX_RANK = 24
"""Most dimensions of a tensor, tile or view: a contraction has one letter for each of them."""

MAX_ELEMENTS = 1 << 40
"""Most elements of a tensor, tile or view: addresses stay far inside 64 bits."""


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
    """Raises VerifyException for an extent below 1; `what` names the type in the message."""
    if any(extent < 1 for extent in shape):
        raise VerifyException(f"{what} extents are at least 1, got {list(shape)}")


def check_limits(shape: Sequence[int]) -> None:
    """Raises UserError for a shape beyond MAX_RANK or MAX_ELEMENTS; symbolic extents (negative) count as 1."""
    if len(shape) > MAX_RANK:
        raise UserError(f"a shape has at most {MAX_RANK} dimensions, this one {len(shape)}")
    if prod(max(extent, 1) for extent in shape) > MAX_ELEMENTS:
        raise UserError(f"a shape has at most 2^{MAX_ELEMENTS.bit_length() - 1} elements, this one more")
