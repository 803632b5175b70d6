"""The bytes of one memory, and whose value each of them holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .access import ALONE, Access, Lead

Array = npt.NDArray[Any]

# The owner of a byte is a number from 1 to 255, 0 is poison; an element of n bytes of owner o reads as o · 0x0101…01 in
# an unsigned integer of its width.
_ONES = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}
_MASKS: dict[int, np.dtype[Any]] = {width: value.dtype for width, value in _ONES.items()}


class MemoryBytes:
    """`size` bytes. Without `poison` every byte counts as defined and nothing is tracked; unless `owned`, all owners
    count as one."""

    def __init__(self, size: int, poison: bool, owned: bool = True) -> None:
        self.size = size
        self.owned = owned
        self.data: Array = np.zeros(size, np.uint8)
        self.owner: Array | None = np.zeros(size, np.uint8) if poison else None
        self._place = self.data.ctypes.data

    def check_place(self) -> None:
        """Raises AssertionError unless these are the bytes allocated at the start: nothing is allocated later."""
        moved = self.data.ctypes.data != self._place or len(self.data) != self.size
        assert not moved, f"{len(self.data)} bytes were allocated after the start, which allocated {self.size}"

    def forget(self) -> None:
        """Every byte becomes poison."""
        if self.owner is not None:
            self.owner[...] = 0

    def poison(self, access: Access, base: int, width: int) -> None:
        """The elements of a region become poison."""
        self.define(access, base, width, 0)

    def define(self, access: Access, base: int, width: int, owner: int, lead: Lead = ALONE) -> None:
        """The elements of a region, at all places of `lead`, hold values of `owner`."""
        if self.owner is None:
            return
        owner = owner if self.owned else min(owner, 1)
        covered = access.bytes(self.owner, base, lead)
        if covered is not None:
            covered[...] = owner
        else:
            access.write(self.owner, base, _MASKS[width], np.asarray(_ONES[width] * owner, _MASKS[width]), lead)

    def first_poison(
        self, access: Access, base: int, width: int, owner: int, chosen: tuple[Array, ...] | None = None
    ) -> tuple[int, ...] | None:
        """Position in the region of the first element with a byte that is not `owner`'s, None where there is none;
        of the elements at the indices `chosen`, if given, the position among these."""
        if self.owner is None:
            return None
        owner = owner if self.owned else 1
        covered = access.bytes(self.owner, base) if chosen is None else None
        if covered is not None and (covered == owner).all():
            return None
        mask = access.read(self.owner, base, _MASKS[width])
        if chosen is not None:
            mask = mask[chosen]
        whole = mask == _ONES[width] * owner
        if whole.all():
            return None
        return tuple(int(i) for i in np.unravel_index(int(np.argmin(whole)), whole.shape))

    def owner_of(self, byte: int, width: int) -> int:
        """The number in the first byte of an element that is not the same throughout, or that of all of them."""
        assert self.owner is not None
        return int(self.owner[byte : byte + width].min())
