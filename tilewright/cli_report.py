"""`tilewright report`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from .api import Objective, compile
from .cli_options import Session, program_options
from .files import check_writable, write_atomically
from .render import console
from .reporting.report import report
from .reporting.sections import SECTIONS

_PATH = click.Path(path_type=Path)


@click.command("report", short_help="Say what became of a program, and why, as text or as a page.")
@program_options
@click.option("-p", "--pipeline", help="Passes, as in 'fuse{unfused=true},schedule'. Default: what is left.")
@click.option("--section", "sections", multiple=True, metavar="NAME", help=f"Only this: {', '.join(SECTIONS)}.")
@click.option("--advice", is_flag=True, help="Only what would help, as --section advice.")
@click.option("--html", "html_path", type=_PATH, metavar="PATH", help="Write one page that needs nothing else.")
@click.option("--json", "json_path", type=_PATH, metavar="PATH|-", help="Write the figures; '-' prints them instead.")
@click.pass_obj
def report_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    objective: Objective | None,
    pipeline: str | None,
    sections: tuple[str, ...],
    advice: bool,
    html_path: Path | None,
    json_path: Path | None,
) -> None:
    """Compiles the program in FILE and says what was fused and why not more, what each kernel does and what limits its
    tiles, and how the traffic compares with its bounds.

    The page also shows the source and all levels side by side, and what each pass changed.
    """
    sections = (*sections, "advice") if advice else sections
    to_file = json_path is not None and str(json_path) != "-"
    for path in (html_path, json_path if to_file else None):
        if path is not None:
            check_writable(path)
    made = report(compile(file, target, pipeline, objective, dims=dims, watch=session.watch), sections)
    text = json.dumps(made.json(), indent=2)
    if json_path is not None and not to_file:
        click.echo(text)
    elif html_path is None or sections:
        console().print(made.renderable(), crop=False)
    if html_path is not None:
        write_atomically(html_path, made.html())
    if json_path is not None and to_file:
        write_atomically(json_path, text + "\n")
