"""The bytes of one memory, and which of them hold a value."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .access import Access

Array = npt.NDArray[Any]

# A defined byte is 1, so that an element of n defined bytes reads as n ones in an unsigned integer of its width.
_DEFINED = {1: np.uint8(1), 2: np.uint16(0x0101), 4: np.uint32(0x01010101), 8: np.uint64(0x0101010101010101)}
_MASKS: dict[int, np.dtype[Any]] = {width: value.dtype for width, value in _DEFINED.items()}


class MemoryBytes:
    """`size` bytes. Without `poison` every byte counts as defined and nothing is tracked."""

    def __init__(self, size: int, poison: bool) -> None:
        self.size = size
        self.data: Array = np.zeros(size, np.uint8)
        self.defined: Array | None = np.zeros(size, np.uint8) if poison else None

    def forget(self) -> None:
        """Every byte becomes poison."""
        if self.defined is not None:
            self.defined[...] = 0

    def poison(self, access: Access, base: int, width: int) -> None:
        """The elements of a region become poison."""
        self._mark(access, base, width, 0)

    def define(self, access: Access, base: int, width: int) -> None:
        """The elements of a region hold values."""
        self._mark(access, base, width, 1)

    def _mark(self, access: Access, base: int, width: int, byte: int) -> None:
        if self.defined is None:
            return
        covered = access.bytes(self.defined, base)
        if covered is not None:
            covered[...] = byte
        else:
            access.write(self.defined, base, _MASKS[width], np.asarray(_DEFINED[width] * byte, _MASKS[width]))

    def first_poison(self, access: Access, base: int, width: int) -> tuple[int, ...] | None:
        """Position in the region of the first element that has a poison byte, None where there is none."""
        if self.defined is None:
            return None
        covered = access.bytes(self.defined.view(np.bool_), base)
        if covered is not None and covered.all():
            return None
        mask = access.read(self.defined, base, _MASKS[width])
        whole = mask == _DEFINED[width]
        if whole.all():
            return None
        return tuple(int(i) for i in np.unravel_index(int(np.argmin(whole)), whole.shape))
