"""The text of a module line by line, each line with the places in the source that its operation stems from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from io import StringIO
from typing import TypeAlias

from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation

from tilewright.dialects.locations import parts
from tilewright.ir.printer import UniformPrinter

Place: TypeAlias = tuple[str, int, int]
"""File, line, column, both from 1."""


@dataclass(frozen=True)
class Line:
    """`places` is empty for lines on which no operation starts, and for operations without a known place."""

    text: str
    places: tuple[Place, ...]


class _Tracker(UniformPrinter):
    """Notes at which character of the output each operation starts."""

    def __init__(self, stream: StringIO) -> None:
        super().__init__(stream=stream)
        self.out = stream
        self.starts: list[tuple[int, Operation]] = []

    def print_op(self, op: Operation) -> None:
        self.starts.append((self.out.tell(), op))
        super().print_op(op)


def lines(module: ModuleOp) -> list[Line]:
    """The lines that `print_module` gives, in the uniform form."""
    tracker = _Tracker(StringIO())
    tracker.print_module(module)
    texts = tracker.out.getvalue().split("\n")
    begins = [0]
    for text in texts[:-1]:
        begins.append(begins[-1] + len(text) + 1)
    places: list[tuple[Place, ...]] = [()] * len(texts)
    for start, op in tracker.starts:
        if not isinstance(op, ModuleOp):
            places[bisect_right(begins, start) - 1] = tuple(places_of(op))
    return [Line(text, where) for text, where in zip(texts, places, strict=True)]


def places_of(op: Operation) -> Iterable[Place]:
    """The places in files that an operation's location names, through named and call-site ones as through fused."""
    for part in parts(op.location):
        if isinstance(part, FileLineColLoc):
            yield part.filename.data, part.line.data, part.column.data
