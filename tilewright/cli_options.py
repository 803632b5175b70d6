"""Options that several commands share, and their parsing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click
from xdsl.passes import ModulePass

from tilewright.ir.attributes import MAX_NUMBER
from tilewright.lowering.cache import switched_off

from .api import Watcher
from .dumps import Dumper
from .program import Snapshot

F = TypeVar("F", bound=Callable[..., Any])


@dataclass
class Session:
    """What a crash reproducer needs to know: how far the program has come, and which passes are left."""

    passes: Sequence[ModulePass] = ()
    snapshots: list[Snapshot] = field(default_factory=list[Snapshot])
    dump_dir: Path | None = None
    generic: bool = False
    command: tuple[str, ...] = ("compile",)
    """The command, with the options it needs, that takes a dump on through a pipeline."""

    all_errors: bool = False
    json_diagnostics: bool = False

    def watch(self, passes: Sequence[ModulePass]) -> Watcher:
        """For `compile`: remembers, and dumps where wanted."""
        self.passes, self.snapshots = passes, []
        dumper = Dumper(self.dump_dir, [str(step) for step in passes], self.generic) if self.dump_dir else None

        def seen(snapshot: Snapshot) -> None:
            self.snapshots.append(snapshot)
            if dumper is not None:
                dumper(snapshot)

        return seen

    @property
    def left(self) -> str:
        """The pipeline that the latest snapshot still had to go through."""
        return ",".join(str(step) for step in self.passes[max(0, len(self.snapshots) - 1) :])


def parse_dims(
    context: click.Context, option: click.Parameter, values: Sequence[str]
) -> dict[str, int] | dict[str, int | tuple[int, ...]]:
    """`n=512` → {"n": 512}; where the command takes several sizes, `n=128,512` → {"n": (128, 512)}."""
    dims: dict[str, int | tuple[int, ...]] = {}
    for value in values:
        name, equals, given = value.partition("=")
        sizes = given.split(",")
        if not equals or not name or not all(size.isascii() and size.isdigit() for size in sizes):
            raise click.BadParameter(f"'{value}' is not NAME=SIZE, as in seq=512", context, option)
        if name in dims:
            raise click.BadParameter(f"'{name}' is given twice", context, option)
        if any(len(size) > len(str(MAX_NUMBER)) or int(size) > MAX_NUMBER for size in sizes):
            raise click.BadParameter(f"the size of '{name}' is too large: at most 2^40", context, option)
        if len(sizes) > 1 and context.command.name != "run":
            raise click.BadParameter(
                f"'{value}' gives several sizes, one program each: `tilewright run` and compile(dims=…) take them",
                context,
                option,
            )
        dims[name] = tuple(map(int, sizes)) if len(sizes) > 1 else int(sizes[0])
    return dims


def parse_files(context: click.Context, option: click.Parameter, values: Sequence[str]) -> dict[str, Path]:
    """`x=a.npy` → {"x": Path("a.npy")}."""
    files: dict[str, Path] = {}
    for value in values:
        name, equals, path = value.partition("=")
        if not equals or not name or not path:
            raise click.BadParameter(f"'{value}' is not NAME=FILE, as in x=x.npy", context, option)
        if name in files:
            raise click.BadParameter(f"'{name}' is given twice", context, option)
        files[name] = Path(path)
    return files


constants_option = click.option(
    "--constant",
    "constants",
    multiple=True,
    metavar="NAME=FILE",
    callback=parse_files,
    help="Fix an input of an ONNX model to the values of a .npy file.",
)


class IntRange(click.IntRange):
    """A range of integers that says what it expects when it is given something else."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        try:
            int(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid integer.", param, ctx)
        return super().convert(value, param, ctx)


class _Tolerance(click.FloatRange):
    """A number that is not negative, nor NaN, which every comparison would call in order or beyond it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            found: float = float(value)
        except ValueError:
            self.fail(f"{value!r} is not a valid number.", param, ctx)
        super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"'{value}' is no number", param, ctx)
        return found


tolerance_option = click.option(
    "--tolerance",
    type=_Tolerance(min=0),
    help="Largest max|x-y| / max|y| of an output x and what it should be, y. Default: 16 roundings to the coarsest "
    "type on the way to it, and what sums of its length add in their accumulator.",
)


use_option = click.option(
    "--use",
    "libraries",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="LIB",
    help="Library of custom operators: what one computes is found in the program and done by its kernel, which is "
    "compared with its logic first.",
)

reference_option = click.option(
    "--reference",
    multiple=True,
    metavar="KERNEL|all",
    help="Swap this kernel for its logic: one kernel for each operation of it.",
)


def with_cache_option(command: click.Command) -> click.Command:
    """Gives a command that searches for schedules the option `--no-cache`."""
    command.params.append(
        click.Option(
            ["--no-cache"],
            is_flag=True,
            help="Search anew: use nothing that earlier searches found, and keep nothing of this one.",
            expose_value=False,
            callback=_set_cache,
        )
    )
    return command


def _set_cache(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.with_resource(switched_off(value))


def program_options(command: F, default_target: str = "the one recorded in FILE, else davinci") -> F:
    """FILE, --target, --dim and --objective; `default_target` is for the help."""
    for decorate in reversed(
        (
            click.argument("file", type=click.Path(path_type=Path)),
            click.option(
                "--target",
                metavar="TARGET",
                help="Name or TOML file of a target, with overrides: 'unified{memory.scratchpad.bytes=192KiB}'. "
                f"Default: {default_target}.",
            ),
            click.option(
                "--dim",
                "dims",
                multiple=True,
                metavar="NAME=SIZE",
                callback=parse_dims,
                help="Size of a symbolic dimension.",
            ),
            click.option(
                "--objective",
                type=click.Choice(["time", "traffic"]),
                help="What schedules minimise. Default: the one recorded in FILE, else time.",
            ),
        )
    ):
        command = decorate(command)
    return command
