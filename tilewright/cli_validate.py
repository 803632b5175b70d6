"""`tilewright validate`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from rich.table import Table

from tilewright.ir.diagnostics import Diagnostic
from tilewright.ir.source import print_module
from tilewright.runtime.report import Json

from .api import Objective, compile
from .arrays import gather_inputs, read_npy
from .cli_diagnostics import show_warnings
from .cli_import import read_program
from .cli_options import IntRange, Session, constants_option, parse_files, program_options, tolerance_option, use_option
from .cli_output import PATH, check_files, emit, json_option
from .errors import CheckError
from .files import write_atomically
from .kernels import kernel_errors
from .render import console, table
from .tolerance import Deviation
from .validation import Compiler, Validation, reduced, validate

_FIGURES = ("absolute", "relative", "tolerance")


@click.command(
    "validate", short_help="Run every stage of a program on the same inputs and blame the pass that is wrong."
)
@program_options
@constants_option
@use_option
@click.option("-p", "--pipeline", help="Passes, as in 'fuse{unfused=true},schedule'. Default: what is left.")
@click.option("--input", "inputs", multiple=True, metavar="NAME=FILE", callback=parse_files, help="An input as .npy.")
@click.option("--seed", type=IntRange(min=0), default=0, show_default=True, help="Of the values of other inputs.")
@tolerance_option
@click.option(
    "--reduce",
    "small",
    type=PATH,
    metavar="PATH",
    help="If a pass is to blame, write a small program here for which it still is.",
)
@json_option
@click.pass_obj
def validate_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    pipeline: str | None,
    inputs: dict[str, Path],
    seed: int,
    tolerance: float | None,
    small: Path | None,
    json_path: Path | None,
) -> None:
    """Runs the program in FILE before and after every pass on the same inputs, and every kernel against its logic.

    Each result is compared with float64. Exits with 4 if one is beyond its tolerance, and names the first pass whose
    result is.
    """
    check_files(small, json_path)
    arrays = {name: read_npy(path) for name, path in inputs.items()}
    module = read_program(file, dims, constants)
    program = compile(module, target, pipeline, objective, use=libraries, check=False, watch=session.watch)
    show_warnings(program, session)
    validation = validate(program, inputs=arrays, seed=seed, tolerance=tolerance)
    kernels = kernel_errors(program, gather_inputs(program.source, arrays, seed), tolerance) if validation else []
    emit(_figures(validation, kernels), json_path, partial(_show, validation, kernels))
    if not validation:
        # What follows the pass that is to blame plays no part.
        stop = validation.blame if pipeline is None and validation.blame != "input" else None
        passes = () if validation.blame == "input" else pipeline
        again = partial(compile, target=target, pipeline=passes, objective=objective, to=stop)
        raise CheckError([_blame(validation, _written(validation, seed, tolerance, small, again, file))])
    wrong = [Diagnostic("error", f"kernel '{k.name}' is {k.relative:.2e} from its logic") for k in kernels if k]
    if wrong:
        raise CheckError(wrong)


def _blame(validation: Validation, hint: str) -> Diagnostic:
    what = "no pass is to blame: " if validation.blame == "input" else f"pass '{validation.blame}' is to blame: "
    return Diagnostic("error", f"{what}{validation.failure}", suggestion=hint)


def _written(
    validation: Validation, seed: int, tolerance: float | None, path: Path | None, again: Compiler, file: Path
) -> str:
    """What to do next; writes the reduced program where one is asked for."""
    if path is None:
        return "--reduce small.mlir writes a smaller program that still fails"
    found = reduced(validation, seed, tolerance, again)
    if found is None:
        return f"random inputs of seed {seed} do not show it: nothing was written to '{path}'"
    limit = "" if tolerance is None else f" --tolerance {tolerance:g}"
    head = (
        f"// Reduced from {file}: {validation.blame} is to blame.\n// tilewright validate {path} --seed {seed}{limit}\n"
    )
    write_atomically(path, head + print_module(found))
    return f"'{path}' still fails"


def _show(validation: Validation, kernels: Sequence[Deviation]) -> None:
    out = console()
    passes: Table = table("pass", "level", "output", *_FIGURES, "", right=_FIGURES)
    for step in validation.steps:
        worst = step.worst
        if worst is None:
            passes.add_row(step.name, step.level, "", "", "", "", step.message)
        else:
            figures = (f"{n:.2e}" for n in (worst.absolute, worst.relative, worst.tolerance))
            passes.add_row(step.name, step.level, worst.name, *figures, "beyond" if step.fails else "")
    out.print(passes)
    if kernels:
        out.print()
        listing: Table = table("kernel", *_FIGURES, "", right=_FIGURES)
        for kernel in kernels:
            numbers = (f"{n:.2e}" for n in (kernel.absolute, kernel.relative, kernel.tolerance))
            listing.add_row(kernel.name, *numbers, "beyond" if kernel else "")
        out.print(listing)


def _figures(validation: Validation, kernels: Sequence[Deviation]) -> dict[str, Json]:
    """Keys: blame, passes (name, level, outputs or message), kernels. JSON has no infinity: the largest number."""

    def numbers(absolute: float, relative: float, tolerance: float) -> dict[str, Json]:
        largest = sys.float_info.max
        return {"absolute": min(absolute, largest), "relative": min(relative, largest), "tolerance": tolerance}

    passes: list[Json] = []
    for step in validation.steps:
        entry: dict[str, Json] = {"name": step.name, "level": step.level}
        if step.outputs is None:
            entry["message"] = step.message
        else:
            entry["outputs"] = [{"name": o.name, **numbers(o.absolute, o.relative, o.tolerance)} for o in step.outputs]
        passes.append(entry)
    rows: list[Json] = [{"name": k.name, **numbers(k.absolute, k.relative, k.tolerance)} for k in kernels]
    return {"blame": validation.blame, "passes": passes, "kernels": rows}
