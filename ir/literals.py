"""Numbers, strings and the bits of constants: what a literal says, without where it stands."""

from __future__ import annotations

import re
from typing import Any, cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    StringAttr,
)
from xdsl.ir import Attribute
from xdsl.utils.lexer import Input
from xdsl.utils.mlir_lexer import StringLiteral

from .diagnostics import verify_message

_BITS = re.compile(r"0[xX][0-9A-Fa-f]+")
_NUMBER = re.compile(r"0[xX][0-9A-Fa-f]+|-?[0-9]+(?:\.[0-9]*(?:[eE][-+]?[0-9]+)?)?|true|false")
_INTEGER = re.compile(r"(?<![\w.])-?[0-9]+(?![\w.])")
_ESCAPES = 'write \\n, \\t, \\\\, \\" or \\0A'


class BadLiteral(Exception):
    """A literal that means nothing. `offset` and `length` are the part of it at fault (length 0: all of it)."""

    def __init__(self, message: str, offset: int = 0, length: int = 0, suggestion: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.length = length
        self.suggestion = suggestion


def number(text: str, type_: Attribute) -> Attribute:
    """An integer or float of a type; hexadecimal digits of a float type are bits. Raises BadLiteral."""
    hexadecimal = "x" in text or "X" in text
    try:
        if isinstance(type_, IntegerType | IndexType) and "." not in text:
            return IntegerAttr(int(text, 0 if hexadecimal else 10), cast(IntegerType, type_))
        if isinstance(type_, AnyFloat):
            if hexadecimal:
                raw = int(text, 16).to_bytes(type_.compile_time_size, "little")
                return FloatAttr(next(iter(type_.iter_unpack(raw))), type_)
            return FloatAttr(float(text), type_)
    except Exception as error:
        # Range checks raise VerifyException, OverflowError, struct.error, …: all say that the number does not fit.
        raise BadLiteral(f"{text} does not fit {type_}: {verify_message(error)}") from None
    raise BadLiteral(f"{text} cannot be of type {type_}")


def string(text: str) -> StringAttr | BytesAttr:
    """A quoted string. Escaped bytes beyond ASCII make it a bytes attribute. Raises BadLiteral at an unknown escape."""
    if "\\" not in text:
        return StringAttr(text[1:-1])
    bad = re.search(r'\\(?!["nt\\]|[0-9A-Fa-f]{2})', text.replace("\\\\", "  "))
    if bad:
        raise BadLiteral("unknown escape in a string", bad.start(), 2, _ESCAPES)
    contents = _contents(text)
    return StringAttr(contents.decode()) if contents.isascii() else BytesAttr(contents)


def unescape(text: str) -> str:
    """The characters of a quoted symbol name."""
    return _contents(text).decode("utf-8", "replace") if "\\" in text else text[1:-1]


def _contents(text: str) -> bytes:
    return StringLiteral(0, len(text), Input(text, "")).bytes_contents


def check_integers(literal: str, type_: IntegerType) -> IntegerType:
    """Raises BadLiteral at the first integer of a `dense<…>` that does not fit the type."""
    low, high = type_.value_range()
    for match in _INTEGER.finditer("" if '"' in literal else literal):
        digits = match.group()
        if len(digits) > 20 or not low <= int(digits) < high:
            raise BadLiteral(f"{digits[:24]} does not fit {type_}", match.start(), len(digits))
    return type_


def has_bits(literal: str) -> bool:
    """Whether a `dense<…>` literal writes some element as bits, outside of a string."""
    return '"' not in literal and _BITS.search(literal) is not None


def without_bits(literal: str) -> str:
    """The literal with zeros in place of bits: xDSL would read those as integers."""
    return _BITS.sub("0.0", literal)


def with_bits(constant: DenseIntOrFPElementsAttr[AnyFloat], literal: str) -> Attribute:
    """The constant of `without_bits(literal)` with the bits that the literal writes. Raises BadLiteral."""
    element = constant.get_element_type()
    size = element.compile_time_size
    data = bytearray(constant.data.data)
    numbers = _NUMBER.findall(literal)
    for index, text in enumerate(numbers if len(numbers) > 1 else numbers * (len(data) // size)):
        if _BITS.fullmatch(text):
            bits = int(text, 16)
            if bits >> 8 * size:
                raise BadLiteral(f"{text} has more bits than {element}")
            data[index * size : (index + 1) * size] = bits.to_bytes(size, "little")
    return DenseIntOrFPElementsAttr(cast(Any, constant.type), BytesAttr(bytes(data)))
