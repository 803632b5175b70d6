"""Each kernel: its strategy, its tiles, and what limits them."""

from __future__ import annotations

from dataclasses import asdict

from rich.table import Table

from tilewright.dialects.dtypes import tensor_bytes
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.graph_types import as_tensor
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import Target
from tilewright.runtime.machine import KernelResult
from tilewright.runtime.report import Json

from ..render import bytes_text, table
from .fusion import fused_groups
from .limits import AxisTile, axis_tiles
from .section import Heading, Part, Section, Subject

STRATEGIES = {
    "resident": "what is reduced lies in a tile as a whole",
    "online": "one pass over what is reduced, with carried results",
    "multipass": "several passes over what is reduced",
    "recompute": "what is needed again is computed again",
}


def kernels_section(subject: Subject) -> Section | None:
    """Per kernel: strategy, axes with tiles and their limits, bytes against its own inputs and outputs, engines."""
    groups = fused_groups(subject.program)
    if not groups:
        return None
    target, results = subject.program.target, subject.result.kernels if subject.result is not None else []
    counted = {kernel.name: kernel for kernel in results}
    parts: list[Part] = []
    data: list[Json] = []
    for name, fused in groups.items():
        schedule, tiles = _schedule(fused), axis_tiles(fused, target)
        strategy = schedule.strategy if schedule else None
        parts.append(Heading(f"{name}: {strategy}, {STRATEGIES[strategy]}" if strategy else name))
        if tiles:
            parts.append(_axes(tiles, target))
        needed = sum(tensor_bytes(as_tensor(value.type, name)) for value in (*fused.args, *fused.res))
        kernel = counted.get(name)
        if kernel is not None:
            parts.append(_counted(kernel, needed))
        data.append(
            {
                "kernel": name,
                "strategy": strategy,
                "axes": [_plain(tile) for tile in tiles],
                "input_and_output_bytes": needed,
                "read_bytes": kernel.read_bytes if kernel else None,
                "write_bytes": kernel.write_bytes if kernel else None,
                "cycles": kernel.cycles if kernel else None,
                "busy": {**kernel.busy} if kernel else None,
            }
        )
    return Section("kernels", "Kernels", parts, data)


def _schedule(fused: FusedOp) -> Schedule | None:
    try:
        return Schedule.from_attr(fused.schedule) if fused.schedule is not None else None
    except UserError:
        return None


def _axes(tiles: list[AxisTile], target: Target) -> Table:
    made = table("axis", "", "extent", "tile", "trips", "a larger tile", right=["extent", "tile", "trips"])
    for tile in tiles:
        pieces = f" in {tile.inner}s" if tile.inner < tile.tile else ""
        kind = "reduced" if tile.reduced else ""
        made.add_row(tile.name, kind, str(tile.extent), f"{tile.tile}{pieces}", str(tile.trips), _limit(tile, target))
    return made


def _limit(tile: AxisTile, target: Target) -> str:
    """Why the tile is not larger."""
    if tile.tile == tile.extent:
        return "is the whole axis"
    if tile.next is None:
        return "there is none"
    if tile.overflow:
        over = (f"{bytes_text(n)} of {name}, which has {bytes_text(target.memories[name].bytes)}"
                for name, n in tile.overflow.items())  # fmt: skip
        return f"{tile.next} takes {', '.join(over)}"
    if tile.cycles is None or tile.bytes is None:
        return f"{tile.next} is not possible with the other tiles"
    return f"{tile.next} fits: {_change(tile.cycles)} cycles, {_change(tile.bytes)} bytes by estimate"


def _change(ratio: float) -> str:
    return "the same" if abs(ratio - 1) < 0.0005 else f"{ratio - 1:+.1%}"


def _counted(kernel: KernelResult, needed: int) -> str:
    moved = kernel.read_bytes + kernel.write_bytes
    ratio = f", {moved / needed:.3f}× its inputs and outputs" if needed else ""
    busy = sorted(kernel.busy.items(), key=lambda pair: -pair[1])
    engines = ", ".join(f"{name} {cycles / kernel.cycles:.0%}" for name, cycles in busy if cycles) or "none"
    return (
        f"{bytes_text(kernel.read_bytes)} read, {bytes_text(kernel.write_bytes)} written{ratio}. "
        f"{kernel.cycles} cycles; busy: {engines}."
    )


def _plain(tile: AxisTile) -> dict[str, Json]:
    return asdict(tile)
