"""Bus bytes of the loads and stores of a nest, over all iterations, without walking them.

Per dimension of a region, the different extents it can have (whole tiles, the ragged last one, windows clipped at
the borders) are counted; a transfer's bytes are summed over their combinations.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from math import prod
from typing import TypeAlias

import numpy as np

from ..dialects import cost
from ..dialects.dtypes import byte_width
from ..dialects.graph_types import static_shape
from ..dialects.layout import Layout, pair_runs
from ..dialects.target_model import Move, Target
from .axes import Axis, Linear
from .group import Node, Output
from .nest import Load, Nest
from .regions import RegionDim, region_of

Extents: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of (extent, number of tiles that have it)."""


def strides_of(shape: Sequence[int]) -> list[int]:
    """Elements between neighbours of each dimension of a dense row-major tensor."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def load_bytes(nest: Nest, item: Load, path: tuple[Axis, ...], target: Target, move: Move) -> int:
    """Bus bytes that a load reads over all iterations of the loops in `path`."""
    node = item.node
    shape = static_shape(nest.group.inputs[node.arg])
    strides = strides_of(shape)
    dims = region_of(nest, node, item.fixed)
    extents = [_loaded(nest, node, dim, item.fixed, shape) for dim in dims]
    steps = [_step(node.index, dim, strides) for dim in dims]
    free = [axis for axis in path if axis not in item.fixed]
    singles = [axis for axis in item.fixed if all(dim.axis is not axis for dim in dims)]
    repeats = prod(nest.trips(axis) for axis in (*free, *singles))
    cut = any(node.windows) or item.fixed != node.present & {a for a in nest.group.axes if nest.looped(a)}
    return repeats * _bytes(tuple(extents), tuple(steps), byte_width(node.element), target, move, cut)


def store_bytes(nest: Nest, output: Output, path: tuple[Axis, ...], target: Target, move: Move) -> int:
    """Bus bytes that a store writes over all iterations of the loops in `path`."""
    kind = nest.group.results[output.number]
    strides = strides_of(static_shape(kind))
    axes = [axis for axis in nest.group.axes if any(axis in expr.terms for expr in output.index)]
    dims = [axis for axis in axes if nest.tiles[axis] > 1]
    extents = [_tiles(axis.extent, nest.tiles[axis]) for axis in dims]
    steps = [sum(e.terms.get(a, 0) * s for e, s in zip(output.index, strides, strict=True)) for a in dims]
    repeats = prod(nest.trips(axis) for axis in path if axis not in dims)
    return repeats * _bytes(tuple(extents), tuple(steps), byte_width(kind), target, move)


def _step(index: Sequence[Linear], dim: RegionDim, strides: Sequence[int]) -> int:
    """Elements between neighbours of a region dimension in the input."""
    if dim.window is not None:
        return strides[dim.index]
    return sum(expr.terms.get(dim.axis, 0) * stride for expr, stride in zip(index, strides, strict=True))


def _tiles(extent: int, tile: int) -> Extents:
    whole, rest = divmod(extent, tile)
    return tuple(pair for pair in ((tile, whole), (rest, 1 if rest else 0)) if pair[1])


def _loaded(nest: Nest, node: Node, dim: RegionDim, fixed: frozenset[Axis], shape: Sequence[int]) -> Extents:
    """Extents of one region dimension, without what lies outside the input."""
    axis, tile = dim.axis, nest.tiles[dim.axis] if dim.axis in fixed else dim.axis.extent
    if dim.window is None:
        touching = [(e, s) for e, s in zip(node.index, shape, strict=True) if axis in e.terms]
        if len(touching) != 1 or len(touching[0][0].terms) != 1:
            return _tiles(axis.extent, tile)
        expr, bound = touching[0]
        return _clipped(axis.extent, tile, expr.terms[axis], 1, 0, expr.offset, bound)
    expr, bound = node.index[dim.index], shape[dim.index]
    spread = sum((tap.extent - 1) * expr.terms[tap] for tap in dim.window.taps)
    step = expr.terms[axis]
    return _clipped(axis.extent, tile, step, step, 1 - step + spread, expr.offset, bound, unit=True)


@lru_cache(maxsize=1 << 14)
def _clipped(
    extent: int, tile: int, step: int, scale: int, extra: int, offset: int, bound: int, unit: bool = False
) -> Extents:
    """Counts tiles by how many of their positions have an index in [0, bound).

    Tile i starts at index step·i·tile + offset and has scale·valid + extra positions, `step` apart (1 if `unit`).
    """
    starts = np.arange(-(-extent // tile)) * tile
    count = np.minimum(tile, extent - starts) * scale + extra
    first = starts * step + offset
    stride = 1 if unit else step
    if stride > 0:
        low = np.maximum(0, -(first // stride))
        high = np.minimum(count, -(-(bound - first) // stride))
    else:
        low = np.maximum(0, -((bound - 1 - first) // -stride))
        high = np.minimum(count, first // -stride + 1)
    lengths, counts = np.unique(np.maximum(high - low, 0), return_counts=True)
    return tuple((int(n), int(c)) for n, c in zip(lengths, counts, strict=True) if n)


@lru_cache(maxsize=1 << 15)
def _bytes(
    dims: tuple[Extents, ...], steps: tuple[int, ...], width: int, target: Target, move: Move, cut: bool = False
) -> int:
    total = 0
    granule = target.offchip_memory.granule
    for combination in product(*dims):
        extents = tuple(extent for extent, _ in combination)
        times = prod(count for _, count in combination)
        if granule == 1:
            total += times * prod(extents) * width
        else:
            total += times * _granules(
                extents, steps, width, granule, move.convert or move.transpose, target, move, cut
            )
    return total


@lru_cache(maxsize=1 << 15)
def _granules(
    extents: tuple[int, ...],
    steps: tuple[int, ...],
    width: int,
    granule: int,
    free: bool,
    target: Target,
    move: Move,
    cut: bool,
) -> int:
    """Bus bytes of one transfer; a tile that is cut later has aligned rows, another one lies densely."""
    outside = Layout.strided(extents, [step * width for step in steps], width)
    if free:
        return cost.bus_bytes(outside.valid_runs(extents), granule)
    inside = move.source if move.destination == target.offchip else move.destination
    align = target.memories[inside].align if cut else 1
    dense = Layout.row_major(extents, width, align)
    return sum(
        cost.granule_bytes(length * width, count, granule) for count, length in pair_runs(outside, dense, extents)
    )
