"""The IR around passes: before or after all of them or some, after those that change it, after the one that fails."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from tilewright.ir.diagnostics import did_you_mean
from tilewright.ir.source import print_module

from .errors import plain_error
from .files import make_directory, write_atomically


@dataclass(frozen=True)
class When:
    """Which dumps are wanted. `before` and `after` name passes of the pipeline."""

    before_all: bool = False
    after_all: bool = False
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    change: bool = False
    failure: bool = False

    def check(self, passes: Sequence[ModulePass]) -> None:
        """Raises SourceError for a name that is not in the pipeline."""
        names = list(dict.fromkeys(step.name for step in passes))
        for name in (*self.before, *self.after):
            if name not in names:
                hint = did_you_mean(name, names) or f"it has {', '.join(names) or 'none'}"
                raise plain_error(f"no pass '{name}' in the pipeline; {hint}")


@dataclass
class IrPrinter:
    """Writes numbered files into `directory`, or banners and texts to the standard error stream.

    Each file starts with the command that goes on from it; `words` are the options that it needs.
    """

    when: When
    passes: Sequence[ModulePass]
    directory: Path | None = None
    generic: bool = False
    words: tuple[str, ...] = ()
    _written: int = 0
    _text: str = ""

    def before(self, index: int, module: ModuleOp) -> None:
        """Called before the pass of this index."""
        name, when = self.passes[index].name, self.when
        if when.change:
            self._text = print_module(module)
        if when.before_all or name in when.before:
            self._write("before", index, module, self.passes[index:])

    def after(self, index: int, module: ModuleOp) -> None:
        """Called after the pass of this index."""
        name, when = self.passes[index].name, self.when
        changed = when.change and print_module(module) != self._text
        if when.after_all or name in when.after or changed:
            self._write("after", index, module, self.passes[index + 1 :])

    def failed(self, index: int, module: ModuleOp) -> None:
        """Called with the module as the pass of this index left it."""
        if self.when.failure:
            self._write("failed", index, module, self.passes[index:])

    def _write(self, moment: str, index: int, module: ModuleOp, rest: Iterable[ModulePass]) -> None:
        name = self.passes[index].name
        try:
            text = print_module(module, self.generic)
        except Exception as error:  # what a failed pass has left may be beyond printing
            text = f"// the program cannot be printed: {error}\n"
        if self.directory is None:
            click.echo(
                f"// -----// IR {moment} {name} ({index + 1} of {len(self.passes)}) //----- //\n{text}", err=True
            )
            return
        make_directory(self.directory)
        path = self.directory / f"{self._written:02}-{moment}-{name}.mlir"
        pipeline = ",".join(str(step) for step in rest)
        command = ["tilewright", "opt", str(path), *self.words, *(["-p", pipeline] if pipeline else [])]
        write_atomically(path, f"// {shlex.join(command)}\n{text}")
        self._written += 1
