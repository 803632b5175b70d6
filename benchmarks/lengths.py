"""Attention at many sequence lengths: the tiles that are chosen, and what one fixed tile would lose or overflow.

    python benchmarks/lengths.py [--target davinci] [--heads 8] [--width 64] [--fixed 128,512] [LENGTH…]

Bytes and cycles are those of the simulation, which needs no data; *util* is the share of the cycles in which the matrix
engine works. A fixed tile is the tile of the schedule that was chosen at that length, kept at every other: axes that
are shorter take it whole, axes that are longer are looped over. Its cycles over the chosen schedule's are printed, or
why it cannot be.
"""

from __future__ import annotations

import argparse
import time

from mapping import attention
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import target_of
from tilewright.lowering.group import Group
from tilewright.lowering.group_build import read_group
from tilewright.lowering.measure import measure
from tilewright.lowering.nest import default_hold
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.roles import Roles
from tilewright.lowering.tile_sizes import inner_tiles
from xdsl.context import Context

import tilewright

LENGTHS = (128, 256, 512, 1024, 2048, 4096, 8192, 16384)


def fixed(group: Group, model: Schedule, fused: FusedOp) -> Schedule:
    """The tiles of another length's schedule on this group. Raises UserError where no loops fit them."""
    target, names = target_of(fused), group.names
    tiles = {axis: min(tile, axis.extent) for axis, tile in zip(group.axes, model.tiles, strict=True)}
    looped = [axis for axis in group.axes if tiles[axis] < axis.extent]
    order = sorted(looped, key=lambda axis: axis in group.reduced)
    inner = inner_tiles(group, tiles, target, Roles.of(target))
    made = Schedule(
        axes="".join(names.values()),
        extents=tuple(axis.extent for axis in group.axes),
        tiles=tuple(tiles.values()),
        order="".join(names[axis] for axis in order),
        strategy="online",
        inner=tuple(inner.values()) if inner != tiles else (),
        hold=tuple("".join(names[a] for a in group.axes if a in default_hold(load, looped)) for load in group.loads),
        slots=model.slots,
        move_slots=model.move_slots,
        store_slots=model.store_slots,
    )
    return made.with_(strategy=place_nest(group, made).strategy)


def text(schedule: Schedule) -> str:
    return " ".join(f"{axis}{tile}" for axis, tile in zip(schedule.axes, schedule.tiles, strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("lengths", nargs="*", type=int, default=LENGTHS)
    parser.add_argument("--target", default="davinci")
    parser.add_argument("--objective", choices=["time", "traffic"], default="time")
    parser.add_argument("--heads", type=int, default=8)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--fixed", default="128,512", help="lengths whose tile is kept at all others")
    options = parser.parse_args()
    models = {int(length): None for length in options.fixed.split(",")}
    schedules: dict[int, Schedule | None] = dict(models)
    kept: list[tuple[int, FusedOp, int]] = []
    print(f"{'length':>6} {'MB':>9} {'cycles':>11} {'util':>6} {'seconds':>8}  strategy   tiles")
    for length in sorted({*options.lengths, *models}):
        start = time.process_time()
        source = tilewright.load(attention(options.heads, length, options.width))
        program = tilewright.compile(source, options.target, objective=options.objective)
        analysis = program.analyze()
        module = program.snapshot(after="schedule").module
        groups = [op for op in module.walk() if isinstance(op, FusedOp)]
        chosen = [Schedule.from_attr(group.schedule) for group in groups if group.schedule is not None]
        moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in analysis.kernels)
        matrix = target_of(module).matrix_engine
        busy = analysis.engine_busy.get(matrix[0], 0) if matrix is not None else 0
        print(
            f"{length:>6} {moved / 1e6:>9.3f} {analysis.cycles:>11} {busy / analysis.cycles:>6.1%} "
            f"{time.process_time() - start:>8.1f}  {'; '.join(f'{one.strategy:<10} {text(one)}' for one in chosen)}",
            flush=True,
        )
        if len(groups) == 1:
            kept.append((length, groups[0], analysis.cycles))
            if length in schedules:
                schedules[length] = chosen[0]
    for length, model in schedules.items():
        if model is None:
            print(f"\nat {length} there is more than one kernel: no tile to keep")
            continue
        print(f"\nthe tile of {length} ({text(model)}) at every length:")
        for other, fused, cycles in kept:
            try:
                found = measure(Context(), fused, fixed(read_group(fused.body.block), model, fused), target_of(fused))
                print(f"{other:>6} {found.bytes / 1e6:>9.3f} MB {found.cycles:>11} {found.cycles / cycles:>6.2f} x")
            except UserError as error:
                print(f"{other:>6} cannot be: {error.message[:110]}")


if __name__ == "__main__":
    main()
