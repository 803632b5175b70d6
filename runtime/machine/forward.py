"""Elements of one view as elements of another that covers the same bytes: how a value is read that was written.

A tile of 64 × 32 f16 was written row-major, its columns [16, 32) are read as a transposed view 32 bytes further on:
element [i, j] of the view is element [j, 16 + i] of the tile, `start` (0, 16), `steps` ((0, 1), (1, 0)).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.lib.stride_tricks import as_strided

from ...dialects.layout import Layout
from ...dialects.transfer import Region
from .access import element_addresses

Array: TypeAlias = npt.NDArray[Any]
Indices: TypeAlias = npt.NDArray[np.int64]

MISSING, POISON = -1, -2
"""Instead of an index: the element shares no byte with the tile; it lies in the part of it that holds no value."""


@dataclass(frozen=True)
class Written:
    """What was written at an address: all of `whole` was touched, the elements in `valid` hold a value."""

    layout: Layout
    whole: Region
    valid: Region


@dataclass(frozen=True)
class Selection:
    """Elements of an array, each dimension of the result being a step along dimensions of the source."""

    shape: tuple[int, ...]
    start: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]

    def identity(self, extents: tuple[int, ...]) -> bool:
        """Whether it is the whole of an array."""
        rank = len(extents)
        straight = tuple(tuple(int(e == d and extents[d] > 1) for e in range(rank)) for d in range(rank))
        return self.shape == extents and not any(self.start) and self.steps == straight

    @cached_property
    def _slices(self) -> tuple[slice, ...] | None:
        """Where each dimension is a part of one of the source."""
        rank = len(self.start)
        ahead = tuple(tuple(int(e == d and n > 1) for e in range(rank)) for d, n in enumerate(self.shape))
        return (
            tuple(slice(s, s + n) for s, n in zip(self.start, self.shape, strict=True)) if ahead == self.steps else None
        )

    def of(self, array: Array) -> Array:
        """The elements of `array`, which may have further dimensions in front; they share its memory."""
        if len(self.shape) == len(self.start) and self._slices is not None:
            return array[(..., *self._slices)]
        lead = array.ndim - len(self.start)
        strides = array.strides[lead:]
        moved = tuple(sum(n * s for n, s in zip(step, strides, strict=True)) for step in self.steps)
        shape, steps = (*array.shape[:lead], *self.shape), (*array.strides[:lead], *moved)
        if array.flags.c_contiguous:  # several times as fast as `as_strided`
            first = sum(n * s for n, s in zip(self.start, strides, strict=True))
            return np.ndarray(shape, array.dtype, array, first, steps)  # pyright: ignore[reportArgumentType]
        origin = array[(..., *(slice(first, None) for first in self.start))]
        return as_strided(origin, shape, steps, writeable=False)


@lru_cache(maxsize=1 << 12)
def selection(tile: Written, layout: Layout, region: Region, shift: int) -> Selection | None:
    """A region of a view that lies `shift` bytes behind the tile as elements of the tile's value.

    None where it is not all of it there, or not in steps.
    """
    found = indices(tile, layout, region, shift)
    if found.size == 0 or found.min() < 0:
        return None
    return in_steps(found, tuple(high - low for low, high in tile.valid))


def box(places: Indices, extents: tuple[int, ...]) -> Region | None:
    """The part of a region that elements of it (flat, ascending) fill, None where they are no such part."""
    coordinates = np.unravel_index(places, extents) if extents else ()
    region = tuple((int(c.min()), int(c.max()) + 1) for c in coordinates)
    return region if prod(high - low for low, high in region) == places.size else None


def in_steps(found: Indices, extents: tuple[int, ...]) -> Selection | None:
    """Elements of a value, taken flat, as a selection; None where they do not lie in steps."""
    coordinates = np.unravel_index(found, extents) if extents else ()
    zero = (0,) * found.ndim
    start = tuple(int(c[zero]) for c in coordinates)
    steps: list[tuple[int, ...]] = []
    for d, extent in enumerate(found.shape):
        one = tuple(int(e == d) for e in range(found.ndim))
        steps.append(tuple(int(c[one]) - s if extent > 1 else 0 for c, s in zip(coordinates, start, strict=True)))
    positions = np.indices(found.shape, sparse=True)
    for number, coordinate in enumerate(coordinates):
        straight = sum((step[number] * p for step, p in zip(steps, positions, strict=True)), start=start[number])
        if not np.array_equal(np.broadcast_to(np.asarray(straight), found.shape), coordinate):
            return None
    return Selection(found.shape, start, tuple(steps))


@lru_cache(maxsize=64)
def indices(tile: Written, layout: Layout, region: Region, shift: int) -> Indices:
    """Per element of the region its index in the tile's value, taken flat, or MISSING or POISON."""
    low, table = _elements(tile)
    places = element_addresses(layout, region) + (shift - low)
    width = layout.element_bytes
    first = _looked_up(table, places)
    if width > 1 and (first == MISSING).any():
        for byte in range(1, width):  # an element that shares some of its bytes is not missing
            first = np.where((first == MISSING) & (_looked_up(table, places + byte) != MISSING), POISON, first)
    if width != tile.layout.element_bytes:
        return np.where(first == MISSING, MISSING, POISON)
    return first


@lru_cache(maxsize=64)
def _elements(tile: Written) -> tuple[int, Indices]:
    """The lowest byte touched, and for every byte from there on the index of the element that begins there; POISON for
    other bytes of elements and for elements that hold no value."""
    places = element_addresses(tile.layout, tile.whole)
    low = int(places.min())
    table = np.full(int(places.max()) - low + tile.layout.element_bytes, MISSING, np.int64)
    for byte in range(tile.layout.element_bytes):
        table[places - low + byte] = POISON
    valid = element_addresses(tile.layout, tile.valid)
    table[valid - low] = np.arange(valid.size).reshape(valid.shape)
    return low, table


def _looked_up(table: Indices, places: Indices) -> Indices:
    inside = (places >= 0) & (places < table.size)
    return np.where(inside, table[np.where(inside, places, 0)], MISSING)
