"""Which values the text can see at a point, by name."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import replace

from lark import Token
from xdsl.ir import Attribute, Block, BlockArgument, OpResult, SSAValue

from .diagnostics import Diagnostic, SourceError, at_location, did_you_mean
from .names import base_name

_NAME = re.compile(r"%[\w$.-]+(?:#[0-9]+)?")
_RESULT = re.compile(r"(%[\w$.-]+)(?::([0-9]+))?")
_COMMENT = re.compile(r"//[^\n]*")

ErrorAt = Callable[[str, Token, str, int, int], SourceError]
"""(message, token, suggestion, offset, length) → the error at that part of the token."""


class Scope:
    """Names to values. A name whose operation was wrong stands for None, so that one error is reported once."""

    def __init__(self, error: ErrorAt, file: str, text: str) -> None:
        self._error = error
        self._texts = {file: text}
        self._values: dict[str, SSAValue | None] = {}
        self._defined: list[str] = []
        self._outside: list[dict[str, SSAValue | None]] = []
        self.labels: list[dict[str, Block]] = [{}]
        """The blocks of the enclosing regions, innermost last. Only those of the innermost can be branched to."""

    @contextmanager
    def region(self, isolated: bool) -> Generator[None]:
        """What is defined inside ends with the region; an isolated one does not see what is outside."""
        if isolated:
            self._outside.append(self._values)
            defined, self._values, self._defined = self._defined, {}, []
            try:
                yield
            finally:
                self._values, self._defined = self._outside.pop(), defined
            return
        mark = len(self._defined)
        try:
            yield
        finally:
            for name in self._defined[mark:]:
                del self._values[name]
            del self._defined[mark:]

    def lookup(self, tokens: Iterable[Token]) -> list[SSAValue] | None:
        """The values of a list of names; None if one of them comes from an operation in error.

        Raises SourceError at a name that is not defined here.
        """
        result: list[SSAValue] = []
        values = self._values
        known = True
        for token in tokens:
            text, start = token.value, len(result)
            for name in text.split(", ") if "," in text else (text,):
                value = values.get(name)
                if value is None:
                    del result[start:]
                    found = self._slow_lookup(token)
                    if found is None:
                        known = False
                    else:
                        result += found
                    break
                result.append(value)
        return result if known else None

    def _slow_lookup(self, token: Token) -> list[SSAValue] | None:
        """All names of a token some of which have unusual spacing or a `#index`, are in error, or undefined."""
        result: list[SSAValue] | None = []
        for match in _NAME.finditer(token.value):
            name = match.group()
            base = name.removesuffix("#0")
            if base in self._values:
                value = self._values[base]
            elif name in self._values:
                value = self._values[name]
            else:
                raise self._undefined(name, token, match.start())
            if value is None or result is None:
                result = None
            else:
                result.append(value)
        return result

    def _undefined(self, name: str, token: Token, offset: int) -> SourceError:
        error = self._error(f"'{name}' is not defined", token, did_you_mean(name, self._values), offset, len(name))
        for outside in reversed(self._outside):
            value = outside.get(name)
            if value is not None:
                note = at_location(
                    "it is defined here, outside of an operation that sees nothing of its surroundings",
                    _location(value),
                    self._texts,
                    "note",
                )
                return SourceError([replace(error.diagnostics[0], notes=(note,), suggestion="")])
        return error

    def define(self, name: str, value: SSAValue | None, token: Token, offset: int = 0) -> None:
        """Binds a name. Raises SourceError, with a note at the first definition, if it is visible already."""
        if name in self._values:
            old = self._values[name]
            error = self._error(f"'{name}' is already defined", token, "", offset, len(name))
            if old is None:
                raise error
            note = at_location("first defined here", _location(old), self._texts, "note")
            raise SourceError([replace(error.diagnostics[0], notes=(note,))])
        self._values[name] = value
        self._defined.append(name)
        if value is not None and not name[1].isdigit():
            value.name_hint = base_name(name[1:])

    def define_argument(self, token: Token, value: SSAValue | None) -> None:
        """Binds the name of a block argument, written `%x` or, in the header of a loop, `%x =`.

        Raises SourceError if it is visible already, or not a single name.
        """
        match = _RESULT.match(token.value)
        assert match is not None
        if match[2] or token.value[match.end() :].strip(" \t\n=") or "#" in token.value:
            raise self._error("expected one name here", token, "", 0, 0)
        self.define(match[1], value, token)

    def nth(self, tokens: Iterable[Token], index: int) -> tuple[str, Token, int]:
        """The index-th name of a list of names, with its token and offset in it."""
        names = [(match.group(), token, match.start()) for token in tokens for match in _NAME.finditer(token.value)]
        return names[index]

    def definition_notes(self, value: SSAValue) -> tuple[Diagnostic, ...]:
        """A note at the definition of a value."""
        return (at_location("defined here", _location(value), self._texts, "note"),)

    def define_results(self, token: Token, values: Sequence[SSAValue] | None) -> None:
        """Binds the names of a `%a, %b:2 =` token; without values, all of them stand for an operation in error.

        Raises SourceError if names and values differ in number.
        """
        text = token.value
        if values is not None and len(values) == 1 and "," not in text and ":" not in text:
            self.define(text[:-1].rstrip(), values[0], token)
            return
        text = _COMMENT.sub(lambda match: " " * len(match.group()), text)
        names = [(match[1], int(match[2] or 1), match.start()) for match in _RESULT.finditer(text)]
        count = sum(size for _, size, _ in names)
        if values is not None and count != len(values):
            raise self._error(f"{_plural(count, 'name')} for {_plural(len(values), 'result')}", token, "", 0, 0)
        position = 0
        for name, size, offset in names:
            if name in self._values and values is None:
                # The redefinition is a second error of the same operation; the first has been reported.
                continue
            self.define(name, values[position] if values is not None and size else None, token, offset)
            for index in range(1, size):
                self.define(f"{name}#{index}", values[position + index] if values is not None else None, token, offset)
                if values is not None:
                    values[position + index].name_hint = values[position].name_hint
            position += size


def _location(value: SSAValue) -> Attribute | None:
    if isinstance(value, OpResult):
        return value.op.location
    return value.location if isinstance(value, BlockArgument) else None


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
