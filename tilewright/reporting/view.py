"""IR as HTML: escaped, coloured, with long constants elided until they are clicked."""

from __future__ import annotations

import re
from html import escape

LONGEST_CONSTANT = 64
"""Characters of a `dense<…>` that are always shown."""

_TOKEN = re.compile(
    r"(?P<comment>//.*)|(?P<dense>dense<[^>]*>)|(?P<string>\"(?:[^\"\\]|\\.)*\")|(?P<value>%[\w$.-]+)"
    r"|(?P<symbol>@[\w$.]+)|(?P<op>\b(?:graph|tile|hardware|func|builtin)\.\w+)"
)


def ir_html(text: str) -> str:
    """One line of IR."""
    shown: list[str] = []
    end = 0
    for match in _TOKEN.finditer(text):
        shown.append(escape(text[end : match.start()]))
        kind, token = str(match.lastgroup), match.group()
        shown.append(_constant(token) if kind == "dense" else f'<span class="{kind}">{escape(token)}</span>')
        end = match.end()
    return "".join([*shown, escape(text[end:])])


def _constant(token: str) -> str:
    if len(token) <= LONGEST_CONSTANT:
        return escape(token)
    hint = f"{len(token)} characters: click to show or hide"
    return (
        f'<span class="long" title="{hint}">{escape(token[: LONGEST_CONSTANT // 2])}'
        f'<span class="elided">…</span><span class="rest">{escape(token[LONGEST_CONSTANT // 2 : -1])}</span>&gt;</span>'
    )
