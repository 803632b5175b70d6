"""`tilewright diff`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from .api import Objective, compile
from .cli_diagnostics import show_warnings
from .cli_import import read_program
from .cli_options import Session, constants_option, parse_dims, use_option
from .cli_output import PATH, check_files, emit, html_option, json_option, show_report
from .files import write_atomically
from .reporting.report import diff

_OBJECTIVE = click.Choice(["time", "traffic"])


@click.command("diff", short_help="Compare two programs, or one under two targets, pipelines or options.")
@click.argument("first", type=PATH)
@click.argument("second", type=PATH, required=False)
@click.option("--target", help="Target of both. Default: the one recorded in each file, else davinci.")
@click.option("--target-b", help="Target of the second.")
@click.option("-p", "--pipeline", help="Passes of both. Default: what is left.")
@click.option("--pipeline-b", help="Passes of the second.")
@click.option("--objective", type=_OBJECTIVE, help="What schedules of both minimise.")
@click.option("--objective-b", type=_OBJECTIVE, help="What schedules of the second minimise.")
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", callback=parse_dims, help="Size of a dimension.")
@click.option(
    "--dim-b", "dims_b", multiple=True, metavar="NAME=SIZE", callback=parse_dims, help="Its size in the second."
)
@constants_option
@use_option
@click.option("--use-b", "libraries_b", multiple=True, type=PATH, metavar="LIB", help="One more, for the second only.")
@html_option
@json_option
@click.pass_obj
def diff_command(
    session: Session,
    first: Path,
    second: Path | None,
    target: str | None,
    target_b: str | None,
    pipeline: str | None,
    pipeline_b: str | None,
    objective: Objective | None,
    objective_b: Objective | None,
    dims: dict[str, int],
    dims_b: dict[str, int],
    constants: dict[str, Path],
    libraries: tuple[Path, ...],
    libraries_b: tuple[Path, ...],
    html_path: Path | None,
    json_path: Path | None,
) -> None:
    """Compiles the programs in FIRST and SECOND (FIRST again, if it is left out) and shows how they differ: traffic,
    cycles, memory, kernels, and the IR level by level. Options ending in -b are for the second, which else has those
    of the first.
    """
    check_files(html_path, json_path)
    module = read_program(first, dims, constants)
    a = show_warnings(compile(module, target, pipeline, objective, use=libraries, watch=session.watch), session)
    b = compile(
        read_program(second or first, dims | dims_b, constants),
        target_b or target,
        pipeline_b if pipeline_b is not None else pipeline,
        objective_b or objective,
        use=(*libraries, *libraries_b),
        watch=session.watch,
    )
    show_warnings(b, session)
    made = diff(a, b)
    emit(made.json(), json_path, partial(show_report, made) if html_path is None else None)
    if html_path is not None:
        write_atomically(html_path, made.html())
