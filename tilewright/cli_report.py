"""`tilewright report`."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import click

from .api import Objective, compile
from .cli_diagnostics import show_warnings
from .cli_import import read_program
from .cli_options import Session, constants_option, program_options, use_option
from .cli_output import check_files, emit, html_option, json_option, show_report
from .files import write_atomically
from .reporting.report import advice_of, report
from .reporting.sections import SECTIONS


@click.command("report", short_help="Say what became of a program, and why, as text or as a page.")
@program_options
@constants_option
@use_option
@click.option("-p", "--pipeline", help="Passes, as in 'fuse{unfused=true},schedule'. Default: what is left.")
@click.option("--section", "sections", multiple=True, metavar="NAME", help=f"Only this: {', '.join(SECTIONS)}.")
@click.option("--unfused", is_flag=True, help="One kernel per named operation.")
@click.option("--advice", is_flag=True, help="Only what would help, as --section advice.")
@html_option
@json_option
@click.pass_obj
def report_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    pipeline: str | None,
    sections: tuple[str, ...],
    unfused: bool,
    advice: bool,
    html_path: Path | None,
    json_path: Path | None,
) -> None:
    """Compiles the program in FILE and says what was fused and why not more, what each kernel does and what limits its
    tiles, and how the traffic compares with its bounds.

    The page also shows the source and all levels side by side, and what each pass changed.
    """
    sections = (*sections, "advice") if advice else sections
    check_files(html_path, json_path)
    module = read_program(file, dims, constants)
    made = advice_of(module) if sections == ("advice",) else None
    if made is None:
        program = compile(module, target, pipeline, objective, unfused, use=libraries, watch=session.watch)
        made = report(show_warnings(program, session), sections)
    emit(made.json(), json_path, partial(show_report, made) if html_path is None or sections else None)
    if html_path is not None:
        write_atomically(html_path, made.html())
