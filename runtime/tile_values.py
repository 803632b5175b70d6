"""Values of the tile evaluator: elements, which of them are defined, and views that share them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir.affine import AffineMap

from ..dialects.affine_eval import evaluate

Array: TypeAlias = npt.NDArray[Any]
Region: TypeAlias = tuple[int, ...]


class Storage:
    """Elements of a tensor, tile or buffer, and a mask of those that hold a value (the others are poison)."""

    def __init__(self, data: Array, defined: Array) -> None:
        self.data = data
        self.defined = defined

    @staticmethod
    def poison(shape: Sequence[int], dtype: np.dtype[Any]) -> Storage:
        return Storage(np.zeros(shape, dtype), np.zeros(shape, np.bool_))

    @staticmethod
    def of(data: Array) -> Storage:
        return Storage(data, np.ones(data.shape, np.bool_))


@dataclass
class Held:
    """A value: a storage seen through slices.

    `steps` are the maps from its own positions outwards to those of the storage, each with its counters. `valid` counts
    the valid elements per dimension; `stated` says that a slice has fixed it, so that writing does not change it.
    """

    storage: Storage
    shape: Region
    valid: Region
    steps: tuple[tuple[AffineMap, tuple[int, ...]], ...] = field(default=())
    stated: bool = False

    def part(self, map_: AffineMap, counters: tuple[int, ...], shape: Region, valid: Region) -> Held:
        """The slice whose position p is position map(counters, p) of this value."""
        return Held(self.storage, shape, valid, ((map_, counters), *self.steps), stated=True)

    def copy(self) -> Held:
        """The same value over elements of its own (of the whole storage)."""
        storage = Storage(self.storage.data.copy(), self.storage.defined.copy())
        return Held(storage, self.shape, self.valid, self.steps, self.stated)

    def read(self, region: Region) -> tuple[Array, Array]:
        """Elements and defined mask of [0, region)."""
        index = self._index(region)
        data, defined = self.storage.data[index], self.storage.defined[index]
        return np.broadcast_to(data, region).copy(), np.broadcast_to(defined, region).copy()

    def write(self, region: Region, data: Array, defined: Array) -> None:
        """Replaces [0, region). A value that is not a slice becomes valid there, and poison elsewhere."""
        index = self._index(region)
        if not self.stated:
            self.storage.defined[...] = False
            self.valid = region
        self.storage.data[index] = np.broadcast_to(data, region)
        self.storage.defined[index] = np.broadcast_to(defined, region)

    def _index(self, region: Region) -> tuple[Any, ...]:
        if not self.steps:
            return tuple(slice(0, extent) for extent in region)
        position: list[Any] = list(open_mesh(region))
        for map_, counters in self.steps:
            position = [evaluate(expr, (*counters, *position)) for expr in map_.results]
        if prod(region):
            for where, extent in zip(position, self.storage.data.shape, strict=True):
                if np.min(where) < 0 or np.max(where) >= extent:
                    raise IndexError(f"position {int(np.max(where))} of {extent}")
        return tuple(np.broadcast_to(where, region) for where in position)


def open_mesh(region: Sequence[int]) -> tuple[Array, ...]:
    """Positions along each dimension, shaped to broadcast against each other."""
    rank = len(region)
    return tuple(np.arange(n).reshape([n if d == p else 1 for p in range(rank)]) for d, n in enumerate(region))


def clamp(values: Sequence[Any], shape: Sequence[int]) -> Region:
    """Valid extents: each value cut to [0, extent]."""
    return tuple(min(max(int(value), 0), extent) for value, extent in zip(values, shape, strict=True))
