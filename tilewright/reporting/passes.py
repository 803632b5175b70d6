"""What each pass changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from html import escape

from tilewright.ir.source import print_module
from tilewright.runtime.report import Json

from ..program import Program
from ..render import table
from .section import Html, Part, Section, Subject
from .view import ir_html

LARGEST_DIFF = 20_000
"""Lines of both texts together that are compared: the time grows with the product of their lengths."""


@dataclass(frozen=True)
class Change:
    """`diff` holds unified lines without the head; it is None where the texts are too long to be compared."""

    name: str
    level: str
    lines: int
    diff: tuple[str, ...] | None

    @property
    def changed(self) -> bool:
        return self.diff is None or bool(self.diff)

    def count(self, sign: str) -> int:
        """Lines that were added (`+`) or removed (`-`)."""
        return sum(line.startswith(sign) for line in self.diff or ())


def changes(program: Program) -> list[Change]:
    """One entry per pass, in order."""
    texts = [print_module(snapshot.module).splitlines() for snapshot in program.snapshots]
    return [
        Change(after.name, after.level, len(new), text_diff(old, new))
        for after, old, new in zip(program.snapshots[1:], texts, texts[1:], strict=False)
    ]


def text_diff(old: Sequence[str], new: Sequence[str]) -> tuple[str, ...] | None:
    """A unified diff without its head, empty where nothing differs; None where the texts are too long."""
    if old == new:
        return ()
    if len(old) + len(new) > LARGEST_DIFF:
        return None
    return tuple(unified_diff(old, new, n=3, lineterm=""))[2:]


def passes_section(subject: Subject) -> Section | None:
    """A table of passes; in the page, the differences, those of passes that changed nothing hidden."""
    found = changes(subject.program)
    if not found:
        return None
    made = table("pass", "level", "lines", "added", "removed", right=["lines", "added", "removed"])
    data: list[Json] = []
    for change in found:
        counts = [change.count("+"), change.count("-")] if change.diff is not None else [None, None]
        shown = ["" if count is None else str(count) for count in counts] if change.changed else ["unchanged", ""]
        made.add_row(change.name, change.level, str(change.lines), *shown)
        added, removed = counts
        data.append({"pass": change.name, "level": change.level, "lines": change.lines, "added": added,
                     "removed": removed, "changed": change.changed})  # fmt: skip
    parts: list[Part] = [made, Html("\n".join(_page(found)))]
    return Section("passes", "Passes", parts, data)


def _page(found: Sequence[Change]) -> Iterator[str]:
    hidden = sum(not change.changed for change in found)
    if hidden:
        yield f'<p><label><input type="checkbox" id="all-passes"> show {hidden} that changed nothing</label></p>'
    for change in found:
        mark = "" if change.changed else ' class="unchanged"'
        yield f"<details{mark}><summary>{escape(change.name)}</summary>"
        if change.diff is None:
            yield "<p>Too long to be compared.</p>"
        elif not change.changed:
            yield "<p>Nothing changed.</p>"
        else:
            yield diff_html(change.diff)
        yield "</details>"


def diff_html(diff: Sequence[str]) -> str:
    """Unified lines, coloured by what they say."""
    kinds = {"+": "added", "-": "removed", "@": "place"}
    rows = "\n".join(f'<div class="line {kinds.get(line[:1], "kept")}">{ir_html(line)}</div>' for line in diff)
    return f'<div class="ir diff">{rows}</div>'
