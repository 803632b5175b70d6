"""A point of the space that the search walks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..dialects.schedule import Sums

Slots: TypeAlias = Literal["one", "stream", "all"]
SLOT_MODES: tuple[Slots, ...] = ("one", "stream", "all")
"""Buffers with several slots: none, those of loads that change in the innermost loop, those of all loads in loops."""

MOST_SLOTS = 4
"""More than two hide a latency that is longer than the transfers."""


Skewed: TypeAlias = Literal[0, 1, 2]
"""Whether stages run ahead of one another: no; yes, with one buffer for what one hands to the next, which is filled
again while the next does something else; with two."""
SKEWS: tuple[Skewed, ...] = (0, 1, 2)


@dataclass(frozen=True)
class State:
    """A point of the space. `order` lists all axes, reduced ones last; a load is held at those of its axes that come
    before its entry of `levels` there, and has `pins` tiles pinned. `online` asks for the derived form of reductions
    that wait for one another, `skewed` for stages that run ahead (`Skewed`); `steps` as `Schedule.row_steps`; `cores`
    numbers the ways to divide the loops among cores (`core_grids`). `roomy`: what does not fit with all slots kept
    through their loops counts as too large. `depth`: slots of a buffer that has several. `sums` as `Schedule.sums`."""

    tiles: tuple[int, ...]
    order: tuple[int, ...]
    levels: tuple[int, ...]
    slots: Slots
    online: bool = False
    skewed: Skewed = 0
    pins: tuple[int, ...] = ()
    steps: int = 2
    cores: int = 0
    roomy: bool = False
    depth: int = 2
    sums: Sums = "vector"
