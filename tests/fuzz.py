"""Broken input of every kind: texts, targets, pipelines, command lines and files, changed by token, character and byte.

`Attempt`s are made from a random generator, so that hypothesis can shrink them and a loop can hunt with them.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import signal
import zipfile
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from random import Random
from types import FrameType
from unittest.mock import patch

import numpy as np
from cli_runner import Done
from cli_runner import tilewright as command

import tilewright

SMALL = """func.func private @gate(%a: tensor<4x8xf16>) -> tensor<4x8xf16> {
  %s = graph.sigmoid %a
  return %s : tensor<4x8xf16>
}

func.func @main(%x: tensor<4x6xf16>, %w: tensor<6x8xf16>) -> (tensor<4x8xf16>, tensor<4xf32>) {
  %c = graph.constant dense<[0.5, 1.0, -1.0e3, 0.0, 2.0, 3.0, 4.0, 5.0]> : tensor<8xf16>
  %p = graph.matmul %x, %w {transpose_b = false}
  %g = call %p {callee = @gate} : tensor<4x8xf16>
  %y = graph.add %g, %c : tensor<4x8xf16>
  %f = graph.cast %y : tensor<4x8xf32>
  %m = graph.reduce_max %f {axes = [1]}
  return %y, %m : tensor<4x8xf16>, tensor<4xf32>
}
""".replace("{transpose_b = false}", "")
TARGET = """base = "unified"
name = "mine"
cores = 2
[memory.scratchpad]
bytes = "64KiB"
[engine.vector.startup]
add = 3
[[move]]
from = "scratchpad"
to = "gm"
engine = "store"
rate = 64.5
"""
TABLE = "id,lower,upper,size,alignment,offset\na,0,4,4,1,\nb,2,6,4,4,8\nc,4,8,4,1,\n"
PIPELINE = "canonicalize,decompose,fuse{unfused=true effort=2},schedule{effort=2 tries=1 measured=1},tile,place"
SPEC = "unified{memory.scratchpad.bytes=64KiB cores=1 engine.matrix.types.f16.block=[16,16,32]}"

TOKEN = re.compile(r'"[^"\n]*"|[%@#^!]?[\w.$]+|->|\s+|.', re.DOTALL)
ATTRIBUTE = re.compile(r'(?<= = )("[^"\n]*"|-?\d+( : \w+)?|\[[^\]\n]*\]|\{[^}\n]*\}|array<[^>\n]*>|@\w+|true|false)')
ATTRIBUTES = (
    "3",
    "-1",
    "0",
    '"x"',
    '""',
    "[]",
    "[1]",
    '["x"]',
    "{}",
    "{gm = 1}",
    "array<i64>",
    "array<i64: 5>",
    "@main",
    "f16",
)
_WORDS = """-1 0 1 7 1099511627776 99999999999999999999 1.5 nan 0xFF %x @main #map !t i64 f16 tensor<4x8xf16>
tensor<?xf16> tensor<*xf16> dense<> affine_map<(d0)->(d0)> array<i64:1> loc module { } ( ) < > [ ] , : = -> " // é \\ '
graph.exp tile.for hardware.wait unknown.op func.func ^bb0 * ? true [] {} ''"""
WORDS = [*_WORDS.split(), "\n", "\0", "\ufeff"]
_VALUES = """p.mlir t.toml x.npy b.csv s none - x=x.npy x= n=4 all json graph hardware unified davinci{ 1 -1 nan 1e400
1KiB traffic o/o main_0 debug fuse é"""
VALUES = [*_VALUES.split(), "", "\0"]
_OPTIONS = """--target --dim --objective --to -p --random --input --expect --tolerance --json --level --reference
--extract --schedule --capacity --section --target-b --constant --log-level -v --diagnostics --all-errors --generic
--nodes --split-input-file --print-ir-after --reduce --no"""
OPTIONS = _OPTIONS.split()
_COMMANDS = "compile run analyze validate report diff opt plan targets passes import x"
COMMANDS = _COMMANDS.split()


@dataclass(frozen=True)
class Attempt:
    """A command line, and the files that it finds in its folder."""

    words: Sequence[str]
    contents: dict[str, bytes] = field(default_factory=dict[str, bytes])


def kind_of(token: str) -> str:
    """What may stand where a token stands: a number for a number, a value for a value, …"""
    return "0" if token[:1].isdigit() else token[:1] if token[:1] in '%@#^!"' else "a" if token[:1].isalpha() else token


def mutated(text: str, rng: Random) -> str:
    """A text with one to three changes, half of which may well leave it correct: a number or a value for another."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        tokens = TOKEN.findall(text) or [""]
        solid = [n for n, token in enumerate(tokens) if not token.isspace()] or [0]
        at = rng.choice(solid)
        alike = [token for token in tokens if kind_of(token) == kind_of(tokens[at])] or [""]
        attributes = list(ATTRIBUTE.finditer(text))
        match rng.randrange(14):
            case 0:
                tokens[at] = ""
            case 1:
                tokens[at] *= 2
            case 2:
                other = rng.choice(solid)
                tokens[at], tokens[other] = tokens[other], tokens[at]
            case 3 | 4:
                tokens[at] = rng.choice(WORDS)
            case 5:
                place = rng.randrange(len(tokens[at]) + 1)
                tokens[at] = tokens[at][:place] + rng.choice(WORDS)[:1] + tokens[at][place + rng.randrange(2) :]
            case 6:
                tokens = text.splitlines(keepends=True) or [""]
                line = rng.randrange(len(tokens))
                tokens[line : line + 1] = tokens[line : line + 1] * rng.choice([0, 2])
            case 7 | 8:
                numbers = [n for n in solid if tokens[n].isdigit()] or [at]
                changed = rng.choice(numbers)
                tokens[changed] = str(rng.choice([0, 1, 2, 3, 5, 8, 16, 64, 1000, 1 << 20, 1 << 40]))
            case 9 | 10 if attributes:
                found = rng.choice(attributes)
                tokens = [text[: found.start()], rng.choice(ATTRIBUTES), text[found.end() :]]
            case _:
                tokens[at] = rng.choice(alike)
        text = "".join(tokens)
    return text


def changed_bytes(data: bytes, rng: Random) -> bytes:
    """Bytes with some of them replaced, or cut off."""
    found = bytearray(data)
    for _ in range(rng.randint(1, 3)):
        if found:
            found[rng.randrange(len(found))] = rng.randrange(256)
    return bytes(found[: rng.choice([len(found)] * 4 + [len(found) // 2, 3])])


@cache
def program() -> tilewright.Program:
    return tilewright.compile(SMALL, "unified", simplest=True)


@cache
def texts() -> tuple[str, ...]:
    """The program after each pass that changes its look, in both forms."""
    levels = ("input", "decompose", "schedule", "tile", "bufferize", "plan", "emit", "sync")
    return tuple(program().ir(after=name, generic=generic) for name in levels for generic in (False, True))


@cache
def saved() -> bytes:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        tilewright.save(program(), Path(folder) / "p")
        return (Path(folder) / "p").read_bytes()


def text(rng: Random) -> Attempt:
    contents = {"p.mlir": mutated(rng.choice(texts()), rng).encode("utf-8", "surrogatepass")}
    words = rng.choice(
        [
            ("opt", "p.mlir", "--locations"),
            ("opt", "p.mlir", "-p", "canonicalize,decompose,canonicalize", "--generic"),
            ("compile", "p.mlir", "--to", "decompose"),
            ("run", "p.mlir", "--random", "0", "--level", "graph"),
        ]
    )
    return Attempt(words, contents)


def lowered_text(rng: Random) -> Attempt:
    """Texts below the search, taken to the end and executed."""
    contents = {"p.mlir": mutated(rng.choice(texts()[4:]), rng).encode("utf-8", "surrogatepass")}
    commands = [("run", "p.mlir", "--random", "0"), ("analyze", "p.mlir"), ("plan", "p.mlir"), ("compile", "p.mlir")]
    return Attempt(rng.choice(commands), contents)


def target(rng: Random) -> Attempt:
    contents = {"t.toml": mutated(TARGET, rng).encode("utf-8", "surrogatepass"), "p.mlir": texts()[4].encode()}
    commands = [("targets", "t.toml"), ("compile", "p.mlir", "--target", "t.toml")]
    return Attempt(rng.choice(commands), contents)


def target_text(rng: Random) -> Attempt:
    return Attempt(("targets", mutated(SPEC, rng)))


def pipeline(rng: Random) -> Attempt:
    passes = [*PIPELINE.split(","), "bufferize", "plan{keep=true}", "emit", "skew", "sync", "cse", "stages"]
    if rng.randrange(2):
        words = ",".join(rng.choice(passes) for _ in range(rng.randint(1, 5)))
    else:
        words = mutated(PIPELINE, rng)
    source = rng.choice(texts()[::2])
    return Attempt(("opt", "p.mlir", "--target", "unified", "-p", words), {"p.mlir": source.encode()})


def options(rng: Random) -> Attempt:
    """Command lines put together from words that belong to some command, and broken ones."""
    words = [rng.choice(COMMANDS), *(["p.mlir"] if rng.randrange(4) else [])]
    for _ in range(rng.randint(0, 3)):
        words += [rng.choice(OPTIONS), *([rng.choice(VALUES)] if rng.randrange(5) else [])]
    return Attempt(words, {"p.mlir": texts()[-2].encode(), "t.toml": TARGET.encode(), "b.csv": TABLE.encode()})


def table(rng: Random) -> Attempt:
    contents = {"b.csv": mutated(TABLE, rng).encode("utf-8", "surrogatepass")}
    return Attempt(("plan", "b.csv", "--capacity", rng.choice(["1KiB", "8", mutated("1KiB", rng)])), contents)


def array(rng: Random) -> Attempt:
    stream = io.BytesIO()
    np.save(stream, np.ones((4, 6), np.float16))
    contents = {"p.mlir": texts()[-2].encode(), "x.npy": changed_bytes(stream.getvalue(), rng)}
    return Attempt(("run", "p.mlir", "--random", "0", "--input", "x=x.npy"), contents)


def saved_program(rng: Random) -> bytes:
    """A saved program with other bytes, or one whose members, changed, have the checksums that they should have."""
    if rng.randrange(2):
        return changed_bytes(saved(), rng)
    with zipfile.ZipFile(io.BytesIO(saved())) as old:
        members = {name: old.read(name) for name in old.namelist()}
    manifest = json.loads(members.pop("manifest.json"))
    name = rng.choice(sorted(members))
    members[name] = mutated(members[name].decode(), rng).encode("utf-8", "surrogatepass")
    manifest["sha256"] = {name: hashlib.sha256(data).hexdigest() for name, data in members.items()}
    written = json.dumps(manifest)
    members["manifest.json"] = (written if rng.randrange(3) else mutated(written, rng)).encode("utf-8", "surrogatepass")
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as new:
        for name, data in members.items():
            new.writestr(name, data)
    return stream.getvalue()


ATTEMPTS: dict[str, Callable[[Random], Attempt]] = {
    made.__name__: made for made in (text, lowered_text, target, target_text, pipeline, options, table, array)
}


_PROGRAM = {"p.mlir": SMALL.encode(), "t.toml": TARGET.encode(), "b.csv": TABLE.encode()}
WHOLE = {
    "text": Attempt(("run", "p.mlir", "--random", "0"), _PROGRAM),
    "target": Attempt(("targets", "t.toml"), _PROGRAM),
    "target_text": Attempt(("targets", SPEC)),
    "pipeline": Attempt(("opt", "p.mlir", "--target", "unified", "-p", PIPELINE), _PROGRAM),
    "table": Attempt(("plan", "b.csv", "--capacity", "1KiB"), _PROGRAM),
}
"""What is changed, as it is."""


class Hang(BaseException):
    """Not an Exception: nothing that is tried may catch it."""


@contextmanager
def time_limit(seconds: float) -> Generator[None]:
    """Raises Hang in a body that takes longer."""

    def expired(number: int, frame: FrameType | None) -> None:
        raise Hang(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _reraise(error: BaseException, *context: object) -> None:
    raise error


def run(attempt: Attempt, folder: Path, seconds: float) -> Done:
    """What a command says, run in `folder`. What would be an internal error is raised, with the place it stems from."""
    for name, content in attempt.contents.items():
        (folder / name).write_bytes(content)
    with patch("tilewright.cli.write_reproducer", _reraise), patch("sys.stdin", io.StringIO("")), time_limit(seconds):
        return command(*attempt.words)
