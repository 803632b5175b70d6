"""What keeps the tiles of a kernel from being larger: the memory that overflows, or a cost that would rise."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import Target
from tilewright.lowering.axes import Axis, NotFusable
from tilewright.lowering.estimate import Estimate, estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.group import Group
from tilewright.lowering.group_build import read_group
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.roles import Roles
from tilewright.lowering.tile_sizes import inner_tiles, tile_sizes


@dataclass(frozen=True)
class AxisTile:
    """One axis of a kernel, and the next larger tile that the search considers, with all else kept.

    next       that tile; None where the tile is the whole axis, or no larger one is a candidate
    overflow   memory → bytes that the next tile would take at the peak, where that is more than there is
    cycles, bytes   what the kernel would take and move with it, by estimate, over what it does now; None where it
                    cannot be told
    """

    name: str
    extent: int
    tile: int
    inner: int
    trips: int
    reduced: bool
    next: int | None = None
    overflow: Mapping[str, int] | None = None
    cycles: float | None = None
    bytes: float | None = None


def axis_tiles(fused: FusedOp, target: Target) -> list[AxisTile]:
    """The axes of a scheduled group, looped ones in their order first; empty where the schedule is not the group's."""
    if fused.schedule is None:
        return []
    try:
        group = read_group(fused.body.block)
        schedule = Schedule.from_attr(fused.schedule)
        now = _estimate(group, schedule, target)
    except (NotFusable, UserError):
        return []
    found = [_axis(group, axis, schedule, now, target) for axis in group.axes]
    return sorted(found, key=lambda tile: schedule.order.find(tile.name) % (len(schedule.axes) + 1))


def _axis(group: Group, axis: Axis, schedule: Schedule, now: Estimate, target: Target) -> AxisTile:
    name = group.names[axis]
    tile, inner = schedule.tile(name), (schedule.inner or schedule.tiles)[schedule.axes.index(name)]
    trips, reduced = -(-axis.extent // tile), axis in group.reduced
    size = next((size for size in tile_sizes(group, axis, target) if size > tile), None)
    if size is None:
        return AxisTile(name, axis.extent, tile, inner, trips, reduced)
    try:
        larger = _estimate(group, _with_tile(group, schedule, axis, size, target), target)
    except UserError:
        return AxisTile(name, axis.extent, tile, inner, trips, reduced, size)
    overflow = dict(_overflow(larger, target))
    cycles, moved = (b / a if a else 1.0 for a, b in ((now.cycles, larger.cycles), (now.bytes, larger.bytes)))
    return AxisTile(name, axis.extent, tile, inner, trips, reduced, size, overflow, cycles, moved)


def _estimate(group: Group, schedule: Schedule, target: Target) -> Estimate:
    nest = place_nest(group, schedule)
    return estimate(nest, Facts(nest.group, target))


def _overflow(found: Estimate, target: Target) -> Iterator[tuple[str, int]]:
    for memory, peak in found.peaks.items():
        if peak > target.memories[memory].bytes:
            yield memory, peak


def _with_tile(group: Group, schedule: Schedule, axis: Axis, size: int, target: Target) -> Schedule:
    """The schedule with one tile changed; an axis whose tile becomes the whole of it leaves the loops."""
    tiles = dict(zip(group.axes, schedule.tiles, strict=True)) | {axis: size}
    changed = schedule.with_(tiles=tuple(tiles.values()))
    if schedule.inner:
        inner = inner_tiles(group, tiles, target, Roles.of(target))
        changed = changed.with_(inner=tuple(inner[a] for a in group.axes))
    if size == axis.extent:
        gone = str.maketrans("", "", group.names[axis])
        order, hold = schedule.order.translate(gone), tuple(held.translate(gone) for held in schedule.hold)
        changed = changed.with_(order=order, hold=hold, pins=())
    return changed
