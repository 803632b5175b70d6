"""`tilewright targets` and `tilewright passes`."""

from __future__ import annotations

import inspect
from dataclasses import MISSING, fields

import click
from rich.table import Table

from tilewright.dialects.target import MatrixEngine, list_targets, load_target
from tilewright.lowering.pipeline import LEVELS, PASSES

from .render import bytes_text, console, table


@click.command("targets", short_help="List the machines a program can be compiled for.")
def targets_command() -> None:
    """Lists the bundled targets. `--target` also takes a TOML file, and overrides as in 'unified{cores=2}'."""
    listing = table("target", "clock", "cores", "memories", "engines", "description")
    for name in list_targets():
        target = load_target(name)
        memories = [f"{m} {bytes_text(memory.bytes)}" for m, memory in target.memories.items()]
        matrix = [", ".join(e.types) for e in target.engines.values() if isinstance(e, MatrixEngine)]
        listing.add_row(
            name,
            f"{target.clock_hz / 1e9:g} GHz",
            f"{target.cores} (up to {target.max_cores})",
            "\n".join(memories),
            "\n".join(target.engines) + (f"\n(matrix types {matrix[0]})" if matrix else ""),
            target.description,
        )
    console().print(listing)


@click.command("passes", short_help="List the passes of the pipeline and their options.")
def passes_command() -> None:
    """Lists the passes in the order of the pipeline."""
    ends = {last: level for level, last in LEVELS.items()}
    listing: Table = table("pass", "ends level", "options", "what it does")
    for name, pass_class in PASSES.items():
        options = [
            f"{field.name}={str(field.default).lower() if isinstance(field.default, bool) else field.default}"
            for field in fields(pass_class)
            if field.default is not MISSING
        ]
        summary = (inspect.getdoc(pass_class) or "").split("\n\n")[0].replace("\n", " ")
        listing.add_row(name, ends.get(name, ""), "\n".join(options), summary)
    console().print(listing)
