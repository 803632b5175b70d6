"""Parts of sections in a terminal and in HTML."""

from __future__ import annotations

from html import escape

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from .section import Heading, Html, Part, Section


def terminal(section: Section) -> list[RenderableType]:
    """What a console prints for a section: its title and parts, a blank line between them; nothing for pictures."""
    shown: list[RenderableType] = []
    for part in section.parts:
        match part:
            case Heading():
                shown += ["", part.text]
            case Html():
                shown += ["", Text(part.text, no_wrap=True, overflow="ignore")] if part.text else []
            case _:
                shown += ["", part]
    return [f"── {section.title} " + "─" * max(3, 60 - len(section.title)), *shown] if shown else []


def page(section: Section) -> str:
    """The HTML of a section."""
    body = "\n".join(_html(part) for part in section.parts)
    return f'<section id="{escape(section.key)}">\n<h2>{escape(section.title)}</h2>\n{body}\n</section>'


def _html(part: Part) -> str:
    match part:
        case Heading():
            return f"<h3>{escape(part.text)}</h3>"
        case Html():
            return part.html
        case Table():
            return table_html(part)
        case _:
            return f"<p>{escape(part)}</p>"


def table_html(table: Table) -> str:
    """A table of texts. Columns aligned to the right in the terminal are so in HTML."""
    sides = [f' class="{column.justify}"' if column.justify == "right" else "" for column in table.columns]
    head = "".join(f"<th{side}>{escape(str(c.header))}</th>" for side, c in zip(sides, table.columns, strict=True))
    rows = zip(*(list(column.cells) for column in table.columns), strict=True)
    body = "\n".join(
        "<tr>" + "".join(f"<td{side}>{escape(str(cell))}</td>" for side, cell in zip(sides, row, strict=True)) + "</tr>"
        for row in rows
    )
    return f"<table>\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>"
