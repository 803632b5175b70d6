"""`tilewright plan`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tilewright.dialects.target_model import parse_size
from tilewright.ir.diagnostics import Diagnostic, SourceError
from tilewright.ir.source import read_text
from tilewright.lowering.plan_report import MemoryPlan, Placed, plans_of
from tilewright.lowering.plan_search import NODES, place

from .api import Objective, compile
from .cli_diagnostics import show_warnings
from .cli_import import read_program
from .cli_options import IntRange, Session, constants_option, program_options, use_option
from .cli_output import PATH, check_files, is_file
from .files import write_atomically
from .module import Module
from .pictures.memory import map_of
from .plan_csv import check_offsets, read_problem, solution
from .render import console
from .reporting.memory import largest_table, plans_table


def parse_capacity(context: click.Context, option: click.Parameter, value: str | None) -> int | None:
    """`1048576` or `1MiB` → bytes."""
    if value is None:
        return None
    try:
        found = parse_size(value)
    except ValueError as error:
        raise click.BadParameter(f"expected {error}, got '{value}'", context, option) from None
    assert isinstance(found, int)
    return found


@click.command("plan", short_help="Place buffers, of a program or given as CSV, and show where they lie.")
@program_options
@constants_option
@use_option
@click.option(
    "--capacity", metavar="BYTES", callback=parse_capacity, help="Bytes there are: 1048576 or 1MiB. CSV only."
)
@click.option("--nodes", type=IntRange(min=0), default=NODES, show_default=True, help="Partial plans looked at.")
@click.option("--seed", type=IntRange(min=0), default=0, show_default=True, help="Of the orders that are tried.")
@click.option("-o", "--output", type=PATH, help="File for the plan of a CSV. Default: standard output.")
@click.option("--svg", "svg_path", type=PATH, metavar="PATH", help="Write a picture: time across, offsets upwards.")
@click.pass_obj
def plan_command(
    session: Session,
    file: Path,
    target: str | None,
    dims: dict[str, int],
    constants: dict[str, Path],
    objective: Objective | None,
    libraries: tuple[Path, ...],
    capacity: int | None,
    nodes: int,
    seed: int,
    output: Path | None,
    svg_path: Path | None,
) -> None:
    """Gives each buffer an offset such that no two that are needed at once share a byte.

    A program in FILE is compiled until its memories are planned, and the plan of each is summed up. If FILE ends in
    .csv it is a table with the columns id, lower, upper, size and perhaps alignment and offset: a buffer is needed
    from lower to before upper, and stays at its offset if that cell is not empty. Prints CSV with the columns id,
    offset then; the peak and the most bytes alive at once go to the standard error stream. Greedy orders come
    first, then a search within --nodes (some 10,000 a second, with numba twenty times as many): for a plan within
    the capacity if one is given, else for the lowest peak. The same arguments give the same plan.
    """
    check_files(output, svg_path)
    if file.suffix.lower() != ".csv":
        if capacity is not None or output is not None:
            name = "--capacity" if capacity is not None else "--output"
            raise click.UsageError(f"{name} is for CSV; the memories of a program are those of its target")
        plans = _of_program(session, read_program(file, dims, constants), target, objective, libraries)
        _write_svg(svg_path, plans)
        return
    if target is not None or dims or constants or objective is not None or libraries:
        raise click.UsageError("--target, --dim, --constant, --objective and --use are for programs, not for CSV")
    problem = read_problem(read_text(file), str(file))
    found = place(problem.intervals, capacity, nodes, seed, lower=capacity is None)
    check_offsets(problem, found.offsets)
    summary = f"peak {found.peak} bytes, at most {found.lower_bound} are alive at once"
    if capacity is not None and found.peak > capacity:
        refuted = max(found.lower_bound - 1, found.proved)
        none = "no plan fits" if refuted >= capacity else "no plan was found that fits"
        raise SourceError([Diagnostic("error", f"{none} into {capacity} bytes: {summary}", str(file))])
    if output is not None and is_file(output):
        write_atomically(output, solution(problem, found.offsets))
    else:
        click.echo(solution(problem, found.offsets), nl=False)
    placed = zip(problem.names, problem.intervals, found.offsets, strict=True)
    plan = MemoryPlan("", file.name, tuple(Placed(name, one, at) for name, one, at in placed), capacity)
    _write_svg(svg_path, [plan])
    click.echo(
        f"{summary}, fragmentation {plan.fragmentation:.1%}; first fit {plan.first_fit}, one each {plan.separate}",
        err=True,
    )


def _of_program(
    session: Session, module: Module, target: str | None, objective: Objective | None, libraries: Sequence[Path]
) -> list[MemoryPlan]:
    program = compile(module, target, objective=objective, to="plan", use=libraries, watch=session.watch)
    show_warnings(program, session)
    plans = plans_of(program.snapshot(after="plan").module)
    out = console()
    out.print(plans_table(plans))
    out.print()
    out.print(largest_table(plans))
    return plans


def _write_svg(path: Path | None, plans: Sequence[MemoryPlan]) -> None:
    if path is not None:
        write_atomically(path, map_of(plans).svg())
