"""The source and every level side by side; one operation of the source is highlighted through all of them."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tilewright.runtime.report import Json

from ..program import Program
from .lines import Line, Place, lines
from .section import Html, Section, Subject
from .view import ir_html

HELP = "Click a line: what stems from the same operations of the source is marked on every level."


def levels_section(subject: Subject) -> Section:
    """A picture only: the page has it, the terminal does not."""
    columns = level_lines(subject.program)
    numbers: dict[Place, int] = {}
    for place in (place for line in columns[0][1] for place in line.places):
        numbers.setdefault(place, len(numbers))
    panes = "\n".join(_pane(name, found, numbers) for name, found in columns)
    html = f'<p>{HELP}</p>\n<div class="levels">\n{panes}\n</div>'
    data: dict[str, Json] = {name: len(found) for name, found in columns}
    return Section("levels", "The levels side by side", [Html(html)], data)


def level_lines(program: Program) -> list[tuple[str, list[Line]]]:
    """Name and lines of the source as it was written, then of the last snapshot of every level that was reached."""
    first = program.snapshots[0]
    columns = [("source", _source(program, lines(first.module)))]
    last = {snapshot.level: snapshot for snapshot in program.snapshots[1:]}
    return [*columns, *((level, lines(snapshot.module)) for level, snapshot in last.items())]


def _source(program: Program, printed: list[Line]) -> list[Line]:
    """The user's text, each line with the operations that start on it; as printed where there is no text."""
    source = program.source.source
    text = source.texts.get(source.file)
    places = {place for line in printed for place in line.places if place[0] == source.file}
    if text is None or not places:
        return printed
    by_line: dict[int, list[Place]] = {}
    for place in sorted(places):
        by_line.setdefault(place[1], []).append(place)
    written = text.rstrip("\n").split("\n")
    return [Line(line, tuple(by_line.get(number, ()))) for number, line in enumerate(written, 1)]


def _pane(name: str, found: Sequence[Line], numbers: dict[Place, int]) -> str:
    rows = "\n".join(_row(line, numbers) for line in found)
    return f'<div class="pane" data-level="{escape(name)}"><h3>{escape(name)}</h3>\n<div class="ir">{rows}</div></div>'


def _row(line: Line, numbers: dict[Place, int]) -> str:
    marks = " ".join(str(numbers[place]) for place in line.places if place in numbers)
    data = f' data-from="{marks}"' if marks else ""
    return f'<div class="line"{data}>{ir_html(line.text) or " "}</div>'
