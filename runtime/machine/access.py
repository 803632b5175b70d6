"""From a region of a layout to bytes: NumPy views of it, and the runs of bytes it covers.

A dimension of several atoms that is covered in part is taken as whole blocks and cut after merging its atoms: rows
[0, 17) of blocks of 16 are read as 32 rows, of which 17 are kept. Writing reads the blocks, replaces the rows and puts
the blocks back.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ...dialects.layout import Atom, Layout
from ...dialects.transfer import Region

Array: TypeAlias = npt.NDArray[Any]
Lead: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]
"""Extents and byte strides of the places at which a region is accessed many times at once."""
ALONE: Lead = ((), ())


@dataclass(frozen=True, eq=False)
class Access:
    """How to reach a region of a layout, relative to the address of the view.

    offset         byte of the first element of the array of atoms
    shape, strides of that array
    merged         its shape with the atoms of each dimension merged
    trim           what to keep of it, None for everything
    logical        shape of the region
    low, high      the region lies in these bytes [low, high)
    end            the array of atoms, whole blocks included, ends before this byte
    cover          shape and strides, in bytes, of all bytes of the region; None where only `trim` can tell them
    """

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    merged: tuple[int, ...]
    trim: tuple[slice, ...] | None
    logical: tuple[int, ...]
    low: int
    high: int
    end: int
    cover: tuple[tuple[int, ...], tuple[int, ...]] | None

    def bytes(self, memory: Array, base: int, lead: Lead = ALONE) -> Array | None:
        """The bytes of the region in an array of one-byte items, some order; None where they are no array."""
        if self.cover is None:
            return None
        shape, strides = self.cover
        return np.ndarray((*lead[0], *shape), memory.dtype, memory, base + self.offset, (*lead[1], *strides))  # pyright: ignore[reportArgumentType]

    def array(self, memory: Array, base: int, dtype: np.dtype[Any], lead: Lead = ALONE) -> Array:
        """The bytes of the region in `memory`, at view address `base`, as an array of atoms that shares them."""
        shape, strides = (*lead[0], *self.shape), (*lead[1], *self.strides)
        return np.ndarray(shape, dtype, memory, base + self.offset, strides)  # pyright: ignore[reportArgumentType]

    def read(self, memory: Array, base: int, dtype: np.dtype[Any], lead: Lead = ALONE) -> Array:
        """The region's elements; they may share memory."""
        array = self.array(memory, base, dtype, lead)
        if self.merged != self.shape:
            array = array.reshape(*lead[0], *self.merged)
        return array if self.trim is None else array[(..., *self.trim)]

    def write(self, memory: Array, base: int, dtype: np.dtype[Any], value: Array, lead: Lead = ALONE) -> None:
        """Puts `value`, broadcast to the region, into memory. Regions of several places must not share blocks."""
        array = self.array(memory, base, dtype, lead)
        merged = (*lead[0], *self.merged)
        if self.trim is not None:
            whole = array.reshape(merged).copy()
            whole[(..., *self.trim)] = value
            array[...] = whole.reshape(array.shape)
        elif self.merged == self.shape:
            array[...] = value
        else:
            whole = value if value.shape == merged else np.broadcast_to(value, merged)
            array[...] = whole.reshape(array.shape)


@lru_cache(maxsize=1 << 14)
def access(layout: Layout, region: Region) -> Access:
    """The access to a region with elements in every dimension."""
    offset = low = high = 0
    shape: list[int] = []
    strides: list[int] = []
    merged: list[int] = []
    trims: list[slice] = []
    cut = False
    for atoms, (first, last) in zip(layout.dims, region, strict=True):
        addresses = _addresses(atoms, first, last)
        low, high = low + int(addresses.min()), high + int(addresses.max())
        moved, inner, begin = _blocks(_joined(atoms, layout.element_bytes), first, last)
        offset += moved
        shape += [extent for extent, _ in inner]
        strides += [stride for _, stride in inner]
        merged.append(prod(extent for extent, _ in inner))
        trims.append(slice(begin, begin + last - first))
        cut = cut or merged[-1] != last - first
    cover = None if cut else _cover(shape, strides, layout.element_bytes)
    end = offset + layout.element_bytes + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))
    logical = tuple(last - first for first, last in region)
    return Access(
        offset, tuple(shape), tuple(strides), tuple(merged), tuple(trims) if cut else None, logical, low,
        high + layout.element_bytes, end, cover,
    )  # fmt: skip


def _cover(shape: Sequence[int], strides: Sequence[int], width: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides of the bytes of an array of atoms, runs of bytes innermost, neighbours joined."""
    dims = [(width, 1)]
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent == 1 or stride == 0:
            continue
        inner, step = dims[-1]
        if stride == inner * step:
            dims[-1] = (inner * extent, step)
        else:
            dims.append((extent, stride))
    return tuple(extent for extent, _ in reversed(dims)), tuple(stride for _, stride in reversed(dims))


def _addresses(atoms: Sequence[Atom], first: int, last: int) -> npt.NDArray[np.int64]:
    """Byte offsets of the positions [first, last) of one dimension."""
    position = np.arange(first, last, dtype=np.int64)
    total = np.zeros(last - first, np.int64)
    for extent, stride in reversed(atoms[1:]):
        total += position % extent * stride
        position //= extent
    return total + position * (atoms[0][1] if atoms else 0)


def element_addresses(layout: Layout, region: Region) -> npt.NDArray[np.int64]:
    """Byte offsets of the elements of a region, shaped like it."""
    total: npt.NDArray[np.int64] = np.zeros((), np.int64)
    for atoms, (first, last) in zip(layout.dims, region, strict=True):
        total = total[..., None] + _addresses(atoms, first, last)
    return total


def _joined(atoms: Sequence[Atom], width: int) -> list[Atom]:
    """Atoms without those of extent 1, neighbours that continue one another made one; never empty."""
    found: list[Atom] = []
    for extent, stride in atoms:
        if extent == 1:
            continue
        if found and found[-1][1] == extent * stride:
            found[-1] = (found[-1][0] * extent, stride)
        else:
            found.append((extent, stride))
    return found or [(1, width)]


def _blocks(atoms: list[Atom], first: int, last: int) -> tuple[int, list[Atom], int]:
    """Byte offset, atoms of the blocks around [first, last), and where in them the region begins."""
    (_, stride), inner = atoms[0], atoms[1:]
    block = prod(extent for extent, _ in inner)
    lead, within = divmod(first, block)
    if inner and within + last - first <= block:
        moved, kept, begin = _blocks(inner, within, within + last - first)
        return lead * stride + moved, kept, begin
    return lead * stride, [(-(-last // block) - lead, stride), *inner], within


Runs: TypeAlias = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
"""Starts and ends of runs of bytes, ascending and disjoint."""


@lru_cache(maxsize=1 << 14)
def byte_runs(layout: Layout, region: Region) -> Runs:
    """The bytes of a region as runs, relative to the view's address."""
    found = access(layout, region)
    if found.cover is None:
        total = element_addresses(layout, region)
        length = layout.element_bytes
    else:
        (*extents, length), (*strides, _) = found.cover
        total = np.asarray(found.offset, np.int64)
        for extent, stride in zip(extents, strides, strict=True):
            total = total[..., None] + np.arange(extent, dtype=np.int64) * stride
    starts = np.unique(total)
    breaks = np.flatnonzero(starts[1:] > starts[:-1] + length)
    firsts = starts[np.concatenate(([0], breaks + 1))]
    return firsts, starts[np.concatenate((breaks, [starts.size - 1]))] + length


def runs_meet(left: Runs, right: Runs, shift: int) -> tuple[int, int] | None:
    """The first bytes [low, high) that `left` and `right`, the latter `shift` bytes further on, have in common."""
    starts, ends = left
    others, stops = right[0] + shift, right[1] + shift
    # The first run of `left` that ends behind the start of each other run must not begin before that run's end.
    place = np.searchsorted(ends, others, side="right")
    inside = np.flatnonzero(place < starts.size)
    meeting = inside[starts[place[inside]] < stops[inside]]
    if not meeting.size:
        return None
    other = meeting[0]
    run = place[other]
    return int(max(starts[run], others[other])), int(min(ends[run], stops[other]))
