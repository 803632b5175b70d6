"""Tokens of the syntax tree to xDSL attributes, each distinct text once.

Literals are read here. Whatever a dialect or xDSL gives its own syntax goes to xDSL's attribute parser, so nothing
about single types is repeated; positions inside such a token are mapped back to the file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from lark import Token
from xdsl.context import Context
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    AnyFloat,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FunctionType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    f64,
    i1,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

from ..dialects.errors import UserError
from ..dialects.graph_types import DimsAttr, bind_dims
from ..dialects.hardware_types import ViewType
from ..dialects.shape_text import check_limits
from ..dialects.tile_types import BufferType, TileType
from .diagnostics import SourceError, did_you_mean, verify_message
from .literals import BadLiteral, check_integers, has_bits, number, string, unescape, with_bits, without_bits
from .syntax import Array, Dict, Typed, Value
from .syntax_errors import diagnostic_at, number_spelling

_INTEGERS = re.compile(r"array<(i64|i32)(?:: (-?\d+(?:, -?\d+)*))?>")
_FILE_LOCATION = re.compile(r'loc\("([^"\\]*)":(\d+):(\d+)\)')
_SYMBOL = re.compile(r'@(?:("(?:[^"\\]|\\.)*")|([\w$.]+))')
# A word, but not the dimensions in front of it: of `4x8xf32` the `f32`.
_WORD = re.compile(r"(?<=x)[A-Za-z_]\w*|\b[A-Za-z_]\w*")
_ELEMENT_TYPES = ("f32", "f16", "bf16", "f64", "i64", "i32", "i8", "ui8", "i1", "index", "tensor")
_LONG_NUMBER = re.compile(r'"(?:[^"\\]|\\.)*"|(?<![\w.])(\d{12,})')
"""A number of many digits, outside of strings."""
_BY_ZERO = re.compile(r"\b(?:floordiv|ceildiv|mod)\s+0\b")
MAX_NUMBER = 1 << 40
"""Largest number inside a type, a map or a layout."""

_ALIAS_NAME = re.compile(r"[#!][A-Za-z_][\w$]*")
_MAX_ALIAS_SIZE = 100_000
"""Most aliases that one alias may stand for, directly or through others."""

_MAX_DEPTH = 64
"""Levels of brackets inside one token; xDSL's parser recurses over them."""


class AttributeReader:
    """Reads the attributes of one text.

    `dims` binds symbolic dimensions; each name it gives must occur (see `unused_dims`).
    """

    def __init__(self, context: Context, text: str, file: str, dims: Mapping[str, int]) -> None:
        self.context = context
        self.text = text
        self.file = file
        self.dims = dims
        self.dims_seen: set[str] = set()
        self._file_attr = StringAttr(file)
        self._aliases: dict[str, Attribute] = {}
        self._alias_sizes: dict[str, int] = {}
        self._cache: dict[str, Attribute] = {
            "true": IntegerAttr(-1, i1),
            "false": IntegerAttr(0, i1),
            "unit": UnitAttr(),
        }
        self._ints: dict[int, IntAttr] = {}

    def error(self, message: str, token: Token, suggestion: str = "", offset: int = 0, length: int = 0) -> SourceError:
        """The error at a token, or at `offset` within it."""
        start = (token.start_pos or 0) + offset
        size = length or len(token.split("\n")[0])
        return SourceError([diagnostic_at(message, self.text, self.file, start, size, suggestion)])

    # --- types

    def type(self, token: Token) -> Attribute:
        """The type written by a TYPE or SIGNATURE token. Raises SourceError if it is not a type."""
        attribute = self.named(token)
        if not isinstance(attribute, TypeAttribute):
            raise self.error(f"expected a type, got {token}", token)
        return attribute

    def signature(self, token: Token) -> FunctionType:
        """A function type."""
        return cast(FunctionType, self.named(token))

    def named(self, token: Token) -> Attribute:
        """The attribute of a token that xDSL (or the fast paths for what is frequent) reads as a whole."""
        text = token.value
        found = self._cache.get(text)
        if found is None:
            self._check_numbers(token)
            found = self._integers(text) or self._parse(token, text)
            try:
                found = self._bind(found)
            except UserError as error:
                raise self.error(error.message, token) from None
            self._cache[text] = found
        return found

    def _check_numbers(self, token: Token) -> None:
        """Extents, strides and coefficients stay where 64-bit arithmetic on them cannot overflow."""
        for match in _LONG_NUMBER.finditer(token.value):
            digits = match[1]
            if digits and (len(digits) > 19 or int(digits) > MAX_NUMBER):
                raise self.error("this number is too large: at most 2^40", token, "", match.start(1), len(digits))
        if "affine_" in token.value:
            for match in _BY_ZERO.finditer(token.value):
                raise self.error("division by zero", token, "", match.start(), len(match.group()))

    def _integers(self, text: str) -> Attribute | None:
        match = _INTEGERS.fullmatch(text)
        if match is None or match[1] != "i64":
            return None
        return DenseArrayBase.from_list(i64, [int(v) for v in match[2].split(", ")] if match[2] else [])

    def _parse(self, token: Token, text: str) -> Attribute:
        if _depth(text) > _MAX_DEPTH:
            raise self.error(f"nested too deeply: more than {_MAX_DEPTH} brackets within one another", token)
        parser = Parser(self.context, text)
        parser.attribute_aliases.update(self._aliases)
        try:
            attribute = parser.parse_attribute()
            if parser.pos != len(text):
                parser.raise_error("unexpected text after this")
        except ParseError as error:
            raise self._unreadable(token, text, error) from None
        except OverflowError:
            raise self.error("a number here does not fit its type", token) from None
        except Exception as error:
            # Attribute parsers and verifiers raise whatever fits them; for the reader of the text it is bad input.
            raise self.error(f"invalid attribute: {verify_message(error)}", token) from None
        return attribute

    def _unreadable(self, token: Token, text: str, error: ParseError) -> SourceError:
        """xDSL's error at the word it stopped at; a word that is nearly an element type gets a suggestion.

        `text` starts with the token.
        """
        offset = min(error.span.start, len(text) - 1)
        word = next((m for m in _WORD.finditer(text) if m.start() <= offset < m.end()), None)
        near = number_spelling(text) or (did_you_mean(word.group(), _ELEMENT_TYPES) if word else "")
        start, length = (word.start(), len(word.group())) if word else (offset, 1)
        if start >= len(token.value):
            start, length = 0, 0  # What does not fit is the token as a whole.
        what = f"cannot read '{text if len(text) <= 60 else text[:57] + '…'}': {_sentence(error.msg)}"
        return self.error(what, token, near, start, length)

    # --- symbolic dimensions

    def _bind(self, attribute: Attribute) -> Attribute:
        if isinstance(attribute, DimsAttr):
            self.dims_seen.update(name.data for name in attribute.names)
            return attribute
        if isinstance(attribute, ArrayAttr):
            members = cast(ArrayAttr[Attribute], attribute).data
            bound = [self._bind(member) for member in members]
            changed = any(a is not b for a, b in zip(bound, members, strict=True))
            return ArrayAttr(bound) if changed else cast(Attribute, attribute)
        if not isinstance(attribute, ParametrizedAttribute):
            return attribute
        _check_shape(attribute)
        old = attribute.parameters
        new = [self._bind(parameter) for parameter in old]
        if any(a is not b for a, b in zip(old, new, strict=True)):
            attribute = type(attribute).new(new)
        if not self.dims_seen:
            return attribute
        bound = bind_dims(attribute, self.dims)
        _check_shape(bound)
        return bound

    def unused_dims(self) -> list[str]:
        """Names in `dims` that no type of the text has."""
        return [name for name in self.dims if name not in self.dims_seen]

    # --- values

    def value(self, node: Value | None) -> Attribute:
        """The attribute of a value in a dictionary; None stands for a key alone."""
        match node:
            case None:
                return UnitAttr()
            case Token():
                return self._literal(node)
            case Typed(literal, type_):
                return self._typed(literal, type_)
            case Array(values):
                return ArrayAttr([self.value(value) for value in values])
            case Dict():
                return DictionaryAttr(self.dictionary(node))

    def dictionary(self, node: Dict | None) -> dict[str, Attribute]:
        """Keys and values in their order. Raises SourceError at a key given twice."""
        result: dict[str, Attribute] = {}
        for item in node.items if node is not None else ():
            key = self.string(item.key) if item.key.type == "STRING" else item.key.value
            if key in result:
                raise self.error(f"'{key}' is given twice", item.key)
            result[key] = self.value(item.value)
        return result

    def _literal(self, token: Token) -> Attribute:
        match token.type:
            case "STRING":
                return self._string(token)
            case "INT":
                return self._number(token, i64)
            case "FLOAT":
                return self._number(token, f64)
            case "SYMBOL":
                root, *nested = [StringAttr(unescape(q) if q else n) for q, n in _SYMBOL.findall(token.value)]
                return SymbolRefAttr(root, nested)
            case "LOC":
                return self.location(token)
            case _:
                return self.named(token)

    def _typed(self, literal: Token, type_token: Token) -> Attribute:
        key = f"{literal.value} : {type_token.value}"
        found = self._cache.get(key)
        if found is None:
            type_ = self.type(type_token)
            found = self._dense(literal, key, type_) if literal.type == "DENSE" else self._number(literal, type_)
            if len(key) < 1000:
                self._cache[key] = found
        return found

    def _dense(self, literal: Token, text: str, type_: Attribute) -> Attribute:
        element = cast(TensorType[Attribute], type_).element_type if isinstance(type_, TensorType) else None
        if isinstance(element, IntegerType):
            self._checked(literal, lambda: check_integers(literal.value, cast("IntegerType", element)))
        if not isinstance(element, AnyFloat) or not has_bits(literal.value):
            return self._parse(literal, text)
        plain = self._parse(literal, f"{without_bits(literal.value)} : {text.rpartition(' : ')[2]}")
        assert isinstance(plain, DenseIntOrFPElementsAttr)
        return self._checked(literal, lambda: with_bits(cast(DenseIntOrFPElementsAttr[AnyFloat], plain), literal.value))

    def constant(self, literal: Token, type_token: Token) -> Attribute:
        """`dense<…>` of a type that is written behind it."""
        return self._typed(literal, type_token)

    def _number(self, token: Token, type_: Attribute) -> Attribute:
        return self._checked(token, lambda: number(token.value, type_))

    def _checked(self, token: Token, read: Callable[[], Attribute]) -> Attribute:
        """What `read` makes of a literal. Raises SourceError at the part of the token at fault."""
        try:
            return read()
        except BadLiteral as bad:
            raise self.error(bad.message, token, bad.suggestion, bad.offset, bad.length) from None

    def string(self, token: Token) -> str:
        """The contents of a STRING token. Raises SourceError for an unknown escape or bytes that are no text."""
        attribute = self._string(token)
        if isinstance(attribute, StringAttr):
            return attribute.data
        raise self.error("expected text, got bytes that are not ASCII", token)

    def _string(self, token: Token) -> Attribute:
        text = token.value
        found = self._cache.get(text)
        if found is not None:
            return found
        found = self._checked(token, lambda: string(text))
        self._cache[text] = found
        return found

    def symbol(self, token: Token) -> str:
        """The name of a symbol that is defined here."""
        names = _SYMBOL.findall(token.value)
        if len(names) != 1:
            raise self.error("a symbol is defined by its own name, without '::'", token)
        quoted, bare = names[0]
        return unescape(quoted) if quoted else bare

    # --- locations

    def here(self, token: Token) -> LocationAttr:
        """The location of a token in this text."""
        return FileLineColLoc(self._file_attr, self._int(token.line or 0), self._int(token.column or 0))

    def location(self, token: Token) -> LocationAttr:
        """A written location."""
        text = token.value
        match = _FILE_LOCATION.fullmatch(text)
        if match:
            file = self._cache.setdefault(f'"{match[1]}"', StringAttr(match[1]))
            return FileLineColLoc(cast(StringAttr, file), self._int(int(match[2])), self._int(int(match[3])))
        if text == "loc(unknown)":
            return UNKNOWN_LOC
        parser = Parser(self.context, text)
        parser.attribute_aliases.update(self._aliases)
        try:
            location = parser.parse_optional_location()
            if location is None or parser.pos != len(text):
                parser.raise_error("expected a location")
        except ParseError as error:
            raise self._unreadable(token, text, error) from None
        return location

    def _int(self, value: int) -> IntAttr:
        found = self._ints.get(value)
        if found is None:
            found = self._ints[value] = IntAttr(value)
        return found

    # --- aliases

    def define_alias(self, name: Token, value: Value) -> None:
        """`#name = …`. Raises SourceError if the name is taken."""
        if name.value in self._aliases:
            raise self.error(f"alias '{name}' is already defined", name)
        used = [alias for token in _tokens(value) for alias in _ALIAS_NAME.findall(token)]
        size = 1 + sum(self._alias_sizes.get(alias, 0) for alias in used)
        self._alias_sizes[name.value] = min(size, _MAX_ALIAS_SIZE)
        if size > _MAX_ALIAS_SIZE:
            raise self.error(f"alias '{name}' stands for more than {_MAX_ALIAS_SIZE} others", name)
        self._aliases[name.value] = self.value(value)


def _check_shape(attribute: Attribute) -> None:
    """Raises UserError for a shape that is too large."""
    if isinstance(attribute, TensorType):
        check_limits(cast("TensorType[Attribute]", attribute).get_shape())
    elif isinstance(attribute, TileType | BufferType | ViewType):
        check_limits(attribute.shape)


def _tokens(value: Value) -> Iterator[str]:
    """The texts of all tokens of a value."""
    match value:
        case Token():
            yield value.value
        case Typed(literal, type_):
            yield from (literal.value, type_.value)
        case Array(values):
            for inner in values:
                yield from _tokens(inner)
        case Dict(items):
            for item in items:
                if item.value is not None:
                    yield from _tokens(item.value)


def _depth(text: str) -> int:
    """The deepest nesting of brackets in a text, strings not excepted: an upper bound is enough here."""
    if text.count("<") + text.count("(") + text.count("[") + text.count("{") <= _MAX_DEPTH:
        return 0
    depth = deepest = 0
    for character in re.sub(r'"(?:[^"\\]|\\.)*"|->', "", text):
        if character in "<([{":
            depth += 1
            deepest = max(deepest, depth)
        elif character in ">)]}":
            depth -= 1
    return deepest


def _sentence(message: str) -> str:
    """xDSL's message in the style of the others: first letter small, no exclamation mark."""
    text = message.strip().rstrip("!.")
    return text[:1].lower() + text[1:] if text[1:2].islower() else text
