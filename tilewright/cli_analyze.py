"""`tilewright analyze`."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import click

from .api import Objective, compile
from .cli_diagnostics import show_warnings
from .cli_import import read_program
from .cli_options import Session, constants_option, parse_files, program_options, use_option
from .cli_output import check_files, emit, json_option, trace_option
from .files import write_atomically
from .pictures.all import PICTURES, check_name
from .pictures.picture import form_of
from .profile_tables import summary, tables
from .profiling import Profile
from .render import console


@click.command("analyze", short_help="Say without data how long a program takes, and where the time goes.")
@program_options
@constants_option
@use_option
@trace_option
@json_option
@click.option(
    "--picture",
    "pictures",
    multiple=True,
    metavar="NAME=FILE",
    callback=parse_files,
    help=f"Draw one of {', '.join(PICTURES)}; FILE ends in .svg, .png, or .json for its figures.",
)
@click.option("--unfused", is_flag=True, help="One kernel per named operation.")
@click.pass_obj
def analyze_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    trace_path: Path | None,
    json_path: Path | None,
    pictures: dict[str, Path],
    unfused: bool,
) -> None:
    """Compiles the program in FILE and simulates it without data: cycles, bytes and utilisation of kernels, engines,
    source operations and their classes, and what waits for what. The time it takes does not depend on trip counts.
    """
    for name, path in pictures.items():
        check_name(name)
        form_of(path)
    check_files(trace_path, json_path, *pictures.values())
    module = read_program(file, dims, constants)
    program = compile(module, target, objective=objective, unfused=unfused, use=libraries, watch=session.watch)
    show_warnings(program, session)
    profile = Profile.of(program)
    emit(profile.json(), json_path, partial(show_profile, profile))
    if trace_path is not None:
        write_atomically(trace_path, json.dumps(profile.timeline.json()))
    for name, path in pictures.items():
        PICTURES[name](profile).save(path)


def show_profile(profile: Profile) -> None:
    """Prints the summary and all tables of a profile."""
    out = console()
    out.print(summary(profile))
    for table in tables(profile):
        out.print()
        out.print(table)
