"""Target files as text: nested tables together with the place each key was written at.

A document keeps moves as nested tables, from → to → keys, so that files, bases and overrides merge by one rule.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr

from .errors import UserError
from .target_check import KeyPath, Problem

Table: TypeAlias = dict[str, Any]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_DOTTED = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_DOTTED})\s*\]")
_KEY = re.compile(rf"\s*({_DOTTED})\s*=\s*")
_INLINE_KEY = re.compile(rf"[{{,]\s*({_PART})\s*=")
_OVERRIDE = re.compile(rf"""[\s,]*({_DOTTED})\s*=\s*("[^"]*"|'[^']*'|\[[^\]]*\]|[^\s,"'\[]+)(?=[\s,]|$)""")
_TOML_POSITION = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)")


@dataclass(frozen=True)
class Place:
    file: str
    line: int
    column: int

    @property
    def location(self) -> FileLineColLoc:
        return FileLineColLoc(StringAttr(self.file), IntAttr(self.line), IntAttr(self.column))

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class TargetError(UserError):
    """A target that cannot be used. `file`, `line` and `column` are those of the first problem, None where it has none;
    `problems` holds all of them with their places. The text lists all, one a line."""

    def __init__(self, problems: list[tuple[str, Place | None]]) -> None:
        message, place = problems[0]
        notes = [(text, where.location if where else None) for text, where in problems[1:]]
        super().__init__(message, place.location if place else None, notes)
        self.problems = tuple(problems)
        self.file = place.file if place else None
        self.line = place.line if place else None
        self.column = place.column if place else None

    def __str__(self) -> str:
        return "\n".join(f"{place}: error: {text}" if place else f"error: {text}" for text, place in self.problems)


@dataclass
class Document:
    """Tables and where their keys stand. `origin` is used where a key has no place of its own."""

    data: Table
    places: dict[KeyPath, Place] = field(default_factory=dict[KeyPath, Place])
    origin: Place | None = None

    def place(self, path: KeyPath) -> Place | None:
        """Place of a key, else of the innermost table around it that has one."""
        for length in range(len(path), 0, -1):
            if path[:length] in self.places:
                return self.places[path[:length]]
        return self.origin

    def error(self, problems: list[Problem]) -> TargetError:
        """All problems in the order of the text; those of this very file before those of its bases."""
        own = self.origin.file if self.origin else None
        placed = [(problem.message, self._place_of(problem, own)) for problem in problems]
        return TargetError(sorted(placed, key=lambda row: _text_order(row[1], own)))

    def _place_of(self, problem: Problem, own: str | None) -> Place | None:
        """The place of a mistake between several keys is where this file, not its base, writes one of them."""
        places = [self.place(path) for path in (problem.path, *problem.others)]
        return next((place for place in places if place and place.file == own and place != self.origin), places[0])


def _text_order(place: Place | None, own: str | None) -> tuple[bool, str, int, int]:
    return (place.file != own, place.file, place.line, place.column) if place else (True, "", 0, 0)


def read_toml(text: str, file: str) -> Document:
    """Raises TargetError for text that is not TOML and for moves without ends or given twice."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TargetError([_syntax_problem(str(error), text, file)]) from None
    return _with_nested_moves(Document(data, dict(_places(text, file)), Place(file, 1, 1)))


def read_json(text: str, file: str) -> Document:
    """The canonical text of a target, as modules carry it."""
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        place = Place(file, error.lineno, error.colno)
        raise TargetError([(f"this target description is not JSON: {error.msg}", place)]) from None
    return _with_nested_moves(Document(data, {}, Place(file, 1, 1)))


def read_overrides(text: str, spec: str, start: int) -> Document:
    """`memory.l1.bytes=1MiB cores=2` → tables. `start` is the column of the text in the specification."""
    document = Document({}, {}, Place("<target>", 1, start))
    position = 0
    while text[position:].strip(" ,\t\n"):
        match = _OVERRIDE.match(text, position)
        if match is None:
            rest = text[position:].strip(" ,")
            place = Place("<target>", 1, start + position)
            raise TargetError([(f"expected key=value, found '{rest}' in target '{spec}'", place)])
        path = _split(match[1])
        table = document.data
        for part in path[:-1]:
            inner: object = table.setdefault(part, {})
            table = cast(Table, inner) if isinstance(inner, dict) else {}
        table[path[-1]] = _override_value(match[2])
        document.places[path] = Place("<target>", 1, start + match.start(1))
        position = match.end()
    return document


def merge(base: Document, over: Document) -> Document:
    """`over` on top of `base`, tables merged deeply; a table with `remove = true` takes the inherited one away.

    Raises TargetError where there is nothing to remove.
    """
    problems: list[Problem] = []
    data = _merge_tables(base.data, over.data, (), problems)
    if problems:
        raise over.error(problems)
    return Document(data, {**base.places, **over.places}, over.origin)


def _merge_tables(base: Table, over: Table, path: KeyPath, problems: list[Problem]) -> Table:
    merged = dict(base)
    for key, value in over.items():
        here = (*path, key)
        if not isinstance(value, dict):
            merged[key] = value
            continue
        table = cast(Table, value)
        inherited = base.get(key)
        if table.get("remove") is True:
            if merged.pop(key, None) is None:
                problems.append(Problem((*here, "remove"), f"nothing to remove: the base has no {'.'.join(here)}"))
            continue
        old = cast(Table, inherited) if isinstance(inherited, dict) else {}
        merged[key] = _merge_tables(old, table, here, problems)
    return merged


def flat_moves(data: Table) -> Table:
    """The tables in the shape of the file: moves as a list that names its ends."""
    moves = data.get("move")
    if not isinstance(moves, dict):
        return data
    rows = [
        {**cast(Table, move), "from": source, "to": destination}
        for source, targets in cast(Table, moves).items()
        for destination, move in cast(Table, targets).items()
    ]
    return {**data, "move": rows}


def _with_nested_moves(document: Document) -> Document:
    rows = document.data.get("move")
    if rows is None:
        return document
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in cast(list[Any], rows)):
        raise document.error([Problem(("move",), "moves are written as [[move]] tables")])
    nested: Table = {}
    places = {path: place for path, place in document.places.items() if path[0] != "move"}
    problems: list[Problem] = []
    for index, row in enumerate(cast(list[Table], rows)):
        here = ("move", str(index))
        absent = [key for key in ("from", "to") if not isinstance(row.get(key), str)]
        problems += [
            Problem((*here, key), f"missing key '{key}' in a [[move]], the name of a memory") for key in absent
        ]
        if absent:
            continue
        ends = (str(row["from"]), str(row["to"]))
        if ends[1] in nested.get(ends[0], {}):
            problems.append(Problem((*here, "to"), f"the move from {ends[0]} to {ends[1]} is given twice"))
        nested.setdefault(ends[0], {})[ends[1]] = {k: v for k, v in row.items() if k not in ("from", "to")}
        for path, place in document.places.items():
            if path[:2] == here:
                places[("move", *ends, *path[2:])] = place
    if problems:
        raise document.error(problems)
    return Document({**document.data, "move": nested}, places, document.origin)


def _syntax_problem(message: str, text: str, file: str) -> tuple[str, Place]:
    position = _TOML_POSITION.search(message)
    lines = text.splitlines() or [""]
    line, column = len(lines), len(lines[-1]) + 1
    if position is not None and position[1]:
        line, column = int(position[1]), int(position[2])
    return f"not valid TOML: {_TOML_POSITION.sub('', message)}", Place(file, line, column)


def _split(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in re.findall(_PART, dotted))


def _places(text: str, file: str) -> Mapping[KeyPath, Place]:
    """Where keys and table headers stand. tomllib does not say, and one line's shape is enough to find out: this only
    runs on text that tomllib accepted, and a key it misses (deep inside a multi-line array) has its table's place."""
    places: dict[KeyPath, Place] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.match(line):
            table = _split(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, str(counts[table]))
            places[table] = Place(file, number, header.start(2) + 1)
        elif key := _KEY.match(line):
            path = (*table, *_split(key[1]))
            places[path] = Place(file, number, key.start(1) + 1)
            if line[key.end() : key.end() + 1] == "{":
                for inner in _INLINE_KEY.finditer(line, key.end()):
                    places[(*path, *_split(inner[1]))] = Place(file, number, inner.start(1) + 1)
    return places


def _override_value(text: str) -> object:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text  # a bare word or a size with a unit
