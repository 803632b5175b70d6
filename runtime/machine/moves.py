"""The transfer of a region that need not begin at zero."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects import cost
from ...dialects.layout import Layout
from ...dialects.layout_runs import Runs, count_runs_by_address, descriptor_dimensions
from ...dialects.target_model import Move, Target
from ...dialects.transfer import Transfer, transfer
from .access import Region


def move_region(target: Target, move: Move, source: Layout, destination: Layout, region: Region) -> Transfer:
    """Bytes and descriptor dimensions of copying [low, high) of every dimension.

    A region moved along dimensions of one atom is the same shape of bytes elsewhere. One that begins inside a dimension
    of blocks is counted element by element, its descriptor as one whose blocks do not nest (`descriptor_dimensions`).
    """
    extents = tuple(high - low for low, high in region)
    sides = (source, destination)
    moved = [d for d, (low, _) in enumerate(region) if low and any(len(side.dims[d]) > 1 for side in sides)]
    if not moved:
        return transfer(target, move, source, destination, extents)
    size = 1
    for extent in extents:
        size *= extent
    free = move.convert or move.transpose
    bus = 0
    if cost.is_offchip(target, move):
        side = source if move.source == target.offchip else destination
        runs = _runs((side,) if free else sides, region)
        bus = cost.bus_bytes(
            tuple((n, length * side.element_bytes) for n, length in runs), target.offchip_memory.granule
        )
    dims = descriptor_dimensions(None, extents, [side.element_bytes for side in sides])
    return Transfer(move, size * source.element_bytes, size * destination.element_bytes, bus, dims)


def _runs(sides: Sequence[Layout], region: Region) -> Runs:
    ends = tuple(high for _, high in region)
    part = tuple(slice(low, high) for low, high in region)
    return count_runs_by_address([side.addresses(ends)[part] for side in sides], [side.element_bytes for side in sides])
