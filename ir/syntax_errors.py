"""Syntax errors: lark's account of them in the words of someone who writes the text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from .diagnostics import Diagnostic, source_line


def diagnostic_at(message: str, text: str, file: str, offset: int, length: int, suggestion: str = "") -> Diagnostic:
    """An error at a character offset of the text."""
    line = text.count("\n", 0, offset) + 1
    start = text.rfind("\n", 0, offset) + 1
    source = source_line(text[start:], 1)
    return Diagnostic("error", message, file, line, offset - start + 1, length, suggestion=suggestion, source=source)


_WORDS = {
    "RESULTS": "results ('%x =')",
    "VALUES": "a value ('%x')",
    "OPNAME": "an operation",
    "SYMBOL": "a symbol ('@name')",
    "LABEL": "a block label ('^bb0')",
    "STRING": "a string",
    "KEY": "an attribute name",
    "INT": "an integer",
    "FLOAT": "a float",
    "TYPE": "a type",
    "SIGNATURE": "a function type ('(…) -> …')",
    "LOC": "a location ('loc(…)')",
    "DENSE": "a constant ('dense<…>')",
    "ALIAS": "an alias",
    "_DICT_OPEN": "'{'",
    "VISIBILITY": "'private'",
    "$END": "the end of the text",
}
_STARTS = {
    "RESULTS",
    "STRING",
    "FUNC_NAME",
    "MODULE",
    "BUILTIN_MODULE",
    "FUNCTION",
    "TILE_KERNEL",
    "HARDWARE_KERNEL",
    "TILE_FOR",
    "HARDWARE_FOR",
}
_WORD = re.compile(r"[-+\w.]+")
_CLOSERS = {"}", ")", "]", ">"}


_NOT_FINITE = re.compile(r"\b(?:nan|inf|infinity)\b", re.IGNORECASE)
_NO_POINT = re.compile(r"(?<![\w.])(-?\d+)(e[+-]?\d+)\b", re.IGNORECASE)


def number_spelling(text: str) -> str:
    """How to write a number in `text` that MLIR spells otherwise than most languages; empty where there is none."""
    found = _NO_POINT.search(text)
    if found is not None:
        return f"a float has a point: {found[1]}.0{found[2]}"
    if _NOT_FINITE.search(text):
        return "infinities and NaN are written by their bits: -inf is 0xFC00 in f16, 0xFF80 in bf16, 0xFF800000 in f32"
    return ""


def explain(error: UnexpectedInput, text: str, file: str, spelled: Mapping[str, str]) -> Diagnostic:
    """A syntax error in the user's words; `spelled` gives the text of each keyword terminal."""
    expected: set[str] = set()
    length = 1
    offset = error.pos_in_stream if error.pos_in_stream is not None else len(text)
    found = repr(text[offset]) if offset < len(text) else "end of the text"
    if isinstance(error, UnexpectedToken):
        expected = error.accepts or error.expected
        token = cast(Token, error.token)  # pyright: ignore[reportUnknownMemberType]
        if token.type == "$END":
            # lark places the end at the last token; the error is behind it.
            offset, found = len(text.rstrip()), "end of the text"
            if not offset:
                return Diagnostic("error", "the text contains no operation", file, 1, 1)
        else:
            length = len(token.split("\n")[0])
            found = f"'{token if len(token) <= 40 else token[:37] + '…'}'"
    elif isinstance(error, UnexpectedCharacters):
        expected = set(error.allowed or ())
    at = text[offset : offset + 1]
    if at == '"' and not isinstance(error, UnexpectedToken):
        return diagnostic_at("this string is not closed on its line", text, file, offset, 1)
    if at == "<" and re.match(r"[\w$.]", text[offset - 1 : offset]):
        return diagnostic_at("this '<' is not closed, or holds more than six levels of '<…>'", text, file, offset, 1)
    word = next((m.group() for m in _WORD.finditer(text, max(0, offset - 40)) if m.start() <= offset < m.end()), "")
    message = f"unexpected {found}; expected {_expectation(expected, spelled)}"
    return diagnostic_at(message, text, file, offset, length, number_spelling(word))


def _expectation(terminals: set[str], spelled: Mapping[str, str]) -> str:
    # Wherever an operation may start, so may the keywords of all headers: one word says it.
    names = (terminals - _STARTS) | {"OPNAME"} if "OPNAME" in terminals else terminals
    words = {_WORDS.get(name) or repr(spelled.get(name, name)) for name in names}
    # Closers first: after a complete part, closing is what was meant most often.
    order = sorted(words, key=lambda word: (word.strip("'") not in _CLOSERS, word))
    return ", ".join(order[:8]) + (", …" if len(order) > 8 else "") if order else "nothing here"
