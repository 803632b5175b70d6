"""A compiled program as one file: text of every snapshot, weights beside them, a version and a checksum of each part.

The file is a ZIP archive (Python's zipfile reads no code from it):

    manifest.json                      format, version, the passes, SHA-256 of every other member
    source.mlir                        the text that was compiled, as it was written
    00-input.mlir, 01-canonicalize.mlir, …    every snapshot with its locations
    files/…                            the files that the program names (weights)
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import StringAttr

from tilewright.dialects.verify import verify_module
from tilewright.ir.diagnostics import SourceError
from tilewright.ir.source import SourceMap, parse_module, print_module
from tilewright.lowering.pipeline import LEVELS, remaining
from tilewright.runtime.weights import weight_bytes

from .api import compile
from .errors import diagnosed, plain_error
from .files import write_atomically
from .module import Module
from .program import Program, Snapshot

FORMAT = "tilewright program"
VERSION = 1
MANIFEST = "manifest.json"

_MEMBER = re.compile(r"source\.mlir|[0-9]{2,4}-[\w-]+\.mlir|files/[0-9]{1,6}/[^/]+")

LARGEST_TEXTS = 1 << 28
"""Most bytes of the compressed members together once they are unpacked: a small file may claim any number. Files that
the program names are stored as they are, and take what they take."""


def save(program: Program, path: str | Path) -> None:
    """Writes a program that `load_program` reads back. Raises SourceError if a file cannot be read or written."""
    path = _path(path)
    members = dict(_members(program))
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "file": program.source.source.file,
        "snapshots": [snapshot.name for snapshot in program.snapshots],
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    stream = BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        # One date for all: the same program gives the same bytes.
        for name, data in {MANIFEST: json.dumps(manifest, indent=2).encode(), **members}.items():
            packed = zipfile.ZIP_STORED if name.startswith("files/") else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name), data, packed)
    write_atomically(path, stream.getvalue())


def _path(path: str | Path) -> Path:
    if not isinstance(cast(object, path), str | Path):
        raise plain_error(f"a file is named by a path, got {path!r}")
    return Path(path)


def _members(program: Program) -> Iterator[tuple[str, bytes]]:
    source = program.source.source
    yield "source.mlir", source.texts.get(source.file, "").encode()
    for number, snapshot in enumerate(program.snapshots):
        yield _snapshot_name(number, snapshot.name), print_module(snapshot.module, locations=True).encode()
    for number, name in enumerate(named_files(program.snapshots)):
        held = {key: array for (file, key), array in program.source.weights.items() if file == name}
        if held:  # of an imported model: they lie in no file yet
            yield f"files/{number}/{Path(name).name}", weight_bytes(held)
            continue
        path = source.resolve(name)
        try:
            yield f"files/{number}/{Path(name).name}", path.read_bytes()
        except OSError as error:
            raise plain_error(f"cannot read '{path}', which the program names: {error.strerror}") from None


def _snapshot_name(number: int, name: str) -> str:
    return f"{number:02}-{name}.mlir"


def load_program(path: str | Path) -> Program:
    """A program that `save` wrote. Nothing in the file is executed.

    Raises SourceError for what is no such file, is of a later version, or is not as it was written.
    """
    path = _path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            manifest, members = _checked(archive, path)
    except FileNotFoundError:
        raise plain_error(f"no file '{path}'") from None
    except OSError as error:
        raise plain_error(f"cannot read '{path}': {error.strerror or error}") from None
    except SourceError:
        raise
    except Exception as error:
        # zipfile, zlib, struct and json raise whatever the bytes at hand lead them to.
        raise plain_error(f"'{path}' is not a saved program: {' '.join(str(error).split())}") from None
    return _program(manifest, members, path)


def _checked(archive: zipfile.ZipFile, path: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and every member that it lists, each as it was written. Raises SourceError otherwise."""
    if MANIFEST not in archive.namelist():
        raise plain_error(f"'{path}' is not a saved program: it has no {MANIFEST}")
    manifest: Any = json.loads(_member(archive, MANIFEST, path, LARGEST_TEXTS))
    if not isinstance(manifest, dict) or cast("dict[str, Any]", manifest).get("format") != FORMAT:
        raise plain_error(f"'{path}' is not a saved program")
    found = cast("dict[str, Any]", manifest)
    if found.get("version") != VERSION:
        raise plain_error(f"'{path}' is of version {found.get('version')}; this tilewright reads version {VERSION}")
    sums, names = found.get("sha256"), found.get("snapshots")
    if not isinstance(sums, dict) or not isinstance(names, list) or not names or not isinstance(found.get("file"), str):
        raise plain_error(f"'{path}' is damaged: its {MANIFEST} lacks entries")
    if not all(_MEMBER.fullmatch(name) for name in cast("dict[str, str]", sums)):
        raise plain_error(f"'{path}' is damaged: its {MANIFEST} lists what no program has")
    if sorted([MANIFEST, *cast("dict[str, str]", sums)]) != sorted(archive.namelist()):
        raise plain_error(f"'{path}' is damaged: its members are not those that its {MANIFEST} lists")
    members: dict[str, bytes] = {}
    left = LARGEST_TEXTS
    for name in cast("dict[str, str]", sums):
        members[name] = _member(archive, name, path, left)
        left -= 0 if _is_stored(archive, name) else len(members[name])
    for name, data in members.items():
        if hashlib.sha256(data).hexdigest() != sums[name]:
            raise plain_error(f"'{path}' is damaged: '{name}' is not what was written")
    wanted = {"source.mlir", *(_snapshot_name(n, str(name)) for n, name in enumerate(cast("list[object]", names)))}
    if missing := sorted(wanted - members.keys()):
        raise plain_error(f"'{path}' is damaged: '{missing[0]}' is missing")
    return found, members


def _member(archive: zipfile.ZipFile, name: str, path: Path, most: int) -> bytes:
    """The bytes of a member; of a compressed one `most` at most, whatever the archive says of its size."""
    with archive.open(name) as stream:
        data = stream.read() if _is_stored(archive, name) else stream.read(most + 1)
    if len(data) > most and not _is_stored(archive, name):
        raise plain_error(f"'{path}' is damaged: its texts are larger than {LARGEST_TEXTS >> 20} MiB")
    return data


def _is_stored(archive: zipfile.ZipFile, name: str) -> bool:
    return archive.getinfo(name).compress_type == zipfile.ZIP_STORED


@dataclass(frozen=True)
class _Stored:
    """A file inside the archive, as the reader of weights asks for it."""

    name: str
    data: bytes | None

    def exists(self) -> bool:
        return self.data is not None

    is_file = exists

    def read_bytes(self) -> bytes:
        if self.data is None:
            raise FileNotFoundError(2, "it is not among the saved files")
        return self.data

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _SavedSource(SourceMap):
    """Where the program came from; the files that it names come out of the archive."""

    stored: Mapping[str, bytes] = field(default_factory=dict[str, bytes])

    def resolve(self, name: str) -> Path:
        return cast(Path, _Stored(name, self.stored.get(name)))


def _program(manifest: dict[str, Any], members: Mapping[str, bytes], path: Path) -> Program:
    file = cast(str, manifest["file"])
    texts = {name: _text(data, name, path) for name, data in members.items() if name.endswith(".mlir")}
    snapshots: list[Snapshot] = []
    for number, name in enumerate(cast("list[str]", manifest["snapshots"])):
        member = _snapshot_name(number, name)
        op = parse_module(texts[member], f"{path}/{member}")
        with diagnosed({f"{path}/{member}": texts[member]}):
            verify_module(op)
        snapshots.append(Snapshot(name, op))
    _check_stages(snapshots, path)
    source = _SavedSource(file, Path(), {file: texts["source.mlir"]}, _named_files(snapshots, members))
    module = Module(snapshots[0].module, source)
    twin = partial(compile, module, unfused=True) if "fuse" in remaining(module.op) else None
    return Program(module, tuple(snapshots), twin)


def _check_stages(snapshots: Sequence[Snapshot], path: Path) -> None:
    """Raises SourceError unless the stages begin with the input, go down the levels, and all take and return the
    same."""
    if snapshots[0].name != "input":
        raise plain_error(f"'{path}' is damaged: its first stage is '{snapshots[0].name}', not 'input'")
    levels = list(LEVELS)
    for above, below in pairwise(snapshots):
        if levels.index(below.level) < levels.index(above.level):
            raise plain_error(
                f"'{path}' is damaged: '{below.name}', after '{above.name}', is at the {below.level} level again"
            )
    wanted = _signature(snapshots[0])
    for snapshot in snapshots:
        found = _signature(snapshot)
        if found != wanted:
            raise plain_error(
                f"'{path}' is damaged: after '{snapshot.name}' the program is {found}, as it was read {wanted}"
            )


def _signature(snapshot: Snapshot) -> str:
    """Shapes and element types of what a stage takes and returns; names are not all kept."""
    module = Module(snapshot.module, SourceMap("", Path(), {}))
    inputs, outputs = (
        ", ".join("x".join([*map(str, spec.shape), spec.element.name]) for spec in specs)
        for specs in (module.inputs, module.outputs)
    )
    return f"({inputs}) -> ({outputs})"


def _text(data: bytes, name: str, path: Path) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise plain_error(f"'{path}' is damaged: '{name}' is not text") from None


def _named_files(snapshots: Sequence[Snapshot], members: Mapping[str, bytes]) -> dict[str, bytes]:
    """The name that the program uses → what was stored for it, in the order in which `save` numbered them."""
    found = [data for _, data in sorted((int(name.split("/")[1]), data) for name, data in members.items()
                                        if name.startswith("files/"))]  # fmt: skip
    return dict(zip(named_files(snapshots), found, strict=False))


def named_files(snapshots: Sequence[Snapshot]) -> list[str]:
    """The files that the weights of a program lie in, each once."""
    ops = (op for snapshot in snapshots for op in snapshot.module.walk() if op.name == "graph.weight")
    files = (op.properties.get("file") for op in ops)
    return list(dict.fromkeys(file.data for file in files if isinstance(file, StringAttr)))
