"""`--verbose` and `--log-level`: what the library logs, on the standard error stream of one command."""

from __future__ import annotations

import json
import logging
from collections.abc import Generator
from contextlib import contextmanager

import click

from tilewright.ir.diagnostics import Diagnostic

from .cli_options import Session

_LEVELS = ("debug", "info", "warning", "error")
_LOGGER = "tilewright"


def with_logging_options(command: click.Command) -> click.Command:
    """Gives a command the options `--verbose` and `--log-level`."""
    command.params += [
        click.Option(
            ["-v", "--verbose"],
            count=True,
            help="Say what happens, on the standard error stream; twice: every decision too.",
            expose_value=False,
            is_eager=True,
            callback=_set_verbose,
        ),
        click.Option(
            ["--log-level"],
            type=click.Choice(_LEVELS),
            help="The same by name: -v is info, -vv is debug.",
            expose_value=False,
            is_eager=True,
            callback=_set_level,
        ),
    ]
    return command


def _set_verbose(context: click.Context, option: click.Parameter, value: int) -> None:
    if value:
        logging.getLogger(_LOGGER).setLevel(logging.INFO if value == 1 else logging.DEBUG)


def _set_level(context: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        logging.getLogger(_LOGGER).setLevel(value.upper())


@contextmanager
def logging_shown(session: Session) -> Generator[None]:
    """Shows what is logged in the body; afterwards the process logs as before."""
    logger = logging.getLogger(_LOGGER)
    handler, level = _Handler(session), logger.level
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)


class _Handler(logging.Handler):
    """One line per record: text, or an object like those of `--diagnostics=json`, with the `logger` as well."""

    def __init__(self, session: Session) -> None:
        super().__init__()
        self.session = session

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if self.session.json_diagnostics:
            said = Diagnostic("note", message).json() | {"severity": record.levelname.lower(), "logger": record.name}
            click.echo(json.dumps(said), err=True)
        else:
            click.echo(f"{record.name}: {message}", err=True)
