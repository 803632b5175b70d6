"""`tilewright analyze`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .api import Objective, compile
from .cli_options import Session, program_options
from .files import check_writable, write_atomically
from .profile_tables import summary, tables
from .profiling import Profile, trace
from .render import console

_PATH = click.Path(path_type=Path)


@click.command("analyze", short_help="Say without data how long a program takes, and where the time goes.")
@program_options
@click.option("--trace", "trace_path", type=_PATH, metavar="PATH", help="Write a timeline for ui.perfetto.dev.")
@click.option("--json", "json_path", type=_PATH, metavar="PATH|-", help="Write the figures; '-' prints them instead.")
@click.option("--unfused", is_flag=True, help="One kernel per named operation.")
@click.pass_obj
def analyze_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    objective: Objective | None,
    trace_path: Path | None,
    json_path: Path | None,
    unfused: bool,
) -> None:
    """Compiles the program in FILE and simulates it without data: cycles, bytes and utilisation of kernels, engines,
    source operations and their classes, and what waits for what. The time it takes does not depend on trip counts.
    """
    to_file = json_path is not None and str(json_path) != "-"
    for path in (trace_path, json_path if to_file else None):
        if path is not None:
            check_writable(path)
    program = compile(file, target, objective=objective, unfused=unfused, dims=dims, watch=session.watch)
    profile = Profile.of(program)
    text = json.dumps(profile.json(), indent=2)
    if json_path is not None and not to_file:
        click.echo(text)
    else:
        out = console()
        out.print(summary(profile))
        for table in tables(profile):
            out.print()
            out.print(table)
    if json_path is not None and to_file:
        write_atomically(json_path, text + "\n")
    if trace_path is not None:
        write_atomically(trace_path, json.dumps(trace(program)))
