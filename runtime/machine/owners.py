"""Which buffer a defined byte belongs to: small numbers, different for buffers that share bytes.

The planner gives the bytes of a dead buffer to the next one. A program that reads the new buffer before anything was
written to it would find the values of the old one, all of them defined: with an owner per byte they count as poison.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

Span: TypeAlias = tuple[int, int]
"""First byte, and the byte behind the last."""

MOST = 255
"""Owners that one byte of bookkeeping tells apart; 0 is nobody. Beyond that many at one byte they repeat."""


def owners(spans: Sequence[Span]) -> list[int]:
    """A number from 1 to 255 for each span; spans with a common byte have different ones.

    Spans are taken by their start, each gets the least number that none of those still open has.

    >>> owners([(0, 64), (64, 128), (32, 96)])
    [1, 1, 2]
    """
    found = [0] * len(spans)
    open_: list[tuple[int, int]] = []
    for number in sorted(range(len(spans)), key=lambda n: spans[n]):
        low, high = spans[number]
        open_ = [(end, owner) for end, owner in open_ if end > low]
        taken = {owner for _, owner in open_}
        free = next((owner for owner in range(1, MOST + 1) if owner not in taken), number % MOST + 1)
        found[number] = free
        open_.append((high, free))
    return found
