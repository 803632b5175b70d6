"""What on-chip memories hold, without data: which value was last written to which bytes, in all iterations at once.

Addresses are numbers, or arrays over the iterations of the loops that are executed many iterations at once, one axis
per loop. Each of these iterations has on-chip memories of its own: it sees what was written before the loop, unless the
loop writes that buffer too, and what it has written itself. What cannot be told is no error but `Unproven`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from ...dialects.transfer import Region
from .access import Access
from .forward import MISSING, POISON, Indices, Selection, Written, indices, selection
from .program import Buffer, Kernel, Loop, View

V = TypeVar("V")
Places: TypeAlias = "int | npt.NDArray[np.int64]"
"""The address of a view: one, or one per iteration."""


class Unproven(Exception):
    """A read that no write is known to come before, or a place outside its buffer. `loop`: it could be known if the
    iterations of this loop were executed one after another."""

    def __init__(self, loop: Loop | None = None) -> None:
        super().__init__()
        self.loop = loop


@dataclass(frozen=True, eq=False)
class Tile(Generic[V]):
    """The bytes [low, high) behind `base`. `dense`: all of them were written. Without `value` they are poison; `loop`
    is the one that writes them in other iterations, if one does."""

    base: Places
    low: int
    high: int
    dense: bool
    written: Written | None = None
    view: View | None = None
    value: V | None = None
    loop: Loop | None = None


class Tiles(Generic[V]):
    """The on-chip memories of a kernel; V stands for values."""

    def __init__(self, kernel: Kernel) -> None:
        self.buffers = kernel.buffers
        local = range(kernel.arguments, len(self.buffers))
        self.near = {n: [m for m in local if m != n and _share(kernel, n, m)] for n in local}
        self.tiles: dict[int, list[Tile[V]]] = {n: [] for n in local}

    def poison(self, buffers: Iterable[int], loop: Loop | None) -> None:
        """Nothing is known of these buffers any more."""
        for number in buffers:
            offset = self.buffers[number].offset
            assert offset is not None
            self._put(number, Tile(offset, 0, self.buffers[number].size, True, loop=loop))

    def write(self, view: View, base: Places, part: Access, whole: Access, written: Written, value: V | None) -> None:
        """A value, or none, at an address; `part` and `whole` are what holds it and all that is touched."""
        if view.layout.overlaps:
            raise Unproven
        touched = int(np.prod([high - low for low, high in written.whole])) * view.element.bytes
        low, high = min(part.low, whole.low), max(part.high, whole.high)
        self._put(view.buffer, Tile(base, low, high, touched == high - low, written, view, value))

    def _put(self, number: int, tile: Tile[V]) -> None:
        """The latest in its buffer; poison, as the value of another buffer, in those that share bytes with it."""
        for buffer in (number, *self.near[number]):
            new = tile if buffer == number else replace(tile, written=None, view=None, value=None)
            kept = self.tiles[buffer]
            if tile.dense:
                kept = [old for old in kept if not _covers(tile, old)]
            self.tiles[buffer] = [*kept, new]

    def read(
        self, view: View, base: Places, part: Access, region: Region
    ) -> tuple[V, Selection] | list[tuple[V, Indices, Indices]]:
        """Where the elements of a region come from: a part of one value, or pieces of several: values, which elements
        of the region come from each, and which elements of the value they are (both flat).

        Raises Unproven unless each of them is known to have a value of the buffer."""
        pieces: list[tuple[V, Indices, Indices]] = []
        missing: Indices | None = None
        for tile in reversed(self.tiles[view.buffer]):
            shift = _shift(base, part, tile)
            if shift is None:
                continue
            if tile.value is None or tile.written is None or tile.view is None:
                raise Unproven(tile.loop)
            if tile.view.element != view.element:
                raise Unproven
            if missing is None:
                whole = selection(tile.written, view.layout, region, shift)
                if whole is not None:
                    return tile.value, whole
            found = indices(tile.written, view.layout, region, shift).reshape(-1)
            if missing is None:
                missing = np.arange(found.size)
            found = found[missing]
            if (found == POISON).any():
                raise Unproven
            here = found != MISSING
            if here.any():
                pieces.append((tile.value, missing[here], found[here]))
                missing = missing[~here]
            if not missing.size:
                return pieces
        raise Unproven


def _share(kernel: Kernel, left: int, right: int) -> bool:
    a, b = kernel.buffers[left], kernel.buffers[right]
    assert a.offset is not None and b.offset is not None
    return a.memory == b.memory and a.offset < b.offset + b.size and b.offset < a.offset + a.size


def _covers(new: Tile[V], old: Tile[V]) -> bool:
    """Whether all bytes of an older tile have been written anew, in every iteration."""
    shift = old.base - new.base
    if isinstance(shift, int):
        return shift + old.low >= new.low and shift + old.high <= new.high
    return bool(shift.min() + old.low >= new.low and shift.max() + old.high <= new.high)


def _shift(base: Places, part: Access, tile: Tile[V]) -> int | None:
    """By how many bytes a view lies behind a tile, None where they share no byte in any iteration.

    Raises Unproven where they share bytes in different ways."""
    shift = base - tile.base
    if isinstance(shift, int):
        return shift if shift + part.low < tile.high and shift + part.high > tile.low else None
    least, most = int(shift.min()), int(shift.max())
    if least == most:
        return least if least + part.low < tile.high and least + part.high > tile.low else None
    if ((shift + part.low < tile.high) & (shift + part.high > tile.low)).any():
        raise Unproven(tile.loop)
    return None


def inside(buffer: Buffer, align: int, base: Places, part: Access, size: int) -> bool:
    """Whether a view is aligned and the part of it lies in one slot of its buffer, in every iteration: the rule of
    places.py. The blocks around the part must lie in a memory of `size` bytes. Off chip, addresses count from the start
    of the buffer, and the launch looks at the blocks."""
    first, slot = buffer.offset or 0, buffer.size // buffer.slots
    least, most = (base, base) if isinstance(base, int) else (int(base.min()), int(base.max()))
    if least + part.low < first or most + part.high > first + buffer.size:
        return False
    if buffer.offset is not None and (least + part.offset < 0 or most + part.end > size):
        return False
    if buffer.slots > 1:
        same = (base + part.low - first) // slot == (base + part.high - 1 - first) // slot
        if not np.all(same):
            return False
    return align == 1 or not np.any(base % align)
