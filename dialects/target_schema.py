"""From tables to models: every schema error at once, in words of the target file, at the key it belongs to."""

from __future__ import annotations

import json
import re
from typing import Any, cast

from pydantic import BaseModel, ValidationError

from .names import near
from .target_check import KeyPath, Problem
from .target_model import DmaEngine, MatrixEngine, MatrixType, Memory, Move, Target, VectorEngine
from .target_text import Document, Table, flat_moves

_ENGINES: dict[str, type[BaseModel]] = {"dma": DmaEngine, "matrix": MatrixEngine, "vector": VectorEngine}


def validate(document: Document) -> Target:
    """The target a document describes. Raises TargetError listing all schema errors."""
    data = flat_moves(document.data)
    try:
        return Target.model_validate(data)
    except ValidationError as error:
        moves = cast(list[Table], data.get("move", []))
        problems = [_problem(cast(dict[str, Any], entry), moves, document.data) for entry in error.errors()]
        raise document.error(list(dict.fromkeys(problems))) from None


def _problem(entry: dict[str, Any], moves: list[Table], data: Table) -> Problem:
    raw: tuple[str | int, ...] = entry["loc"]
    path = _key_path(raw, moves)
    key, kind = path[-1] if path else "", entry["type"]
    if raw[-1] == "[key]" or kind == "extra_forbidden":
        known = _literals(entry) if raw[-1] == "[key]" else _known_keys(path[:-1], data)
        return Problem(path, f"unknown key '{key}'{near(key, known)} (expected {_listed(known)})")
    if kind == "missing" and isinstance(raw[-1], int):
        return Problem(path, f"{'.'.join(path)}: too few elements, number {raw[-1] + 1} is missing")
    if kind == "missing":
        return Problem(path, f"missing key '{key}' in {_table_name(path[:-1])}")
    if kind == "union_tag_not_found":
        return Problem(path, f"missing key 'kind' in {_table_name(path)} (expected dma, matrix, vector)")
    if kind == "union_tag_invalid":
        tag = str(entry["ctx"]["tag"])
        return Problem((*path, "kind"), f"kind: expected dma, matrix or vector, found '{tag}'{near(tag, _ENGINES)}")
    expected = str(entry["ctx"]["error"]) if kind == "value_error" else _expected(entry["msg"])
    hint = near(str(entry["input"]), _literals(entry)) if kind == "literal_error" else ""
    return Problem(path, f"{'.'.join(path)}: expected {expected}, found {_shown(entry['input'])}{hint}")


def _key_path(raw: tuple[str | int, ...], moves: list[Table]) -> KeyPath:
    """Pydantic's location → keys as written: without the union's tag, moves by their ends, list items by their key."""
    parts = [part for part in raw if part != "[key]"]
    if len(parts) >= 3 and parts[0] == "engine":
        del parts[2]
    if len(parts) >= 2 and parts[0] == "move" and isinstance(parts[1], int):
        parts[1:2] = [str(moves[parts[1]]["from"]), str(moves[parts[1]]["to"])]
    return tuple(str(part) for part in parts if not isinstance(part, int))


def _known_keys(table: KeyPath, data: Table) -> list[str]:
    model: type[BaseModel] | None = Target
    if table[:1] == ("memory",):
        model = Memory
    elif table[:1] == ("move",):
        model = Move
    elif table[:1] == ("engine",) and len(table) == 2:
        model = _ENGINES.get(str(data["engine"][table[1]].get("kind")))
    elif table[:1] == ("engine",):
        model = MatrixType
    fields = model.model_fields if model else {}
    return [info.alias or name for name, info in fields.items()]


def _literals(entry: dict[str, Any]) -> list[str]:
    return re.findall(r"'([^']*)'", str(entry.get("ctx", {}).get("expected", "")))


def _table_name(path: KeyPath) -> str:
    if path[:1] == ("move",) and len(path) == 3:
        return f"the move from {path[1]} to {path[2]}"
    return f"[{'.'.join(path)}]" if path else "the target"


def _listed(words: list[str]) -> str:
    return ", ".join(words) if words else "none"


def _expected(message: str) -> str:
    message = re.sub(r" after validation, not \d+$", "", re.sub(r"^\w+ should have ", "", message))
    return message.removeprefix("Input should be ").replace("a valid ", "a ").replace("a integer", "an integer")


def _shown(value: object) -> str:
    try:
        text = json.dumps(value)
    except TypeError:
        text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
