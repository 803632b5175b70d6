"""Diagnostics: what went wrong and where, rendered as clang and mlir-opt do.

model.mlir:3:8: error: unknown operation 'graph.matmull'
  %s = graph.matmull %q, %k : tensor<8x8xf16>
       ^^^^^^^^^^^^^
help: did you mean 'graph.matmul'?
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from xdsl.dialects.builtin import ArrayAttr, CallSiteLoc, FileLineColLoc, FusedLoc, NameLoc
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from ..dialects.errors import UserError, UserErrors

Severity = Literal["error", "warning", "note"]

MAX_ERRORS = 10_000
"""How many errors one reading of a file collects at most."""

SHOWN_ERRORS = 20
"""How many of them the text of an exception shows."""

_WORD = re.compile(r'"[^"\n]*"|[%@^!#]?[\w$.]+|\S')
_LONGEST_LINE = 240


@dataclass(frozen=True)
class Diagnostic:
    """One message with its place. Lines and columns count from 1; line 0 means that the place is unknown.

    `length` is the number of characters to underline; `source` is the text of the line, if known.
    """

    severity: Severity
    message: str
    file: str = ""
    line: int = 0
    column: int = 0
    length: int = 1
    notes: tuple[Diagnostic, ...] = ()
    suggestion: str = ""
    source: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return render([self])

    def json(self) -> dict[str, Any]:
        """Every field as plain data, notes in the same form."""
        return {
            "severity": self.severity,
            "message": self.message,
            "file": self.file or None,
            "line": self.line or None,
            "column": self.column or None,
            "length": self.length if self.line else None,
            "source": self.source,
            "suggestion": self.suggestion or None,
            "notes": [note.json() for note in self.notes],
        }


class SourceError(Exception):
    """The text, or what it says, is wrong. Holds every diagnostic found, in the order of the text."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(diagnostics[0].message if diagnostics else "invalid input")
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics)

    def __reduce__(self) -> tuple[Any, ...]:
        """Comes back from another process as it went; what a subclass holds besides is in its state."""
        return type(self), (self.diagnostics,), self.__dict__

    def __str__(self) -> str:
        left = len(self.diagnostics) - SHOWN_ERRORS
        more = f"\n… and {left} more, in .diagnostics" if left > 0 else ""
        return render(self.diagnostics[:SHOWN_ERRORS]) + more


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """Plain text: a head line each, the source line and a caret where known, then suggestion and notes."""
    return "\n".join(line for diagnostic in diagnostics for line in _render(diagnostic))


def _render(diagnostic: Diagnostic) -> Iterator[str]:
    place = ":".join([diagnostic.file] if diagnostic.file else [])
    if diagnostic.line:
        place = f"{place or '<unknown>'}:{diagnostic.line}:{diagnostic.column}"
    yield (
        f"{place}: {diagnostic.severity}: {diagnostic.message}"
        if place
        else (f"{diagnostic.severity}: {diagnostic.message}")
    )
    if diagnostic.source is not None and diagnostic.line:
        yield from _source_lines(diagnostic.source, diagnostic.column, diagnostic.length)
    if diagnostic.suggestion:
        yield f"help: {diagnostic.suggestion}"
    for note in diagnostic.notes:
        yield from _render(note)


def _source_lines(source: str, column: int, length: int) -> Iterator[str]:
    """The line and a caret line. Very long lines are cut around the caret; control characters are shown as '?'."""
    start = max(0, column - 1 - _LONGEST_LINE // 2) if len(source) > _LONGEST_LINE else 0
    shown = source[start : start + _LONGEST_LINE]
    # Tabs keep their width in both lines, so the caret stays below its token.
    yield "".join(c if c == "\t" or c.isprintable() else "?" for c in shown)
    pad = "".join("\t" if c == "\t" else " " for c in shown[: column - 1 - start])
    yield pad + "^" * max(1, min(length, len(shown) - len(pad)))


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion if a known name is close to `name`, else the empty string."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else ""


def file_locations(location: Attribute | None) -> Iterator[FileLineColLoc]:
    """The places in files that a location attribute refers to, in order, through fused, named and call-site ones."""
    match location:
        case FileLineColLoc():
            yield location
        case FusedLoc():
            # An array of locations, says its constraint.
            for member in cast(ArrayAttr[Attribute], location.locations):
                yield from file_locations(member)
        case NameLoc():
            yield from file_locations(location.location)
        case CallSiteLoc():
            yield from file_locations(location.callee)
            yield from file_locations(location.caller)
        case _:
            return


def location_names(location: Attribute | None) -> Iterator[str]:
    """The names in a location attribute, as importers give them to ops that have no place in a text."""
    match location:
        case NameLoc():
            yield location.desc.data
        case FusedLoc():
            for member in cast(ArrayAttr[Attribute], location.locations):
                yield from location_names(member)
        case CallSiteLoc():
            yield from location_names(location.callee)
        case _:
            return


def at_location(
    message: str,
    location: Attribute | None,
    texts: Mapping[str, str],
    severity: Severity = "error",
) -> Diagnostic:
    """A diagnostic at the first place of a location, with its source line where the text of the file is known.

    The further places of a fused location become notes.
    """
    places = list(file_locations(location))
    if not places:
        name = next(location_names(location), None)
        return Diagnostic(severity, f"{message} (at '{name}')" if name else message)
    first, *others = (_at(severity, message if i == 0 else "fused with this", p, texts) for i, p in enumerate(places))
    return replace(first, notes=tuple(replace(other, severity="note") for other in others[:4]))


def _at(severity: Severity, message: str, place: FileLineColLoc, texts: Mapping[str, str]) -> Diagnostic:
    file, line, column = place.filename.data, place.line.data, place.column.data
    source = source_line(texts[file], line) if file in texts else None
    word = _WORD.match(source, column - 1) if source is not None and column > 0 else None
    return Diagnostic(severity, message, file, line, column, len(word.group()) if word else 1, source=source)


def source_line(text: str, line: int) -> str | None:
    """Line number `line` (from 1) of the text, or None if there is no such line."""
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
        if start == 0:
            return None
    end = text.find("\n", start)
    return text[start : len(text) if end < 0 else end].rstrip("\r")


def from_user_errors(error: UserError, texts: Mapping[str, str]) -> list[Diagnostic]:
    """The diagnostics of an error that may stand for several."""
    errors = error.errors if isinstance(error, UserErrors) else (error,)
    return [from_user_error(one, texts) for one in errors]


def from_user_error(error: UserError, texts: Mapping[str, str]) -> Diagnostic:
    """The diagnostic of an error raised below the text layer; `texts` maps file names to their text."""
    main = at_location(error.message, error.location, texts)
    notes = tuple(at_location(message, location, texts, "note") for message, location in error.notes)
    return replace(main, notes=main.notes + notes)


def from_verify_exception(
    error: VerifyException, texts: Mapping[str, str], location: Attribute | None = None
) -> Diagnostic:
    """The diagnostic of a failed verification. xDSL attaches the whole module as text: only the message counts."""
    return at_location(verify_message(error), location, texts)


def verify_message(error: Exception) -> str:
    """The essence of an xDSL verification message, on one line."""
    text = str(error).strip()
    marker = "Underlying verification failure was: "
    if marker in text:
        text = text.rsplit(marker, 1)[1]
    return " ".join(text.split("\n\n")[0].split()) or type(error).__name__
