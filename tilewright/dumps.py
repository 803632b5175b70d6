"""Dump directories: the program after every pass, each file with the command that goes on from it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tilewright.ir.source import print_module

from .files import make_directory, write_atomically
from .program import Snapshot


@dataclass
class Dumper:
    """Writes `00-input.mlir`, `01-canonicalize.mlir`, … as passes finish, so that a failure leaves what came before."""

    directory: Path
    passes: Sequence[str]
    """The pipeline, one specification per pass, options included."""
    generic: bool = False
    written: list[Path] = field(default_factory=list[Path])

    def __call__(self, snapshot: Snapshot) -> None:
        number = len(self.written)
        make_directory(self.directory)
        path = self.directory / f"{number:02}-{snapshot.name}.mlir"
        text = print_module(snapshot.module, self.generic)
        write_atomically(path, f"// {self.command(path, number)}\n{text}")
        self.written.append(path)

    def command(self, path: Path, number: int) -> str:
        """The shell command that takes a dump through the rest of the pipeline, or runs it when nothing is left."""
        rest = self.passes[number:]
        words = ["tilewright", "compile", str(path), "-p", ",".join(rest)]
        return shlex.join(words if rest else ["tilewright", "run", str(path), "--random", "0"])
