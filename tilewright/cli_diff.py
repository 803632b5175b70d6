"""`tilewright diff`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .api import Objective, compile
from .cli_options import Session, parse_dims
from .files import check_writable, write_atomically
from .render import console
from .reporting.report import diff

_PATH = click.Path(path_type=Path)
_OBJECTIVE = click.Choice(["time", "traffic"])


@click.command("diff", short_help="Compare two programs, or one under two targets, pipelines or options.")
@click.argument("first", type=_PATH)
@click.argument("second", type=_PATH, required=False)
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
@click.option("--html", "html_path", type=_PATH, metavar="PATH", help="Write one page that needs nothing else.")
@click.option("--json", "json_path", type=_PATH, metavar="PATH|-", help="Write the figures; '-' prints them instead.")
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
    html_path: Path | None,
    json_path: Path | None,
) -> None:
    """Compiles the programs in FIRST and SECOND (FIRST again, if it is left out) and shows how they differ: traffic,
    cycles, memory, kernels, and the IR level by level. Options ending in -b are for the second, which else has those
    of the first.
    """
    to_file = json_path is not None and str(json_path) != "-"
    for path in (html_path, json_path if to_file else None):
        if path is not None:
            check_writable(path)

    a = compile(first, target, pipeline, objective, dims=dims, watch=session.watch)
    b = compile(
        second or first,
        target_b or target,
        pipeline_b if pipeline_b is not None else pipeline,
        objective_b or objective,
        dims=dims | dims_b,
        watch=session.watch,
    )
    made = diff(a, b)
    text = json.dumps(made.json(), indent=2)
    if json_path is not None and not to_file:
        click.echo(text)
    elif html_path is None:
        console().print(made.renderable(), crop=False)
    if html_path is not None:
        write_atomically(html_path, made.html())
    if json_path is not None and to_file:
        write_atomically(json_path, text + "\n")
