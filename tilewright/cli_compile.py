"""`tilewright compile`."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.ir.source import print_module

from .api import Objective, compile
from .cli_diagnostics import show_warnings
from .cli_import import read_program, warn_about_weights, write_weights
from .cli_options import Session, constants_option, program_options, reference_option, use_option
from .cli_output import PATH, check_files, is_file
from .extract import extract as extracted
from .files import make_directory, write_atomically


@click.command("compile", short_help="Lower a program and print its IR.")
@program_options
@constants_option
@use_option
@click.option("--to", metavar="LEVEL", help="Stop at a level (graph, tile, hardware) or after a pass.")
@click.option("-p", "--pipeline", help="Passes, as in 'fuse{unfused=true},schedule'. Default: what is left.")
@click.option("-o", "--output", type=PATH, help="File for the IR. Default: standard output.")
@click.option(
    "--dump-dir",
    type=PATH,
    help="Folder for the IR after every pass; each file starts with the command that goes on from it.",
)
@click.option(
    "--schedule",
    type=click.Choice(["best", "simplest"]),
    default="best",
    show_default=True,
    help="simplest: the fewest buffers and loops, a first version to go on from by hand.",
)
@click.option(
    "--extract", metavar="KERNEL", help="Only this kernel, beside its logic: a program to go on from by hand."
)
@reference_option
@click.option("--generic", is_flag=True, help="Print MLIR's generic form.")
@click.pass_obj
def compile_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    to: str | None,
    pipeline: str | None,
    output: Path | None,
    dump_dir: Path | None,
    schedule: str,
    extract: str | None,
    reference: tuple[str, ...],
    generic: bool,
) -> None:
    """Lowers the program in FILE (at any level, in either text form) and prints the IR."""
    check_files(output)
    if dump_dir is not None:
        make_directory(dump_dir)
    session.dump_dir, session.generic = dump_dir, generic
    if extract is not None and (to or pipeline):
        raise click.UsageError("--extract goes to the end of the tile pass: leave out --to and --pipeline")
    module = read_program(file, dims, constants, output if is_file(output) else None)
    if dump_dir is not None:
        write_weights(module, dump_dir)
    program = compile(
        module,
        target,
        pipeline,
        objective,
        simplest=schedule == "simplest",
        to="tile" if extract and dump_dir is None else to,
        use=libraries,
        reference=reference,
        watch=session.watch,
    )
    show_warnings(program, session)
    text = print_module(extracted(program, extract) if extract is not None else program.module, generic)
    if output is not None and is_file(output):
        write_weights(module, output.parent)
        write_atomically(output, text)
    elif output is not None or dump_dir is None:
        warn_about_weights(module)
        click.echo(text, nl=False)
