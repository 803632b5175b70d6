"""Where the time of a command goes: a tree of named spans, measured by the wall clock."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.table import Table

from tilewright.runtime.report import Json

from .render import table


@dataclass
class Span:
    """`seconds` of all that ran under this name; spans of one name in one place are added up."""

    name: str
    seconds: float = 0.0
    children: dict[str, Span] = field(default_factory=dict[str, "Span"])

    def json(self) -> dict[str, Json]:
        """`name`, `seconds` and `children`, each of the same form."""
        return {"name": self.name, "seconds": self.seconds, "children": [c.json() for c in self.children.values()]}


class Timer:
    """Measures nested spans: `with timer.span("fuse"): …`."""

    def __init__(self, name: str = "total") -> None:
        self.root = Span(name)
        self._path = [self.root]

    @contextmanager
    def span(self, name: str) -> Generator[None]:
        """Adds the time that the body takes to the span of this name in the current one."""
        span = self._path[-1].children.setdefault(name, Span(name))
        self._path.append(span)
        start = time.perf_counter()
        try:
            yield
        finally:
            span.seconds += time.perf_counter() - start
            self._path.pop()

    def finish(self) -> Span:
        """The whole; its time is that of its parts."""
        self.root.seconds = sum(child.seconds for child in self.root.children.values())
        return self.root


def timing_table(root: Span) -> Table:
    """Seconds and share of the whole, children indented below their parent."""
    made = table("seconds", "share", "what", right=["seconds", "share"])
    for depth, span in _walk(root, 0):
        share = span.seconds / root.seconds if root.seconds else 0.0
        made.add_row(f"{span.seconds:.4f}", f"{share:.1%}", "  " * depth + span.name)
    return made


def _walk(span: Span, depth: int) -> Iterator[tuple[int, Span]]:
    yield depth, span
    for child in span.children.values():
        yield from _walk(child, depth + 1)
