"""`tilewright opt`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects.registry import make_context
from tilewright.ir.diagnostics import SourceError
from tilewright.ir.source import file_name, read_text
from tilewright.lowering.pipeline import parse_pipeline
from tilewright.lowering.pipeline_text import PIPELINE_TEXT
from tilewright.lowering.plugins import register_dialects

from .cli_import import is_onnx
from .cli_options import Session, program_options
from .cli_output import PATH, as_json, check_files, is_file
from .errors import diagnosed, plain_error
from .files import write_atomically
from .ir_printing import IrPrinter, When
from .opt import SEPARATOR, Settings, optimize, pieces
from .program import Snapshot
from .reproducer import reproducer
from .timing import Timer, timing_table


@click.command("opt", short_help="Run passes over IR, as mlir-opt does.")
@partial(program_options, default_target="the one recorded in FILE; none is added")
@click.option("-p", "--pipeline", default="", help="Passes, as in 'canonicalize,fuse{unfused=true}'. Default: none.")
@click.option("-o", "--output", type=PATH, default="-", help="File for the IR. Default: standard output.")
@click.option("--split-input-file", is_flag=True, help="Treat the parts between '// -----' lines as files.")
@click.option("--verify-diagnostics", is_flag=True, help="Compare diagnostics with expected-error@+1 {{…}} comments.")
@click.option("--allow-unregistered-dialect", is_flag=True, help="Accept operations of unknown dialects.")
@click.option("--generic", is_flag=True, help="Print MLIR's generic form.")
@click.option("--locations", is_flag=True, help="Print the location of every operation.")
@click.option("--print-ir-before-all", is_flag=True, help="Dump the IR before every pass.")
@click.option("--print-ir-after-all", is_flag=True, help="Dump the IR after every pass.")
@click.option("--print-ir-before", multiple=True, metavar="PASS", help="Dump the IR before a pass.")
@click.option("--print-ir-after", multiple=True, metavar="PASS", help="Dump the IR after a pass.")
@click.option("--print-ir-after-change", is_flag=True, help="Dump the IR after passes that change it.")
@click.option("--print-ir-after-failure", is_flag=True, help="Dump the IR as a failing pass leaves it.")
@click.option("--print-ir-dir", type=PATH, metavar="DIR", help="Folder for numbered dumps. Default: standard error.")
@click.option("--timing", is_flag=True, help="Show where the time went, on the standard error stream.")
@click.option("--timing-json", type=PATH, metavar="PATH", help="Write the tree of times as JSON.")
@click.option("--crash-reproducer", type=PATH, metavar="PATH", help="On any failure, write IR and command here.")
@click.pass_obj
def opt_command(session: Session, file: Path, pipeline: str, output: Path, **options: Any) -> None:
    """Runs a pipeline over the IR in FILE ('-': standard input) and prints the result.

    Nothing is added to the program but what --target and --objective say. Passes and dialects of installed packages
    can be used too, found by xDSL's entry point 'xdsl.universe'; xDSL's own are among them.
    """
    if is_onnx(file):
        raise plain_error(
            f"'{file}' is an ONNX model, and passes run over IR", f"tilewright import {file} -o FILE makes it"
        )
    check_files(output, options["timing_json"], options["crash_reproducer"])
    with diagnosed({PIPELINE_TEXT: pipeline}):
        session.passes = parse_pipeline(pipeline)
    moments = ("before_all", "after_all", "before", "after")
    when = When(
        **{moment: options[f"print_ir_{moment}"] for moment in moments},
        change=options["print_ir_after_change"],
        failure=options["print_ir_after_failure"],
    )
    when.check(session.passes)
    session.command = ("opt", *(["--allow-unregistered-dialect"] if options["allow_unregistered_dialect"] else []))
    settings = Settings(
        file_name(file),
        session.passes,
        partial(_context, options["allow_unregistered_dialect"]),
        options["target"],
        options["objective"],
        options["dims"],
        options["generic"],
        options["locations"],
        options["verify_diagnostics"],
    )
    _run(session, read_text(file), settings, when, output, options)


def _context(allow_unregistered: bool) -> Context:
    context = make_context(allow_unregistered)
    register_dialects(context)
    return context


def _run(session: Session, whole: str, settings: Settings, when: When, output: Path, options: dict[str, Any]) -> None:
    timer = Timer()
    parts = pieces(whole) if options["split_input_file"] else [whole]
    texts: list[str] = []
    failure: SourceError | None = None
    for number, piece in enumerate(parts):
        directory = options["print_ir_dir"]
        if directory is not None and len(parts) > 1:
            directory = directory / f"{number:02}"
        printer = IrPrinter(when, settings.passes, directory, settings.generic, session.command[1:])
        session.snapshots = []
        done = optimize(piece, whole, settings, printer, timer, partial(_remember, session))
        if done.text:
            texts.append(done.text)
        if done.problems:
            failure = SourceError([*(failure.diagnostics if failure else ()), *done.problems])
            if options["crash_reproducer"] is not None and session.snapshots:
                write_atomically(options["crash_reproducer"], reproducer(options["crash_reproducer"], session, failure))
    _show_times(timer, options)
    if failure is not None and not options["split_input_file"]:
        raise failure
    _write(texts, output)
    if failure is not None:
        raise failure


def _remember(session: Session, module: ModuleOp) -> None:
    name = session.passes[len(session.snapshots) - 1].name if session.snapshots else "input"
    session.snapshots.append(Snapshot(name, module))


def _write(texts: Sequence[str], output: Path) -> None:
    text = SEPARATOR.join(texts)
    if is_file(output):
        write_atomically(output, text)
    else:
        click.echo(text, nl=False)


def _show_times(timer: Timer, options: dict[str, Any]) -> None:
    root = timer.finish()
    if options["timing"]:
        Console(stderr=True, highlight=False).print(timing_table(root))
    if options["timing_json"] is not None:
        write_atomically(options["timing_json"], as_json(root.json()) + "\n")
