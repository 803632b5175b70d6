"""`tilewright targets` and `tilewright passes`."""

from __future__ import annotations

import sys
from dataclasses import MISSING, fields

import click
from rich.table import Table

from tilewright.dialects.target import Engine, MatrixEngine, Target, VectorEngine, list_targets, load_target
from tilewright.lowering.pipeline import LEVELS, PASSES
from tilewright.lowering.plugins import plugin_passes

from .render import bytes_text, console, table


@click.command("targets", short_help="List the machines a program can be compiled for, or show one.")
@click.argument("target", required=False)
def targets_command(target: str | None) -> None:
    """Lists the bundled targets; of TARGET (a name or TOML file, with overrides) shows memories, moves and engines."""
    if target is not None:
        show_target(load_target(target))
        return
    listing = table("target", "clock", "cores", "memories", "matrix types", "description")
    for name in list_targets():
        found = load_target(name)
        memories = [f"{m} {bytes_text(memory.bytes)}" for m, memory in found.memories.items()]
        types = [", ".join(e.types) for e in found.engines.values() if isinstance(e, MatrixEngine)]
        clock, cores = f"{found.clock_hz / 1e9:g} GHz", f"up to {found.max_cores}"
        listing.add_row(name, clock, cores, ", ".join(memories), "".join(types), found.description)
    console().print(listing)


def show_target(target: Target) -> None:
    """Memories, moves and engines of a target."""
    out = console()
    out.print(f"{target.name}: {target.description}")
    out.print(f"{target.clock_hz / 1e9:g} GHz, {target.cores} of {target.max_cores} cores\n")
    memories = table("memory", "bytes", "alignment", "layout", "granule", right=["bytes", "alignment", "granule"])
    for name, memory in target.memories.items():
        layout = "fractal" if memory.layout == "fractal" else "rows"
        granule = bytes_text(memory.granule) if memory.offchip else ""
        memories.add_row(name, bytes_text(memory.bytes), bytes_text(memory.align), layout, granule)
    out.print(memories)
    out.print()
    moves = table("move", "engine", "bytes per cycle", "can", right=["bytes per cycle"])
    for move in target.moves:
        can = [what for what in ("cast", "transpose", "convert") if getattr(move, what)]
        route = f"{move.source} -> {move.destination}"
        moves.add_row(route, move.engine, f"{float(target.move_rate(move)):g}", ", ".join(can))
    out.print(moves)
    out.print()
    engines = table("engine", "kind", "what it does")
    for name, engine in target.engines.items():
        engines.add_row(name, engine.kind, _work(engine))
    out.print(engines)


def _work(engine: Engine) -> str:
    match engine:
        case MatrixEngine():
            rates = [
                f"{kind} {'x'.join(map(str, row.block))} x {row.rate:g}/cycle" for kind, row in engine.types.items()
            ]
            return f"{engine.lhs} by {engine.rhs} into {engine.result}: {', '.join(rates)}"
        case VectorEngine():
            return f"on {', '.join(engine.memories)}: {engine.bytes_per_cycle:g} bytes per cycle"
        case _:
            return "moves, above"


@click.command("passes", short_help="List the passes of the pipeline and their options.")
def passes_command() -> None:
    """Lists the passes in the order of the pipeline, and those of other installed packages.

    A pipeline may also name xDSL's own passes, such as 'cse'.
    """
    ends = {last: level for level, last in LEVELS.items()}
    others = {name: load() for name, load in plugin_passes().items()}
    listing: Table = table("pass", "ends level", "options", "what it does")
    for name, pass_class in {**PASSES, **others}.items():
        options = [
            f"{field.name}={str(field.default).lower() if isinstance(field.default, bool) else field.default}"
            for field in fields(pass_class)
            if field.default is not MISSING
        ]
        summary = (sys.modules[pass_class.__module__].__doc__ or "").split("\n\n")[0].replace("\n", " ")
        summary = summary.partition(f"`{name}` pass: ")[2] or summary.partition(f"`{name}`: ")[2] or summary
        listing.add_row(name, ends.get(name, ""), "\n".join(options), summary)
    console().print(listing)
