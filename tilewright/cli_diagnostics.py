"""Diagnostics on the standard error stream: as text, at most a screen of it, or as one JSON object per line."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence

import click
from rich.console import Console
from rich.text import Text

from tilewright.ir.diagnostics import Diagnostic, render

from .cli_options import Session
from .program import Program

_SCREEN = (80, 40)
"""Columns and lines where the output is not a terminal."""


def with_diagnostic_options(command: click.Command) -> click.Command:
    """Gives a command the options `--diagnostics` and `--all-errors`."""
    command.params += [
        click.Option(
            ["--diagnostics"],
            type=click.Choice(["text", "json"]),
            default="text",
            help="How errors are written: text, or one JSON object per line.",
            expose_value=False,
            is_eager=True,
        ),
        click.Option(
            ["--all-errors"],
            is_flag=True,
            help="Show more errors than fit on one screen.",
            expose_value=False,
            is_eager=True,
            callback=_set_all,
        ),
    ]
    return command


def wants_json(args: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, as far as can be told of one that may be wrong in any other way."""
    return any(
        arg == "--diagnostics=json" or (arg == "--diagnostics" and following == "json")
        for arg, following in zip(args, [*args[1:], ""], strict=True)
    )


def _set_all(context: click.Context, option: click.Parameter, value: bool) -> None:
    context.find_root().obj.all_errors = value


def show_diagnostics(diagnostics: Sequence[Diagnostic], session: Session) -> None:
    """Writes them as the user wants them. Colours only on a terminal, and never with NO_COLOR."""
    if session.json_diagnostics:
        for diagnostic in diagnostics:
            click.echo(json.dumps(diagnostic.json()), err=True)
        return
    shown = diagnostics if session.all_errors else first_screen(diagnostics, shutil.get_terminal_size(_SCREEN).lines)
    lines = render(shown)
    if len(shown) < len(diagnostics):
        left = len(diagnostics) - len(shown)
        lines += f"\n… and {left} more error{'' if left == 1 else 's'}; --all-errors shows all"
    text = Text(lines)
    text.highlight_regex(r"(?m)^(.*: )?(error|warning):.*$", "bold")
    text.highlight_regex(r"(?m)\berror:", "bold red")
    text.highlight_regex(r"(?m)\bwarning:", "bold magenta")
    text.highlight_regex(r"(?m)^[ \t]*\^+$", "bold green")
    text.highlight_regex(r"(?m)\b(help|note):", "bold cyan")
    Console(stderr=True, highlight=False, soft_wrap=True).print(text)


def show_warnings(program: Program, session: Session) -> Program:
    """Writes what the passes have to say that is no error; gives the program back."""
    if program.warnings:
        show_diagnostics(program.warnings, session)
    return program


def first_screen(diagnostics: Sequence[Diagnostic], lines: int) -> Sequence[Diagnostic]:
    """As many as fit, at least one. The last line is kept for how many there are beyond, one for the prompt."""
    left = lines - 2
    for number, diagnostic in enumerate(diagnostics):
        left -= render([diagnostic]).count("\n") + 1
        if left < 0:
            return diagnostics[: max(1, number)]
    return diagnostics
