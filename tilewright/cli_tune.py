"""`tilewright tune`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import cast

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from tilewright.ir.source import print_module
from tilewright.runtime.report import Json

from .api import DEFAULT_TARGET, Objective, compile
from .cli_import import is_onnx, read_program, warn_about_weights, write_weights
from .cli_options import IntRange, Session, constants_option, program_options
from .cli_output import PATH, check_files, emit, is_file, json_option
from .errors import plain_error
from .files import write_atomically
from .module import Module
from .ranking import Candidate, candidates, with_schedules
from .render import bytes_text, console, count_text, table
from .sweep_output import picture, points_csv, points_json, points_table
from .sweeping import WITHOUT, Point, Variation, sweep

PICTURES = ("svg", "png", "pdf")


@click.command("tune", short_help="List schedules, write one in; or sweep machines and sizes.")
@program_options
@constants_option
@click.option("--top", type=IntRange(min=1), default=20, show_default=True, help="Schedules of each kernel.")
@click.option("--kernel", type=IntRange(min=0), help="Only this one, counted from 0.")
@click.option("--apply", "rank", type=IntRange(min=1), help="Write the schedule of this rank in.")
@click.option("-o", "--output", type=PATH, help="File for the program with it. Default: standard output.")
@click.option(
    "--vary",
    multiple=True,
    metavar="FIELD=VALUES",
    help="Sweep a field of the target or dim.NAME: cores=1,8,32 or memory.ub.bytes=64KiB..1MiB, which doubles. "
    "Several give all combinations.",
)
@click.option(
    "--without",
    multiple=True,
    metavar="PASS",
    help=f"Also compile every point without this, to see what it is worth: {', '.join(WITHOUT)}.",
)
@click.option("--jobs", type=IntRange(min=1), help="Processes of a sweep. Default: one for each processor.")
@json_option
@click.option("--csv", "csv_path", type=PATH, metavar="PATH", help="Write the points of a sweep as CSV.")
@click.option(
    "--plot", "plot_path", type=PATH, metavar="PATH", help="Draw cycles over bytes of a sweep: .svg, .png or .pdf."
)
@click.pass_obj
def tune_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    top: int,
    kernel: int | None,
    rank: int | None,
    output: Path | None,
    vary: tuple[str, ...],
    without: tuple[str, ...],
    jobs: int | None,
    json_path: Path | None,
    csv_path: Path | None,
    plot_path: Path | None,
) -> None:
    """Lists the best schedules of every kernel of the program in FILE, each lowered to the end and simulated.

    With --apply K, the program is written with the K-th schedule of the kernel (of --kernel, if there are several) as
    its attribute; compile obeys it. With --vary, the program is compiled and simulated on every machine and at every
    size instead. A point that does not compile says why.
    """
    check_files(output, json_path, csv_path, plot_path)
    if vary or without:
        for given, name in ((kernel, "--kernel"), (rank, "--apply"), (output, "--output")):
            if given is not None:
                raise click.UsageError(f"{name} is for one machine and size: leave out --vary and --without")
        _sweep(file, target, dims, constants, objective, vary, without, jobs, json_path, csv_path, plot_path)
        return
    for given, name in ((csv_path, "--csv"), (plot_path, "--plot"), (jobs, "--jobs")):
        if given is not None:
            raise click.UsageError(f"{name} is for a sweep: say what to --vary")
    if output is not None and rank is None:
        raise click.UsageError("--output is for the program that --apply makes")
    module = read_program(file, dims, constants, output if is_file(output) else None)
    program = compile(module, target, objective=objective, to="fuse", watch=session.watch)
    found = candidates(program, top, kernel)
    if rank is None:
        emit(_json(found), json_path, partial(_show, found))
        return
    _write(with_schedules(program, [_chosen(found, rank)]), output)


def _chosen(found: Sequence[Candidate], rank: int) -> Candidate:
    kernels = sorted({candidate.kernel for candidate in found})
    if len(kernels) > 1:
        raise plain_error(f"the program has {len(kernels)} kernels: say which with --kernel")
    chosen = next((candidate for candidate in found if candidate.rank == rank), None)
    if chosen is None:
        raise plain_error(f"there is no schedule {rank} among the best {len(found)}; --top lists more")
    return chosen


def _write(module: Module, output: Path | None) -> None:
    text = print_module(module.op)
    if output is not None and is_file(output):
        write_weights(module, output.parent)
        write_atomically(output, text)
    else:
        warn_about_weights(module)
        click.echo(text, nl=False)


def _json(found: Sequence[Candidate]) -> dict[str, Json]:
    rows = [asdict(candidate) | {"schedule": str(candidate.schedule.to_attr())} for candidate in found]
    return {"schedules": cast("list[Json]", rows)}


def _show(found: Sequence[Candidate]) -> None:
    made = table("kernel", "rank", "off-chip", "cycles", "strategy", "tiles", "order", "hold", "pins", "skew",
                 right=("kernel", "rank", "off-chip", "cycles"))  # fmt: skip
    for each in found:
        chosen = each.schedule
        tiles = " ".join(f"{axis}{tile}" for axis, tile in zip(chosen.axes, chosen.tiles, strict=True))
        pins, skew = (" ".join(map(str, values)) for values in (chosen.pins, chosen.skew))
        hold = " ".join(held or "-" for held in chosen.hold)
        figures = (bytes_text(each.bytes), count_text(each.cycles))
        made.add_row(str(each.kernel), str(each.rank), *figures, chosen.strategy, tiles, chosen.order, hold, pins, skew)
    console().print(made)


def _sweep(
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    vary: Sequence[str],
    without: Sequence[str],
    jobs: int | None,
    json_path: Path | None,
    csv_path: Path | None,
    plot_path: Path | None,
) -> None:
    if constants or is_onnx(file):
        raise click.UsageError("a sweep takes a program in text: `tilewright import` makes one of an ONNX model")
    kind = plot_path.suffix[1:].lower() if plot_path is not None else "svg"
    if kind not in PICTURES:
        raise click.UsageError(f"--plot draws .{', .'.join(PICTURES)}, not '{plot_path}'")
    variations = [Variation.parse(text) for text in vary]
    with _bar() as progress:
        points = sweep(file, variations, target or DEFAULT_TARGET, objective, dims, without, jobs, progress)
    drawn = picture(points, kind) if plot_path is not None else b""
    emit(points_json(points), json_path, partial(_show_points, points))
    if csv_path is not None:
        write_atomically(csv_path, points_csv(points))
    if plot_path is not None:
        write_atomically(plot_path, drawn)


def _show_points(points: Sequence[Point]) -> None:
    console().print(points_table(points))


class _bar:
    """A progress bar on the standard error stream, where that is a terminal."""

    def __enter__(self) -> Callable[[int, int], None]:
        out = Console(stderr=True)
        columns = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        self.progress = Progress(*columns, console=out, transient=True, disable=not out.is_terminal)
        self.progress.start()
        self.task = self.progress.add_task("points", total=None)
        return lambda done, total: self.progress.update(self.task, completed=done, total=total)

    def __exit__(self, *_: object) -> None:
        self.progress.stop()
