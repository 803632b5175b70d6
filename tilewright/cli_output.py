"""Where a command writes what it found: the standard output, and files that are checked before long work begins."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import click

from tilewright.runtime.report import Json

from .files import check_writable, write_atomically
from .render import console
from .reporting.report import Report

PATH = click.Path(path_type=Path)
"""The type of options and arguments that name files."""

json_option = click.option(
    "--json", "json_path", type=PATH, metavar="PATH|-", help="Write the figures as JSON; '-' prints them instead."
)
html_option = click.option(
    "--html", "html_path", type=PATH, metavar="PATH", help="Write one page that needs nothing else."
)
trace_option = click.option(
    "--trace", "trace_path", type=PATH, metavar="PATH", help="Write a timeline of the machine for ui.perfetto.dev."
)


def is_file(path: Path | None) -> bool:
    """Whether an option names a file: it is given, and is not the `-` of the standard output."""
    return path is not None and str(path) != "-"


def check_files(*paths: Path | None) -> None:
    """Raises OutputError if one of these files cannot be written; options that name none are passed over."""
    for path in paths:
        if path is not None and is_file(path):
            check_writable(path)


def emit(figures: Mapping[str, Json], json_path: Path | None, show: Callable[[], None] | None) -> None:
    """Prints the figures as JSON where `-` asks for them, else calls `show`; writes them where a file is named."""
    if json_path is not None and not is_file(json_path):
        click.echo(as_json(figures))
        return
    if show is not None:
        show()
    if json_path is not None:
        write_atomically(json_path, as_json(figures) + "\n")


def show_report(made: Report) -> None:
    """Prints a report; lines wider than the terminal stay whole."""
    console().print(made.renderable(), crop=False)


def as_json(figures: Mapping[str, Json]) -> str:
    """Figures as indented JSON."""
    return json.dumps(figures, indent=2)
