"""What one DMA moves: bytes on each side, bus bytes and descriptor dimensions, from the layouts of its two sides.

Prediction and execution both count traffic here, so that they agree byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

from . import cost
from .layout import Layout, pair_descriptor_dims, pair_runs
from .layout_runs import Runs, count_runs_by_address, descriptor_dimensions
from .target_model import Move, Target


@dataclass(frozen=True)
class Transfer:
    """source_bytes, destination_bytes: read and written; bus_bytes: on the off-chip port, granules included, 0 between
    on-chip memories; dims: dimensions of the descriptor, to compare with the target's `max_dma_dims`."""

    move: Move
    source_bytes: int
    destination_bytes: int
    bus_bytes: int
    dims: int
    rows: int = 0
    """Rows that indices chose."""

    @property
    def link_bytes(self) -> int:
        """Traffic on the link: bus bytes where one side is off chip, else the wider side."""
        return self.bus_bytes or max(self.source_bytes, self.destination_bytes)

    def cycles(self, target: Target, cores: int = 1) -> int:
        """Cycles the engine is occupied (`cost.dma_cycles`)."""
        moved = cost.dma_cycles(target, self.move, self.source_bytes, self.destination_bytes, self.bus_bytes, cores)
        return moved + self.rows * (self.move.gather or 0)


def transfer(
    target: Target, move: Move, source: Layout, destination: Layout, valid: Sequence[int] | None = None
) -> Transfer:
    """The transfer of the region [0, valid) of two layouts of one shape (default: all of the source).

    A move that can convert or transpose reads and writes in each side's own order: its runs are those of the off-chip
    side. Any other needs pieces contiguous on both sides. Rows of 20 f16 inside a wider row-major tensor, granule 32:
    64 bus bytes a row. Raises UserError where `valid` exceeds a layout.
    """
    extents = tuple(source.shape if valid is None else valid)
    source.check_valid(extents)
    destination.check_valid(extents)
    count = prod(extents)
    bus = 0
    free = move.convert or move.transpose
    if cost.is_offchip(target, move):
        side = source if move.source == target.offchip else destination
        runs = side.valid_runs(extents) if free else _in_bytes(pair_runs(source, destination, extents), side)
        bus = cost.bus_bytes(runs, target.offchip_memory.granule)
    dims = descriptor(move, source, destination, extents)
    return Transfer(move, count * source.element_bytes, count * destination.element_bytes, bus, dims)


def descriptor(move: Move, source: Layout, destination: Layout, extents: Sequence[int]) -> int:
    """Dimensions of the descriptor of a transfer of the region [0, extents)."""
    if move.convert or move.transpose:
        return max(source.descriptor_dims(extents), destination.descriptor_dims(extents))
    return pair_descriptor_dims(source, destination, extents)


Region: TypeAlias = tuple[tuple[int, int], ...]
"""Per dimension the half-open range [low, high) of positions."""


def transfer_region(target: Target, move: Move, source: Layout, destination: Layout, region: Region) -> Transfer:
    """The transfer of [low, high) of every dimension of two layouts of one shape.

    A region moved along dimensions of one atom is the same shape of bytes elsewhere. One that begins inside a dimension
    of blocks is counted element by element, its descriptor as one whose blocks do not nest (`descriptor_dimensions`).
    """
    extents = tuple(high - low for low, high in region)
    sides = (source, destination)
    moved = [d for d, (low, _) in enumerate(region) if low and any(len(side.dims[d]) > 1 for side in sides)]
    if not moved:
        return transfer(target, move, source, destination, extents)
    count, bus = prod(extents), 0
    if cost.is_offchip(target, move):
        side = source if move.source == target.offchip else destination
        runs = _runs_from((side,) if move.convert or move.transpose else sides, region)
        bus = cost.bus_bytes(_in_bytes(runs, side), target.offchip_memory.granule)
    dims = descriptor_dimensions(None, extents, [side.element_bytes for side in sides])
    return Transfer(move, count * source.element_bytes, count * destination.element_bytes, bus, dims)


def transfer_rows(target: Target, move: Move, table: Layout, destination: Layout, region: Region) -> Transfer:
    """The transfer of [low, high) of every dimension of the destination, its rows chosen by indices.

    `table` has the rows to choose from as its first dimension; of the others, those of extent 1 stand for dimensions of
    the destination that indices vary along. Every index moves a row of its own: 40 bytes with granules of 32 cost 64 on
    the bus, however many indices say the same row and wherever it lies.
    """
    kept = [extent > 1 for extent in table.shape[1:]]
    rows = prod(high - low for (low, high), keep in zip(region, kept, strict=True) if not keep)
    one = tuple(each if keep else (0, 1) for each, keep in zip(region, kept, strict=True))
    width = destination.element_bytes
    into = Layout(tuple(d if keep else ((1, width),) for d, keep in zip(destination.dims, kept, strict=True)), width)
    row = transfer_region(target, move, Layout(table.dims[1:], table.element_bytes), into, one)
    along = sum(high - low > 1 for (low, high), keep in zip(region, kept, strict=True) if not keep)
    return Transfer(
        move, rows * row.source_bytes, rows * row.destination_bytes, rows * row.bus_bytes, row.dims + along, rows
    )


def _runs_from(sides: Sequence[Layout], region: Region) -> Runs:
    ends = tuple(high for _, high in region)
    part = tuple(slice(low, high) for low, high in region)
    return count_runs_by_address([side.addresses(ends)[part] for side in sides], [side.element_bytes for side in sides])


def _in_bytes(runs: Runs, side: Layout) -> Runs:
    return tuple((count, length * side.element_bytes) for count, length in runs)
