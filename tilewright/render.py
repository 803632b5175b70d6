"""Tables and numbers for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import cast

from rich import box
from rich.console import Console
from rich.table import Table

from tilewright.runtime.report import Json

from .result import Run

PLAIN_WIDTH = 120
"""Columns where the output is not a terminal."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would exit with 1 here; the command line decides."""
        raise BrokenPipeError


def console() -> Console:
    """The standard output: colours on a terminal only and never with NO_COLOR."""
    width = None if sys.stdout.isatty() else PLAIN_WIDTH
    return _Console(width=width, highlight=False, markup=False, emoji=False)


def table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without lines; columns named in `right` are aligned to the right."""
    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, safe_box=True)
    for column in columns:
        made.add_column(column, justify="right" if column in right else "left", overflow="fold")
    return made


def bytes_text(count: int) -> str:
    """`65536` → `64 KiB`; three digits at most behind the point are cut to what is needed."""
    size = float(count)
    for unit in ("B", "KiB", "MiB"):
        if size < 1024:
            return f"{size:.4g} {unit}"
        size /= 1024
    return f"{size:.4g} GiB"


def count_text(count: int) -> str:
    """`21500000` → `21.5 M`: four digits at most and a decimal unit."""
    size = float(count)
    for unit in ("", " k", " M", " G"):
        if size < 1000:
            return f"{size:.4g}{unit}"
        size /= 1000
    return f"{size:.4g} T"


def show_run(run: Run, figures: dict[str, Json], unfused: bool = False) -> None:
    """Shapes and errors, traffic, cycles and kernels of a run; `unfused` says that it is one of unfused kernels."""
    out = console()
    out.print(_outputs(figures))
    if run.result is None:
        return
    out.print()
    out.print(traffic_table(figures, unfused))
    out.print()
    out.print(cycles_text(figures, unfused))
    out.print()
    out.print(kernel_table(figures))


def cycles_text(figures: dict[str, Json], unfused: bool = False) -> str:
    """Cycles, also against unfused kernels, and how busy each engine is; `unfused`: the kernels are unfused."""
    cycles = cast(int, figures["cycles"])
    text = f"{cycles} cycles, {cast(float, figures['time_us']):.1f} µs on {figures['target']}"
    baseline = figures["unfused"]
    if isinstance(baseline, dict) and cycles and not unfused:
        other = cast(int, baseline["cycles"])
        text += f"; unfused {other} cycles ({other / cycles:.2f}× those of the fused kernels)"
    engines = cast("dict[str, dict[str, float]]", figures["engines"])
    busy = ", ".join(f"{name} {figure['utilization']:.0%}" for name, figure in engines.items())
    return f"{text}\nbusy: {busy}"


def _outputs(figures: dict[str, Json]) -> Table:
    outputs = table("output", "shape", "type", "error against float64", right=["error against float64"])
    for output in cast("list[dict[str, Json]]", figures["outputs"]):
        error = output["max_rel_err"]
        shape = "x".join(map(str, cast("list[int]", output["shape"]))) or "scalar"
        shown = "no graph to compare with" if error is None else f"{error:.2e}"
        outputs.add_row(cast(str, output["name"]), shape, cast(str, output["dtype"]), shown)
    return outputs


def traffic_table(figures: dict[str, Json], unfused: bool = False) -> Table:
    """Off-chip bytes of the kernels, of unfused ones, and of any schedule; `unfused`: the kernels are unfused."""
    columns = ("read", "written", "total", "of compulsory")
    traffic = table("off-chip traffic", *columns, right=columns)
    bound = cast("int | None", figures["compulsory_bytes"])
    for name in ("traffic",) if unfused else ("traffic", "unfused"):
        counts = cast("dict[str, int] | None", figures[name])
        if counts is not None:
            read, written = counts["read_bytes"], counts["write_bytes"]
            ratio = f"{(read + written) / bound:.3f}×" if bound else ""
            label = "fused" if name == "traffic" and not unfused else "unfused"
            traffic.add_row(label, *(bytes_text(n) for n in (read, written, read + written)), ratio)
    if bound is not None:
        traffic.add_row("compulsory", "", "", bytes_text(bound), "1.000×")
    return traffic


def kernel_table(figures: dict[str, Json]) -> Table:
    """Strategy, tiles, bytes and cycles of each launched kernel."""
    right = ("read", "written", "cycles")
    kernels = table("kernel", "strategy", "tiles", *right, right=right)
    for kernel in cast("list[dict[str, Json]]", figures["kernels"]):
        counts = (bytes_text(cast(int, kernel["read_bytes"])), bytes_text(cast(int, kernel["write_bytes"])))
        strategy = cast("str | None", kernel["strategy"]) or ""
        kernels.add_row(
            cast(str, kernel["name"]), strategy, tiles_text(kernel["schedule"]), *counts, str(kernel["cycles"])
        )
    return kernels


def tiles_text(schedule: Json) -> str:
    """`a=1/8 b=64/512`: tile and extent of each axis; looped axes in their order come first.

    Empty where a kernel by hand says nothing of the kind: below the graph level a schedule may be of any content.
    """
    match schedule:
        case {"axes": str(axes), "order": str(order), "tiles": [*tiles], "extents": [*extents]}:
            fits = len(axes) == len(tiles) == len(extents) and set(order) <= set(axes)
            if not fits or not all(isinstance(number, int) for number in (*tiles, *extents)):
                return ""
        case _:
            return ""
    tiles, extents = cast("list[int]", tiles), cast("list[int]", extents)
    sizes = {
        a: f"{a}={tile}/{extent}" if tile < extent else f"{a}={extent}"
        for a, tile, extent in zip(axes, tiles, extents, strict=True)
    }
    return " ".join(sizes[a] for a in (*order, *(a for a in axes if a not in order)))
