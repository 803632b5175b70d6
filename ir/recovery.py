"""Several syntax errors of one text: after each, the statement it is in is left out and the rest is read again.

Only an operation that stands on one line, with all its brackets closed there, can be left out without making up errors
elsewhere; at anything else (the head of a function, say) the error is the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import cast

from lark import Token
from lark.exceptions import UnexpectedInput, UnexpectedToken

MOST_READINGS = 50
"""Readings of one text, the first included."""

_IGNORED = re.compile(r'"(?:[^"\\\n]|\\.)*"|//[^\n]*')
_PAIRS = ("()", "[]", "{}")
_HEADER = r"(?!.*\b(?:func\.func|module|tile\.kernel|hardware\.kernel|tile\.for|hardware\.for)\b)"
_OPERATION = re.compile(_HEADER + r'\s*(?:%[\w$.-]|"?[a-z]\w*\.\w|return\b|call\b)')


def errors_of(text: str, parse: Callable[[str], object], first: UnexpectedInput) -> list[UnexpectedInput]:
    """The first error of a text and those behind it, in order."""
    found, lines = [first], text.split("\n")
    for _ in range(MOST_READINGS - 1):
        line = _line_to_leave_out(found[-1], lines)
        if line is None:
            return found
        lines[line] = " " * len(lines[line])  # places behind it stay what they are
        try:
            parse("\n".join(lines))
            return found
        except UnexpectedInput as error:
            if error.line <= found[-1].line:  # nothing gained: what is left out was not at fault, or not alone
                return found
            found.append(error)
    return found


def _line_to_leave_out(error: UnexpectedInput, lines: Sequence[str]) -> int | None:
    """The index of the line that the statement in error stands on; None where it does not stand on one line.

    An error at the first word of a line is one of the line before, which wants to go on.
    """
    index = error.line - 1
    if isinstance(error, UnexpectedToken):
        token = cast(Token, error.token)  # pyright: ignore[reportUnknownMemberType]
        if token.type == "$END" or not 0 <= index < len(lines):
            return None
        if not lines[index][: error.column - 1].strip():
            index = next((n for n in range(index - 1, -1, -1) if _IGNORED.sub("", lines[n]).strip()), -1)
    if not 0 <= index < len(lines):
        return None
    line = _IGNORED.sub("", lines[index])
    closed = all(line.count(opening) == line.count(closing) for opening, closing in _PAIRS)
    return index if closed and _OPERATION.match(lines[index]) else None
