"""What to say of a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, known: Iterable[str]) -> str:
    """`did you mean '@gate'?`, or which there are where none is close."""
    names = list(known)
    close = difflib.get_close_matches(name, names, n=1)
    return f"did you mean '@{close[0]}'?" if close else f"there are {', '.join(f'@{k}' for k in names) or 'none'}"


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` where a known word is close, else nothing."""
    close = difflib.get_close_matches(word, sorted(known), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""
