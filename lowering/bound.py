"""Lower bounds for all tile sizes of a nest at once: off-chip bytes and live bytes of every memory, as NumPy arrays.

Each axis has a dimension of the arrays, along which its tile sizes lie. Off-chip bytes are exact where granules are one
byte; memory is counted without padding, and as if every elementwise result that could take over the bytes of its
operand did. So no schedule of the nest needs less, and what does not fit by this count does not fit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias, cast

import numpy as np
import numpy.typing as npt

from ..dialects.dtypes import byte_width
from ..dialects.graph_types import static_shape
from .axes import Axis
from .facts import Facts
from .footprint import Footprint, Held
from .group import Node, Output
from .nest import Accumulate, Compute, Item, Load, Loop, Nest, Pin, Store
from .regions import RegionDim, window_extent
from .transfers import lengths_along

Numbers: TypeAlias = "npt.NDArray[np.int64]"


@dataclass(frozen=True)
class Bounds:
    """Over all tile sizes: off-chip bytes at least, and whether they may fit. With a pinned load: how many tiles of it
    may fit, with which these are the bytes. `reads`: the bytes of each load."""

    bytes: Numbers
    fits: npt.NDArray[np.bool_]
    pins: Numbers
    reads: Mapping[Node, Numbers]


class Sizes:
    """Tile sizes of the axes as arrays that broadcast against one another."""

    def __init__(self, sizes: Mapping[Axis, Sequence[int]]) -> None:
        self.sizes = {axis: tuple(each) for axis, each in sizes.items()}
        self.shape = tuple(len(each) for each in self.sizes.values())
        self.tiles = {axis: self.along(axis, each) for axis, each in self.sizes.items()}
        self.trips = {axis: -(-axis.extent // tile) for axis, tile in self.tiles.items()}

    def along(self, axis: Axis, values: Sequence[int]) -> Numbers:
        """One value for each tile size of an axis."""
        place = [len(values) if other is axis else 1 for other in self.sizes]
        return np.array(values, np.int64).reshape(place)

    def at(self, index: int) -> tuple[int, ...]:
        """The tile sizes at a position of the flattened arrays."""
        places = np.unravel_index(index, self.shape)
        return tuple(each[int(place)] for each, place in zip(self.sizes.values(), places, strict=True))


class _LeastFootprint(Footprint):
    """Live bytes as arrays (the sizes of what is held are some, whatever their annotation says)."""

    def __init__(self, nest: Nest, facts: Facts, sizes: Sizes) -> None:
        super().__init__(nest, facts)
        self.sizes = sizes

    def region(self, item: Load | Pin, memory: str) -> int:
        return cast(int, 0 if isinstance(item, Pin) else self.region_size(item.node, item.fixed))

    def region_size(self, node: Node, fixed: frozenset[Axis]) -> Numbers:
        """Bytes of what a load brings with these axes fixed."""
        size, windowed = np.array(byte_width(node.element)), set[Axis]()
        for expr, window in zip(node.index, node.windows, strict=True):
            if window is not None:
                size = size * window_extent(expr, window, cast(int, self.extent(window.base, fixed)))
                windowed.update(expr.terms)
        return size * _product(self.extent(axis, fixed) for axis in node.present if axis not in windowed)

    def extent(self, axis: Axis, fixed: frozenset[Axis]) -> Numbers:
        return self.sizes.tiles[axis] if axis in fixed else np.array(axis.extent)

    def tile(self, node: Node, memory: str, width: int) -> int:
        return cast(int, width * _product(self.sizes.tiles[axis] for axis in node.present))

    def piece(self, source: Node, memory: str) -> int:
        return 0

    def pieces(self, node: Node) -> tuple[int, int] | None:
        return None

    def takes_over(self, operand: Held, result: Held) -> bool:
        return bool(np.any(np.asarray(operand.size) >= np.asarray(result.size)))

    def least(self) -> tuple[dict[str, Numbers], dict[str, Numbers]]:
        """The peak of every memory, and the peak while pinned tiles are there."""
        self.lifetimes()
        peaks, beside = dict[str, Numbers](), dict[str, Numbers]()
        pinned = [held for each in self.pins.values() for held in each]
        for memory in {held.memory for held in self.held}:
            here = [held for held in self.held if held.memory == memory and not held.dropped]
            during = [held for held in pinned if held.memory == memory]
            live = np.zeros((), np.int64)
            peaks[memory] = beside[memory] = live
            changes = [(held.start, 1, held) for held in here] + [(held.end + 1, -1, held) for held in here]
            for position, sign, held in sorted(changes, key=lambda change: change[:2]):
                live = live + sign * np.asarray(held.size)
                if sign > 0:
                    peaks[memory] = np.maximum(peaks[memory], live)
                    if any(pin.start <= position <= pin.end for pin in during):
                        beside[memory] = np.maximum(beside[memory], live)
        return peaks, beside


class Totals:
    """Remembers, for each dimension of a load, how many elements its tiles have together."""

    def __init__(self) -> None:
        self.known: dict[tuple[Node, Axis, tuple[int, ...]], list[int]] = {}

    def of(self, node: Node, dim: RegionDim, tiles: tuple[int, ...], shape: Sequence[int]) -> list[int]:
        key = node, dim.axis, tiles
        if key not in self.known:
            self.known[key] = [sum(lengths_along(node, dim, tile, shape)) for tile in tiles]
        return self.known[key]


class Bounder:
    """Walks a nest once."""

    def __init__(self, nest: Nest, facts: Facts, sizes: Sizes, totals: Totals) -> None:
        self.nest, self.target, self.sizes, self.totals = nest, facts.target, sizes, totals
        self.footprint = _LeastFootprint(nest, facts, sizes)
        self.path: list[Axis] = []
        self.bytes = np.zeros(sizes.shape, np.int64)
        self.reads: dict[Node, Numbers] = {}
        self.once = self.again = np.array(0, np.int64)  # bytes of pinned rows, brought once or by the load

    def run(self) -> Bounds:
        self.items(self.nest.items)
        peaks, beside = self.footprint.least()
        fits = np.ones(self.sizes.shape, np.bool_)
        for memory, peak in peaks.items():
            fits &= peak <= self.target.memories[memory].bytes
        pins = np.zeros(self.sizes.shape, np.int64)
        for load, pin in self.nest.pins.items():
            one = self.footprint.region_size(load, pin.fixed | {pin.axis})
            fitting = [self.target.memories[m].bytes - beside[m] for m in {h.memory for h in self.footprint.pins[load]}]
            most = np.minimum.reduce(np.broadcast_arrays(*[left // one for left in fitting]))
            pins = pins + np.clip(most, 0, self.sizes.trips[pin.axis] - 1)
            self.bytes = self.bytes - (self.again - self.once) * pins * self.sizes.tiles[pin.axis]
        return Bounds(self.bytes, fits, pins, self.reads)

    def items(self, items: Sequence[Item]) -> None:
        for item in items:
            self.footprint.step()
            match item:
                case Loop():
                    self.footprint.enter(item)
                    self.path.append(item.axis)
                    self.items(item.body)
                    self.path.pop()
                    self.footprint.leave(item)
                case Load() | Pin():
                    self.load(item)
                case Compute():
                    self.footprint.compute(item.node, False)
                case Accumulate():
                    self.footprint.compute(item.node, True)
                case Store():
                    self.store(item.output)
                case _:
                    pass

    def load(self, item: Load | Pin) -> None:
        node = item.node
        memories = self.footprint.load(item, 1)
        pin = self.nest.pins.get(node)
        shape = tuple(static_shape(self.nest.group.inputs[node.arg]))
        dims = [RegionDim(0, w.base, w, p) for p, w in enumerate(node.windows) if w is not None]
        windowed = {axis for p, w in enumerate(node.windows) if w is not None for axis in node.index[p].terms}
        dims += [RegionDim(0, axis) for axis in node.present if axis not in windowed]
        size = np.array(byte_width(node.element) * len(memories))
        rows = np.array(1)
        for dim in dims:
            tiles = self.sizes.sizes[dim.axis] if dim.axis in item.fixed else (dim.axis.extent,)
            total = self.sizes.along(dim.axis, self.totals.of(node, dim, tiles, shape))
            if pin is not None and dim.axis is pin.axis:
                rows = total
            else:
                size = size * total
        along = {dim.axis for dim in dims}
        size = size * _product(self.sizes.trips[a] for a in self.path if a not in item.fixed or a not in along)
        if isinstance(item, Pin):
            self.once = self.once + size
        else:
            self.bytes = self.bytes + size * rows
            self.reads[node] = self.reads.get(node, 0) + size * rows
            self.again = self.again + (size if pin is not None else 0)

    def store(self, output: Output) -> None:
        self.footprint.store(output)
        kind = self.nest.group.results[output.number]
        written = {axis for expr in output.index for axis in expr.terms}
        again = _product(self.sizes.trips[axis] for axis in self.path if axis not in written)
        self.bytes = self.bytes + byte_width(kind) * prod(axis.extent for axis in written) * again


def _product(values: object) -> Numbers:
    """The product of arrays that broadcast against one another; 1 of none."""
    result = np.array(1, np.int64)
    for value in cast("Sequence[Numbers]", values):
        result = result * value
    return result
