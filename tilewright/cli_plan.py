"""`tilewright plan`."""

from __future__ import annotations

from pathlib import Path

import click

from tilewright.dialects.target_model import parse_size
from tilewright.ir.diagnostics import Diagnostic, SourceError
from tilewright.ir.source import read_text
from tilewright.lowering.plan_search import NODES, place

from .files import check_writable, write_atomically
from .plan_csv import check_offsets, read_problem, solution


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


@click.command("plan", short_help="Place buffers with lifetimes, given as CSV, in one memory.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--capacity", metavar="BYTES", callback=parse_capacity, help="Bytes there are: 1048576 or 1MiB.")
@click.option("--nodes", type=click.IntRange(min=0), default=NODES, show_default=True, help="Partial plans looked at.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Of the orders that are tried.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="File for the plan. Default: standard output.")
def plan_command(file: Path, capacity: int | None, nodes: int, seed: int, output: Path | None) -> None:
    """Gives each buffer of FILE an offset such that no two that are needed at once share a byte.

    FILE is CSV with the columns id, lower, upper, size and perhaps alignment; a buffer is needed from lower to before
    upper. Prints CSV with the columns id, offset; the peak and the most bytes alive at once go to the standard error
    stream. Greedy orders come first, then a search within --nodes (some 10,000 a second): for a plan within the
    capacity if one is given, else for the lowest peak. The same arguments give the same plan.
    """
    if output is not None:
        check_writable(output)
    problem = read_problem(read_text(file), str(file))
    found = place(problem.intervals, capacity, nodes, seed, lower=capacity is None)
    check_offsets(problem, found.offsets)
    summary = f"peak {found.peak} bytes, at most {found.lower_bound} are alive at once"
    if capacity is not None and found.peak > capacity:
        refuted = max(found.lower_bound - 1, found.proved)
        none = "no plan fits" if refuted >= capacity else "no plan was found that fits"
        raise SourceError([Diagnostic("error", f"{none} into {capacity} bytes: {summary}", str(file))])
    if output is not None:
        write_atomically(output, solution(problem, found.offsets))
    else:
        click.echo(solution(problem, found.offsets), nl=False)
    click.echo(summary, err=True)
