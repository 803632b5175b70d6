"""Bus bytes of the loads and stores of a nest, over all iterations, without walking them.

Per dimension of a region, the different extents it can have (whole tiles, the ragged last one, windows clipped at
the borders) are counted; a transfer's bytes are summed over their combinations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
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
from .cut_sections import IntArray
from .cuts import Cut
from .group import Node, Output
from .nest import Load, Nest, Pin
from .regions import RegionDim, region_of

Extents: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of (extent, number of tiles that have it)."""
Lengths: TypeAlias = tuple[int, ...]
"""The extent in every tile."""


def strides_of(shape: Sequence[int]) -> list[int]:
    """Elements between neighbours of each dimension of a dense row-major tensor."""
    return [prod(shape[d + 1 :]) for d in range(len(shape))]


def load_bytes(
    nest: Nest, item: Load | Pin, path: tuple[Axis, ...], target: Target, move: Move, cut: Cut | None = None
) -> int:
    """Bus bytes that a load reads over all iterations of the loops in `path`, of which `cut` says which are walked."""
    node = item.node
    shape = static_shape(nest.group.inputs[node.arg])
    strides = strides_of(shape)
    pin, pins = nest.pins.get(node), isinstance(item, Pin)
    dims = region_of(nest, node, item.fixed, pin if pins else None)
    tiled = item.fixed if pin is None else item.fixed | {pin.axis}
    lengths = [
        lengths_along(node, dim, nest.tiles[dim.axis] if dim.axis in tiled else dim.axis.extent, shape) for dim in dims
    ]
    if pin is not None:
        lengths = [
            each if dim.axis is not pin.axis else (sum(each[: pin.count]),) if pins else each[pin.count :]
            for dim, each in zip(dims, lengths, strict=True)
        ]
    steps = tuple(_step(node.index, dim, strides) for dim in dims)
    cut = cut if cut is not None and cut.axis in path else None
    cut_axes = (*cut.outer, cut.axis) if cut is not None else ()
    others = [axis for axis in path if axis not in cut_axes and (axis not in item.fixed or not _along(axis, dims))]
    repeats = prod(nest.trips(axis) - (pin.count if pin is not None and axis is pin.axis else 0) for axis in others)
    parts = any(node.windows) or item.fixed != node.present & {a for a in nest.group.axes if nest.looped(a)}
    joint = [d for d, dim in enumerate(dims) if dim.axis in cut_axes and dim.axis in item.fixed]
    free = {d: _counted(lengths[d]) for d in range(len(dims)) if d not in joint}
    combinations = [((), 1)]
    if cut is not None:
        places = [cut_axes.index(dims[d].axis) for d in joint]
        combinations = _combined(cut.walked[cut.leaves_out(node)], places, [lengths[d] for d in joint])
    chosen = [d for d, dim in enumerate(dims) if dim.axis in node.chosen]
    steps = tuple(step for d, step in enumerate(steps) if d not in chosen)
    total = 0
    for extents, times in combinations:
        known = {d: ((extent, 1),) for d, extent in zip(joint, extents, strict=True)}
        rows = prod(sum(extent * n for extent, n in known.get(d) or free[d]) for d in chosen)
        each = tuple(known.get(d) or free[d] for d in range(len(dims)) if d not in chosen)
        total += repeats * times * rows * _bytes(each, steps, byte_width(node.element), target, move, parts)
    return total


def _along(axis: Axis, dims: Sequence[RegionDim]) -> bool:
    return any(dim.axis is axis for dim in dims)


def _combined(
    counts: IntArray, places: Sequence[int], lengths: Sequence[Lengths]
) -> Iterator[tuple[tuple[int, ...], int]]:
    """The different combinations of lengths along dimensions of a table of counts, each with how often it occurs.

    `places`: the dimension of the table that each of `lengths` is along.
    """
    table = counts.sum(axis=tuple(d for d in range(counts.ndim) if d not in places))
    order = sorted(range(len(places)), key=lambda k: places[k])  # the dimensions that are left
    kinds = [np.unique(lengths[k], return_inverse=True) for k in order]
    codes = np.zeros(np.shape(table), np.int64)
    for d, (values, inverse) in enumerate(kinds):
        codes = codes * len(values) + inverse.reshape([-1 if d == e else 1 for e in range(len(kinds))])
    for code, times in enumerate(np.bincount(codes.ravel(), weights=np.ravel(table)).astype(np.int64).tolist()):
        found = [0] * len(places)
        for place, (values, _) in zip(reversed(order), reversed(kinds), strict=True):
            code, digit = divmod(code, len(values))
            found[place] = int(values[digit])
        if times and all(found):
            yield tuple(found), times


def store_bytes(nest: Nest, output: Output, path: tuple[Axis, ...], target: Target, move: Move) -> int:
    """Bus bytes that a store writes over all iterations of the loops in `path`."""
    kind = nest.group.results[output.number]
    strides = strides_of(static_shape(kind))
    axes = [axis for axis in nest.group.axes if any(axis in expr.terms for expr in output.index)]
    dims = [axis for axis in axes if nest.tiles[axis] > 1]
    extents = [_counted(_tiles(axis.extent, nest.tiles[axis])) for axis in dims]
    steps = [sum(e.terms.get(a, 0) * s for e, s in zip(output.index, strides, strict=True)) for a in dims]
    repeats = prod(nest.trips(axis) for axis in path if axis not in dims)
    return repeats * _bytes(tuple(extents), tuple(steps), byte_width(kind), target, move)


def _step(index: Sequence[Linear], dim: RegionDim, strides: Sequence[int]) -> int:
    """Elements between neighbours of a region dimension in the input."""
    if dim.window is not None:
        return strides[dim.index]
    return sum(expr.terms.get(dim.axis, 0) * stride for expr, stride in zip(index, strides, strict=True))


def _tiles(extent: int, tile: int) -> Lengths:
    whole, rest = divmod(extent, tile)
    return (tile,) * whole + ((rest,) if rest else ())


@lru_cache(maxsize=1 << 14)
def _counted(lengths: Lengths) -> Extents:
    """Each length that is not 0, and how many tiles have it."""
    return tuple((length, count) for length, count in sorted(Counter(lengths).items()) if length)


def lengths_along(node: Node, dim: RegionDim, tile: int, shape: Sequence[int]) -> Lengths:
    """Extents of one region dimension in tiles of an input of this shape, without what lies outside the input."""
    axis = dim.axis
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
) -> Lengths:
    """How many positions of each tile have an index in [0, bound).

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
    return tuple(np.maximum(high - low, 0).tolist())


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
