"""What objects look like in a notebook: plain elements that take the notebook's own style."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape


def ir_block(text: str) -> str:
    """IR as it is printed."""
    return f"<pre>{escape(text)}</pre>"


def folded(head: str, parts: Sequence[tuple[str, str]]) -> str:
    """A head line, and pieces of HTML below their titles, closed until they are clicked."""
    inner = "".join(f"<details><summary>{escape(title)}</summary>{html}</details>" for title, html in parts)
    return f"<p>{escape(head)}</p>{inner}"


def grid(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of texts."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
