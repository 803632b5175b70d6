"""Which tiles of a loop are walked, as a fixed list of sections whose bounds depend on the outer tile.

Per outer tile every tile of the loop is left out, walked with its masks, or walked without them. A section is one loop
in the kernel: a stretch of tiles of one kind, from `lower` to `upper` of each outer tile (empty where they meet).

    causal, 4 × 4 tiles     M . . .        section 1, without masks: from 0 to i
                            F M . .        section 2, with masks:    from i to i + 1
                            F F M .
                            F F F M

Where that would be too many sections, a loop over *rounds* goes around them, in each of which they have other bounds:

    blocks, 3 × 7 tiles     F . F . F . F  one section, without masks, in four rounds:
                            . F . . F F .  [0, 1), [2, 3), [4, 5), [6, 7) of outer tile 0,
                            F F F . . F .  [1, 2), [4, 6) of outer tile 1, [0, 3), [5, 6) of outer tile 2
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
BOUNDS = 1024
"""Stretches, over all outer tiles, that bounds are made for at most: each is a term of them."""
SHARE = 0.25
"""Of the walked tiles, how many must do without masks for a body of their own to be worth it (assumed)."""
Run: TypeAlias = tuple[int, int, int]
"""Kind, first tile, tile after the last."""


@dataclass(frozen=True, eq=False)
class Section:
    """One loop: its body leaves out the masks (`full`) or not. Its bounds have a dimension for each outer axis, and one
    for the rounds (1 if no loop goes around the sections)."""

    full: bool
    lower: IntArray
    upper: IntArray

    @property
    def trips(self) -> IntArray:
        return self.upper - self.lower


def sections_of(kinds: IntArray) -> list[Section]:
    """The sections for a table of kinds: outer tiles (any number of dimensions), then the tiles of the loop.

    No tile that is not EMPTY is left out, and none that is not FULL loses its masks. Where that takes more than MOST
    sections there are rounds of one or two of them; if these have too many bounds, tiles between others are walked
    though they are empty.
    """
    walked, full = int((kinds != EMPTY).sum()), int((kinds == FULL).sum())
    if full < SHARE * walked:
        kinds = np.minimum(kinds, MASKED)
    rows = [_runs(row) for row in kinds.reshape(-1, kinds.shape[-1]).tolist()]
    outer = kinds.shape[:-1]
    found = min((_placed(rows, alternating, outer) for alternating in ((MASKED, FULL), (FULL, MASKED))), key=len)
    if len(found) <= MOST:
        return found
    only = sorted({kind for row in rows for kind, _, _ in row})
    found = _placed(rows, only, outer, rounds=True)
    if found[0].lower.size > BOUNDS:
        found = _placed([_joined(_masked(row), MOST) for row in rows], (MASKED,), outer)
    return found


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


def _placed(
    rows: Sequence[Sequence[Run]], kinds: Sequence[int], outer: Sequence[int], rounds: bool = False
) -> list[Section]:
    """Runs in places, each in the first of its kind after the one before it; the kinds of places take turns.

    A place is a section, or if there are `rounds` (as many sections as kinds) one of a round.
    """
    where: list[dict[int, Run]] = []
    for row in rows:
        at, placed = -1, dict[int, Run]()
        for run in row:
            at += 1
            while kinds[at % len(kinds)] != run[0]:
                at += 1
            placed[at] = run
        where.append(placed)
    places = max((at for placed in where for at in placed), default=0) + 1
    count = len(kinds) if rounds else places
    bounds = np.zeros((count, 2, len(rows), -(-places // count)), np.int64)
    for number, placed in enumerate(where):
        rest = 0  # a place that is empty here stands where the walk is: bounds then change evenly from tile to tile
        for at in range(count * bounds.shape[-1]):
            _, low, high = placed.get(at, (EMPTY, rest, rest))
            bounds[at % count, :, number, at // count] = low, high
            rest = high
    shape = (*outer, bounds.shape[-1])
    made = [Section(kinds[n % len(kinds)] == FULL, *(ends.reshape(shape) for ends in bounds[n])) for n in range(count)]
    return [section for section in made if section.trips.any()]
