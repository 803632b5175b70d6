"""Targets by name, file or override, and the target a module is compiled for.

load_target("davinci")
load_target("unified{memory.scratchpad.bytes=192KiB cores=1}")
load_target("machines/mine.toml")          # may say base = "davinci"
"""

from __future__ import annotations

import json
import logging
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from .errors import UserError
from .names import near
from .target_check import KeyPath, Problem, check_target
from .target_model import (
    CostClass,
    DmaEngine,
    ElementName,
    Engine,
    MatrixEngine,
    MatrixType,
    Memory,
    Move,
    Target,
    VectorEngine,
)
from .target_schema import validate
from .target_text import Document, Place, Table, TargetError, merge, read_json, read_overrides, read_toml

_log = logging.getLogger(__name__)

__all__ = [
    "TARGET_ATTRIBUTE", "CostClass", "DmaEngine", "ElementName", "Engine", "MatrixEngine", "MatrixType", "Memory",
    "Move", "Target", "TargetError", "VectorEngine", "list_targets", "load_target", "set_target", "target_of",
]  # fmt: skip

TARGET_ATTRIBUTE = "tilewright.target"
_LARGEST_FILE = 1 << 20
_MAX_BASES = 8
"""A longer chain of bases is taken for a circle."""


def list_targets() -> tuple[str, ...]:
    """Names of the bundled targets, sorted."""
    files = resources.files(f"{__package__}.targets").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_target(spec: str) -> Target:
    """The target that a specification names: `name`, `path.toml` or canonical text (`Target.canonical`), each
    with overrides in braces behind it if wanted: `name{memory.l1.bytes=1MiB cores=2 move.gm.l1.rate=50}`.

    Raises TargetError, with the place of each mistake, for an unknown name and for anything wrong in the description.
    """
    spec = spec.strip()
    subject, _, _ = _split_spec(spec)
    return _load(spec) if _is_file(subject) else _load_cached(spec)


def set_target(module: ModuleOp, spec: str | Target) -> Target:
    """Records the target in the module and returns it.

    A bundled name, with its overrides, is recorded as it is written; a file or a Target is recorded by its whole
    content, so that a dump can be continued where the file does not exist. Raises TargetError as `load_target` does.
    """
    target = load_target(spec) if isinstance(spec, str) else spec
    module.attributes[TARGET_ATTRIBUTE] = StringAttr(_portable_spec(spec, target))
    return target


def target_of(op: Operation) -> Target:
    """The target recorded in the module of an op. Raises UserError where there is none."""
    root: Operation | None = op
    while root is not None:
        if isinstance(root, ModuleOp) and TARGET_ATTRIBUTE in root.attributes:
            spec = root.attributes[TARGET_ATTRIBUTE]
            if not isinstance(spec, StringAttr):
                raise UserError(f"the attribute {TARGET_ATTRIBUTE} is not a string", root.location)
            try:
                return load_target(spec.data)
            except TargetError as error:
                if error.file in (None, "<target>"):  # it is this attribute that is wrong
                    raise UserError(f"{TARGET_ATTRIBUTE}: {error.message}", root.location) from None
                raise
        root = root.parent_op()
    raise UserError(
        f"the module names no target (attribute {TARGET_ATTRIBUTE}): give one, as in --target davinci", op.location
    )


def known_target(op: Operation) -> Target | None:
    """The target recorded in the module of an op, None where it names none."""
    root = op.get_toplevel_object()
    return target_of(op) if isinstance(root, ModuleOp) and TARGET_ATTRIBUTE in root.attributes else None


def _portable_spec(spec: str | Target, target: Target) -> str:
    if isinstance(spec, str) and not _is_file(_split_spec(spec.strip())[0]):
        return spec.strip()
    if target.name in list_targets() and load_target(target.name) == target:
        return target.name
    return target.canonical


def _split_spec(spec: str) -> tuple[str, str, int]:
    """Subject, text of the overrides and its column. The canonical text of a target is JSON and starts with a brace."""
    if spec.startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(spec)
        except json.JSONDecodeError:
            end = len(spec)
    else:
        end = spec.find("{") if "{" in spec else len(spec)
    rest = spec[end:].strip()
    if not rest:
        return spec[:end].strip(), "", end + 1
    if not (rest.startswith("{") and rest.endswith("}")):
        raise TargetError(
            [(f"expected overrides in braces, found '{rest}' in target '{spec}'", Place("<target>", 1, end + 1))]
        )
    return spec[:end].strip(), rest[1:-1], spec.index("{", end) + 2


def _is_file(subject: str) -> bool:
    if subject.startswith("{") or subject in list_targets():
        return False
    return subject.endswith(".toml") or "/" in subject or "\\" in subject or Path(subject).is_file()


@lru_cache(maxsize=256)
def _load_cached(spec: str) -> Target:
    return _load(spec)


def _load(spec: str) -> Target:
    subject, overrides, column = _split_spec(spec)
    document = read_json(subject, "<target>") if subject.startswith("{") else _document(subject, None, ())
    if overrides.strip():
        over = read_overrides(overrides, spec, column)
        _check_override_tables(document, over)
        document = merge(document, over)
    return _resolve(document)


_RESOLVED: dict[str, Target] = {}


def _resolve(document: Document) -> Target:
    key = json.dumps(document.data, default=str)
    if key not in _RESOLVED:
        target = validate(document)
        _log.info("read the target '%s'", target.name)
        if problems := check_target(target):
            raise document.error(problems)
        _RESOLVED[key] = target
    return _RESOLVED[key]


def _document(subject: str, relative_to: Path | None, chain: tuple[str, ...]) -> Document:
    """Reads a target file and what it is based on. `chain` holds the files on the way here."""
    if _is_file(subject) or (relative_to is not None and (relative_to / subject).is_file()):
        path = Path(subject) if relative_to is None else relative_to / subject
        try:
            with path.open("rb") as stream:
                text = stream.read(_LARGEST_FILE + 1).decode("utf-8")
            if len(text) > _LARGEST_FILE:
                raise TargetError([(f"target file '{path}' is larger than {_LARGEST_FILE >> 20} MiB", None)])
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise TargetError([(f"cannot read target file '{path}': {reason}", None)]) from None
        file, folder = str(path), path.parent
    else:
        known = list_targets()
        if subject not in known:
            file = f"; did you mean the file {subject}.toml?" if Path(f"{subject}.toml").is_file() else ""
            hint = file or near(subject, known)
            message = f"unknown target '{subject}'{hint} (known targets: {', '.join(known)})"
            raise TargetError([(message, None)])
        text = (resources.files(f"{__package__}.targets") / f"{subject}.toml").read_text(encoding="utf-8")
        file, folder = f"{subject}.toml", None
    document = read_toml(text, file)
    document.data.setdefault("name", Path(file).stem)
    return _with_base(document, folder, (*chain, file))


def _with_base(document: Document, folder: Path | None, chain: tuple[str, ...]) -> Document:
    base = document.data.pop("base", None)
    if base is None:
        return document
    if not isinstance(base, str):
        raise document.error([Problem(("base",), "base is the name of a target or a path to a file")])
    try:
        if len(chain) > _MAX_BASES:
            before = [place for place, name in enumerate(chain[:-1]) if name == chain[-1]]
            circle = chain[before[-1] :] if before else chain
            raise TargetError([(f"targets are based on each other: {' → '.join(circle)}", None)])
        below = _document(base, folder, chain)
    except TargetError as error:
        if error.file is None:  # a base that cannot be found is a mistake of the line that names it
            raise document.error([Problem(("base",), error.message)]) from None
        raise
    return merge(below, document)


def _check_override_tables(document: Document, over: Document) -> None:
    """Overrides change keys of existing memories, engines and moves; a misspelt name must not make a new one."""
    problems = [problem for path in over.places if (problem := _unknown_table(document.data, path)) is not None]
    if problems:
        raise over.error(problems)


def _unknown_table(data: Table, path: KeyPath) -> Problem | None:
    table = data
    for depth, part in enumerate(path[:-1]):
        inner: object = table.get(part)
        if not isinstance(inner, dict):
            where = ".".join(path[:depth]) or "the target"
            return Problem(path, f"nothing named '{part}' in {where}{near(part, table)}")
        table = cast(Table, inner)
    if isinstance(table.get(path[-1]), dict):
        known = ", ".join(cast(Table, table[path[-1]]))
        return Problem(path, f"{'.'.join(path)} is a table; override its keys ({known})")
    return None
