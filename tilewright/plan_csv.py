"""Bare planning problems as CSV: `id,lower,upper,size` with, if wanted, `alignment` and `offset` (fixed where it is not
empty); a solution is `id,offset`."""

from __future__ import annotations

import csv
import io
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.ir.diagnostics import Diagnostic, SourceError
from tilewright.lowering.plan_interval import Interval, pins_clash

REQUIRED = ("id", "lower", "upper", "size")
OPTIONAL = ("alignment", "offset")
_LARGEST = 1 << 60


@dataclass(frozen=True)
class Problem:
    """Buffers by name: bytes needed from `lower` to before `upper`, in positions of time."""

    names: tuple[str, ...]
    intervals: tuple[Interval, ...]


def read_problem(text: str, file: str) -> Problem:
    """Raises SourceError, with every bad line, for anything but such a table."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")

    def problem(line: int, message: str) -> Diagnostic:
        source = lines[line - 1] if line <= len(lines) else None
        return Diagnostic("error", message, file, line, 1, len(source or " "), source=source)

    reader = csv.reader(lines)
    try:
        header = [name.strip().lower() for name in next(reader, ())]
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise SourceError([problem(reader.line_num, f"this is no line of a table: {error}")]) from None
    if not header:
        raise SourceError([Diagnostic("error", f"the table is empty; its first line is {','.join(REQUIRED)}", file)])
    missing = [name for name in REQUIRED if name not in header]
    unknown = [name for name in header if name not in (*REQUIRED, *OPTIONAL)]
    if missing or unknown or len(set(header)) != len(header):
        message = f"the columns are {', '.join(REQUIRED)} and perhaps {' and '.join(OPTIONAL)}, got {', '.join(header)}"
        raise SourceError([problem(1, message)])
    problems: list[Diagnostic] = []
    names: dict[str, int] = {}
    intervals: list[Interval] = []
    for line, row in rows:
        try:
            name, interval = _row(header, row)
            if name in names:
                raise ValueError(f"buffer '{name}' is there twice, first in line {names[name]}")
            names[name] = line
            intervals.append(interval)
        except ValueError as error:
            problems.append(problem(line, str(error)))
    if problems:
        raise SourceError(problems)
    _check_fixed(names, intervals, problem)
    return Problem(tuple(names), tuple(intervals))


def _check_fixed(
    lines: Mapping[str, int], intervals: Sequence[Interval], problem: Callable[[int, str], Diagnostic]
) -> None:
    """Raises SourceError for two fixed buffers that want a byte at the same time."""
    clash = pins_clash(intervals)
    if clash is not None:
        (first, line), (second, here) = (list(lines.items())[i] for i in clash)
        message = f"'{second}' is fixed on bytes that '{first}', in line {line}, has at the same time"
        raise SourceError([problem(here, message)])


def _row(header: Sequence[str], row: Sequence[str]) -> tuple[str, Interval]:
    """Raises ValueError with what is wrong."""
    if len(row) != len(header):
        raise ValueError(f"{len(header)} columns are expected, got {len(row)}")
    cells = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
    if not cells["id"]:
        raise ValueError("the id is empty")
    fixed = cells.pop("offset", "")
    numbers = {name: _number(name, cell) for name, cell in cells.items() if name != "id"}
    if numbers["lower"] >= numbers["upper"]:
        raise ValueError(f"lower {numbers['lower']} is not below upper {numbers['upper']}")
    alignment = numbers.get("alignment", 1)
    if numbers["size"] < 1 or alignment < 1:
        raise ValueError("size and alignment are at least 1")
    pinned = _number("offset", fixed) if fixed else None
    if pinned is not None and (pinned < 0 or pinned % alignment):
        raise ValueError(f"offset {pinned} is not a multiple of the alignment {alignment}, from 0 up")
    return cells["id"], Interval(numbers["lower"], numbers["upper"], numbers["size"], pinned, alignment)


def _number(name: str, cell: str) -> int:
    digits = cell.removeprefix("-")
    if not digits.isascii() or not digits.isdigit() or len(digits) > 19 or int(digits) > _LARGEST:
        raise ValueError(f"{name} is an integer, got '{cell[:40]}'")
    return int(cell)


def solution(problem: Problem, offsets: Sequence[int]) -> str:
    """The plan as CSV."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(("id", "offset"))
    writer.writerows(zip(problem.names, offsets, strict=True))
    return stream.getvalue()


def check_offsets(problem: Problem, offsets: Sequence[int]) -> None:
    """Raises AssertionError unless the plan is right; shares nothing with the planner.

    Buffers are swept in the order of time: those alive, sorted by offset, must not reach into their neighbours.
    """
    events = sorted(
        (moment, what, number)
        for number, one in enumerate(problem.intervals)
        for moment, what in ((one.start, 1), (one.end, 0))  # what ends at a moment is gone before what begins then
    )
    alive: list[tuple[int, int]] = []
    for _, begins, number in events:
        one, offset = problem.intervals[number], offsets[number]
        place = bisect_left(alive, (offset, offset + one.size))
        if not begins:
            alive.pop(place)
            continue
        assert offset >= 0 and offset % one.align == 0, f"'{problem.names[number]}' lies at {offset}"
        below = alive[place - 1][1] if place else 0
        above = alive[place][0] if place < len(alive) else offset + one.size
        assert below <= offset and offset + one.size <= above, f"'{problem.names[number]}' shares bytes with another"
        alive.insert(place, (offset, offset + one.size))
