"""Expected diagnostics in comments, as mlir-opt and clang check them with `-verify-diagnostics`.

    // expected-error@+1 {{has no attribute 'axs'}}
    %y = graph.softmax %x {axs = 1}

The directive is `expected-error`, `expected-warning` or `expected-note`, with `-re` behind it for a regular expression;
the place is this line, `@+N`, `@-N`, `@above`, `@below` or `@unknown` (a diagnostic without a line). A diagnostic
meets it if it has that severity and line and its message contains the text in braces.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.ir.diagnostics import Diagnostic, source_line

_DIRECTIVE = re.compile(
    r"expected-(?P<severity>error|warning|note)(?P<regex>-re)?"
    r"(?:@(?P<place>[+-]\d+|above|below|unknown))?\s*\{\{(?P<text>.*?)\}\}"
)


@dataclass(frozen=True)
class Expectation:
    """One directive: `line` is where the diagnostic should be, 0 for one without a place."""

    severity: str
    line: int
    text: str
    regex: bool
    written: Diagnostic
    """What is reported where nothing meets it: an error at the directive."""

    def meets(self, diagnostic: Diagnostic) -> bool:
        if (diagnostic.severity, diagnostic.line) != (self.severity, self.line):
            return False
        if self.regex:
            return re.search(self.text, diagnostic.message) is not None
        return self.text in diagnostic.message


def expectations(text: str, file: str) -> tuple[list[Expectation], list[Diagnostic]]:
    """The directives of a text, and errors at those that cannot be understood."""
    found: list[Expectation] = []
    wrong: list[Diagnostic] = []
    for number, line in enumerate(text.split("\n"), 1):
        for match in _DIRECTIVE.finditer(line):
            severity, wanted = match["severity"], match["text"]
            message = f"expected {severity} '{wanted}' was not produced"
            column, length = match.start() + 1, len(match.group())
            written = Diagnostic("error", message, file, number, column, length, source=source_line(line, 1))
            if match["regex"]:
                try:
                    re.compile(wanted)
                except re.error as error:
                    at = f"'{wanted}' is not a regular expression: {error}"
                    wrong.append(Diagnostic("error", at, file, number, column, length, source=source_line(line, 1)))
                    continue
            place = _line(match["place"], number, text)
            found.append(Expectation(severity, place, wanted, match["regex"] is not None, written))
    return found, wrong


def _line(place: str | None, number: int, text: str) -> int:
    """The line that a place means; `above` and `below` skip lines that hold nothing but directives."""
    match place:
        case None:
            return number
        case "unknown":
            return 0
        case "above" | "below":
            lines = text.split("\n")
            step = 1 if place == "below" else -1
            line = number + step
            while 0 < line <= len(lines) and _DIRECTIVE.search(lines[line - 1]):
                line += step
            return line
        case _:
            return number + int(place)


def check_expected(text: str, file: str, produced: Sequence[Diagnostic]) -> list[Diagnostic]:
    """What differs between the directives of a text and the diagnostics that were produced; empty if they agree.

    Each directive is met by one diagnostic. Notes need no directive: what is not expected of them is left alone.
    """
    wanted, problems = expectations(text, file)
    open_ = list(wanted)
    for diagnostic in _flat(produced):
        met = next((one for one in open_ if one.meets(diagnostic)), None)
        if met is not None:
            open_.remove(met)
        elif diagnostic.severity != "note":
            problems.append(_unexpected(diagnostic))
    return sorted([*problems, *(one.written for one in open_)], key=lambda d: (d.line, d.column))


def _unexpected(d: Diagnostic) -> Diagnostic:
    return Diagnostic(
        "error", f"unexpected {d.severity}: {d.message}", d.file, d.line, d.column, d.length, source=d.source
    )


def _flat(diagnostics: Sequence[Diagnostic]) -> Iterator[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from _flat(diagnostic.notes)
