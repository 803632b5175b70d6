"""The command line. Exit codes: 0 ok, 1 bad input, 2 usage, 3 internal error, 4 ran but a check failed."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence

import click

from tilewright.dialects.errors import UserError
from tilewright.ir.diagnostics import Diagnostic, SourceError, from_user_errors

from . import __version__
from .cli_analyze import analyze_command
from .cli_compile import compile_command
from .cli_diagnostics import show_diagnostics, wants_json, with_diagnostic_options
from .cli_diff import diff_command
from .cli_import import import_command
from .cli_info import passes_command, targets_command
from .cli_logging import logging_shown, with_logging_options
from .cli_opt import opt_command
from .cli_options import Session, with_cache_option
from .cli_plan import plan_command
from .cli_report import report_command
from .cli_run import run_command
from .cli_tune import tune_command
from .cli_validate import validate_command
from .entry import INTERRUPTED
from .errors import CheckError, plain_error
from .reproducer import write_reproducer

OK, BAD_INPUT, USAGE, INTERNAL, CHECK_FAILED = range(5)


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="tilewright")
def cli() -> None:
    """Compiles tensor programs down to the instructions of an accelerator, and executes them."""


SEARCHING = (
    compile_command,
    run_command,
    analyze_command,
    validate_command,
    report_command,
    diff_command,
    opt_command,
    tune_command,
)
for command in SEARCHING:
    with_cache_option(command)
for command in (
    compile_command,
    import_command,
    run_command,
    analyze_command,
    validate_command,
    report_command,
    diff_command,
    opt_command,
    plan_command,
    tune_command,
    targets_command,
    passes_command,
):
    cli.add_command(with_logging_options(with_diagnostic_options(command)))


def invoke(args: Sequence[str]) -> int:
    """Runs one command line and returns its exit code. Messages go to the standard error stream."""
    session = Session(json_diagnostics=wants_json(args))
    try:
        # Not `cli.main`: it takes a reader that has gone for a failure.
        with logging_shown(session), cli.make_context("tilewright", list(args), obj=session) as context:
            cli.invoke(context)
        sys.stdout.flush()
        return OK
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        if session.json_diagnostics:
            show_diagnostics([Diagnostic("error", error.format_message())], session)
        else:
            error.show()
        return error.exit_code
    except CheckError as error:
        return _fail(error, CHECK_FAILED, session)
    except SourceError as error:
        return _fail(error, BAD_INPUT, session)
    except UserError as error:
        return _fail(SourceError(from_user_errors(error, {})), BAD_INPUT, session)
    except MemoryError:
        return _fail(plain_error("the arrays of this program do not fit into memory"), BAD_INPUT, session)
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has gone (`tilewright compile … | head`).
        _drop_output()
        return OK
    except OSError as error:
        # Files are read and written with messages of their own: what is left are the standard streams.
        _drop_output()
        return _fail(plain_error(f"cannot write the standard output: {_reason(error)}"), BAD_INPUT, session)
    except Exception as error:
        path = write_reproducer(error, session, args)
        where = f"; a reproducer is in '{path}'" if path else ""
        lines = f"internal error: {type(error).__name__}: {error}".splitlines()[0]
        return _fail(plain_error(f"{lines}{where}"), INTERNAL, session)


def _drop_output() -> None:
    """Sends what is still to be written, at exit too, nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()


def _fail(error: SourceError, code: int, session: Session) -> int:
    show_diagnostics(error.diagnostics, session)
    return code


def _prepare_streams() -> None:
    """Messages to a closed stream go nowhere, output to one is an error; letters that an old encoding lacks become
    question marks."""
    for name, flags in (("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, flags), "w", encoding="utf-8"))
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def main() -> None:
    """The `tilewright` command, once it is imported."""
    _prepare_streams()
    sys.exit(invoke(sys.argv[1:]))
