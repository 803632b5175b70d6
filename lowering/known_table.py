"""The elements of a constant that a load reads, over the axes of a group: per tile the least and the greatest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.dtypes import dense_array, element
from .axes import Axis, Linear
from .interval_rules import EXACT
from .known_inputs import Known

Array: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Table:
    """Element [i, j, …] of `axes` is the constant's element offset + Σ stride · position, in row-major order.

    A row of 4 × 4 blocks, repeated along the positions of a block, of which the load varies along i and j only:

        mask[i, j] of a constant [4, 4]     axes (i, j), strides (4, 1), offset 0
    """

    known: Known
    axes: tuple[Axis, ...]
    strides: tuple[int, ...]
    offset: int

    @staticmethod
    def of(known: Known, index: Sequence[Linear], inside: Sequence[Linear]) -> Table | None:
        """None where a position may lie outside of the constant."""
        shape = tuple(known.get_shape())
        if inside or not all(0 <= low <= high < extent for (low, high), extent in zip(
            (expr.bounds() for expr in index), shape, strict=True
        )):  # fmt: skip
            return None
        strides, offset = dict[Axis, int](), 0
        for d, expr in enumerate(index):
            step = prod(shape[d + 1 :])
            offset += expr.offset * step
            for axis, coefficient in expr.terms.items():
                strides[axis] = strides.get(axis, 0) + coefficient * step
        axes = tuple(sorted(strides, key=lambda axis: axis.serial))
        return Table(known, axes, tuple(strides[axis] for axis in axes), offset)

    def ranges(self, tiles: Mapping[Axis, int]) -> tuple[Array, Array]:
        """The least and the greatest element in every tile, with a dimension for each axis; an axis without a tile size
        is whole. Not a number where an element is none, or an integer that is not exact as a float."""
        extents = tuple(axis.extent for axis in self.axes)
        sizes = tuple(tiles.get(axis, axis.extent) for axis in self.axes)
        return _ranges(self.known, self.offset, extents, self.strides, sizes)

    def step(self, axis: Axis) -> int:
        """The longest tiles along an axis of the table in which nothing changes along it."""
        return _step(self.known, self.offset, tuple(a.extent for a in self.axes), self.strides, self.axes.index(axis))


@lru_cache(maxsize=16)
def _elements(known: Known) -> npt.NDArray[Any]:
    """In row-major order, floats in a type that is exact and fast."""
    array = np.ascontiguousarray(dense_array(known)).ravel()
    narrow = element(known.get_element_type()).kind == "float" and array.itemsize < 4
    return array.astype(np.float32) if narrow else array


@lru_cache(maxsize=512)
def _ranges(
    known: Known, offset: int, extents: Sequence[int], strides: Sequence[int], sizes: Sequence[int]
) -> tuple[Array, Array]:
    low = high = _view(known, offset, extents, strides)
    for d in reversed(range(len(sizes))):
        starts = np.arange(0, extents[d], sizes[d])
        low = np.minimum.reduceat(low, starts, axis=d)
        high = np.maximum.reduceat(high, starts, axis=d)
    exact = (low >= -EXACT) & (high <= EXACT) if low.dtype == np.int64 else np.True_
    return np.where(exact, low.astype(np.float64), np.nan), np.where(exact, high.astype(np.float64), np.nan)


@lru_cache(maxsize=64)
def _step(known: Known, offset: int, extents: Sequence[int], strides: Sequence[int], d: int) -> int:
    table = np.moveaxis(_view(known, offset, extents, strides), d, 0)
    changes = (table[1:] != table[:-1]).reshape(extents[d] - 1, -1).any(axis=1)
    return gcd(extents[d], *(np.flatnonzero(changes) + 1).tolist())


def _view(known: Known, offset: int, extents: Sequence[int], strides: Sequence[int]) -> npt.NDArray[Any]:
    flat = _elements(known)
    steps = [stride * flat.itemsize for stride in strides]
    return np.lib.stride_tricks.as_strided(flat[offset:], extents, steps, writeable=False)
