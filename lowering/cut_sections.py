"""Which tiles of a loop are walked, as a fixed list of sections whose bounds depend on the outer tile.

Per outer tile every tile of the loop is left out, walked with its masks, or walked without them. A section is one loop
in the kernel: a stretch of tiles of one kind, from `lower` to `upper` of each outer tile (empty where they meet).

    causal, 4 × 4 tiles     M . . .        section 1, without masks: from 0 to i
                            F M . .        section 2, with masks:    from i to i + 1
                            F F M .
                            F F F M
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

IntArray: TypeAlias = npt.NDArray[np.int64]
EMPTY, MASKED, FULL = 0, 1, 2
MOST = 4
"""Sections that a loop is cut into at most: each is a copy of its body."""
SHARE = 0.25
"""Of the walked tiles, how many must do without masks for a body of their own to be worth it (assumed)."""
Run: TypeAlias = tuple[int, int, int]
"""Kind, first tile, tile after the last."""


@dataclass(frozen=True, eq=False)
class Section:
    """One loop: its body leaves out the masks (`full`) or not; bounds by outer tile, in an array of the outer grid."""

    full: bool
    lower: IntArray
    upper: IntArray

    @property
    def trips(self) -> IntArray:
        return self.upper - self.lower


def sections_of(kinds: IntArray) -> list[Section]:
    """The sections for a table of kinds: outer tiles (any number of dimensions), then the tiles of the loop.

    No tile that is not EMPTY is left out, and none that is not FULL loses its masks; where that takes more than MOST
    sections, tiles between others are walked though they are empty.
    """
    walked, full = int((kinds != EMPTY).sum()), int((kinds == FULL).sum())
    if full < SHARE * walked:
        kinds = np.minimum(kinds, MASKED)
    rows = [_runs(row) for row in kinds.reshape(-1, kinds.shape[-1]).tolist()]
    found = min((_placed(rows, start) for start in (MASKED, FULL)), key=len)
    if len(found) > MOST:
        found = _placed([_joined(_masked(row), MOST) for row in rows], MASKED, alternate=False)
    shape = kinds.shape[:-1]
    return [Section(full, low.reshape(shape), high.reshape(shape)) for full, low, high in found]


def _runs(row: Sequence[int]) -> list[Run]:
    runs: list[Run] = []
    for position, kind in enumerate(row):
        if runs and runs[-1][0] == kind and runs[-1][2] == position:
            runs[-1] = (kind, runs[-1][1], position + 1)
        elif kind != EMPTY:
            runs.append((kind, position, position + 1))
    return runs


def _masked(row: Sequence[Run]) -> list[Run]:
    """The same tiles, all with their masks."""
    runs: list[Run] = []
    for _, low, high in row:
        if runs and runs[-1][2] == low:
            low = runs.pop()[1]
        runs.append((MASKED, low, high))
    return runs


def _joined(row: list[Run], most: int) -> list[Run]:
    """At most so many runs: those with the smallest gaps between them become one."""
    row = list(row)
    while len(row) > most:
        gap = min(range(len(row) - 1), key=lambda k: row[k + 1][1] - row[k][2])
        row[gap : gap + 2] = [(MASKED, row[gap][1], row[gap + 1][2])]
    return row


def _placed(rows: Sequence[Sequence[Run]], start: int, alternate: bool = True) -> list[tuple[bool, IntArray, IntArray]]:
    """Runs in sections of alternating kind (or all masked), each in the first that comes after the one before it."""
    other = MASKED + FULL - start
    where: list[list[tuple[int, Run]]] = []
    for row in rows:
        at, placed = -1, list[tuple[int, Run]]()
        for run in row:
            at += 1
            if alternate and (start if at % 2 == 0 else other) != run[0]:
                at += 1
            placed.append((at, run))
        where.append(placed)
    found: list[tuple[bool, IntArray, IntArray]] = []
    for section in sorted({at for placed in where for at, _ in placed}):
        bounds = np.zeros((2, len(rows)), np.int64)
        for number, placed in enumerate(where):
            here = next((run for at, run in placed if at == section), None)
            # A section that is empty here stands where the walk is: bounds then change evenly from tile to tile.
            rest = max((run[2] for at, run in placed if at < section), default=0)
            bounds[:, number] = (rest, rest) if here is None else here[1:]
        kind = (start if section % 2 == 0 else other) if alternate else MASKED
        found.append((kind == FULL, bounds[0], bounds[1]))
    return found
