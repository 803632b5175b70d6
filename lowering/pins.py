"""Pinned tiles: what part of a load stays on chip while an outer loop goes round, and the loop that is split for it.

In `for a: for b:` the tiles of a load that varies along b only are brought again for every a. With 3 of 8 pinned:

    pin tiles 0…2
    for a:  for b in 0…2: use the pinned ones
            for b in 3…7: load a tile, use it

The traffic of the load falls from A·8 tiles to 3 + A·5.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..dialects.errors import UserError
from .axes import Axis
from .group import Group, Node


@dataclass(frozen=True, eq=False)
class Pinned:
    """The first `count` tiles of `axis`, whole along the axes inside, with the axes `fixed` at one tile."""

    axis: Axis
    fixed: frozenset[Axis]
    count: int


def pin_axis(
    load: Node, hold: frozenset[Axis], rank: Mapping[Axis, int], windowed: frozenset[Axis]
) -> tuple[Axis, frozenset[Axis]] | None:
    """The axis whose loop is split if tiles of a load are pinned, and the axes that are fixed when they are brought.

    The outermost loop that a load is repeated by, though it does not vary along it, goes round them. None if no loop
    does, or the load reads a window along the axis, tiles of which overlap.
    """
    inside = sorted(rank, key=lambda axis: rank[axis])
    around = next((rank[a] for a in inside if a not in hold and any(rank[h] > rank[a] for h in hold)), None)
    if around is None:
        return None
    axis = next(a for a in inside[around:] if a in hold)
    fixed = frozenset(a for a in inside[:around] if a in hold)
    return None if axis in windowed else (axis, fixed)


def pinned(
    group: Group,
    load: Node,
    hold: frozenset[Axis],
    rank: Mapping[Axis, int],
    tiles: Mapping[Axis, int],
    count: int,
) -> Pinned:
    """Raises UserError where no tiles of a load can be pinned, or not as many."""
    windowed = frozenset(axis for expr, w in zip(load.index, load.windows, strict=True) if w for axis in expr.terms)
    found = pin_axis(load, hold, rank, windowed) if load.gathers is None else None
    number = group.loads.index(load)
    if found is None:
        raise UserError(f"schedule pins tiles of load {number}, which no outer loop repeats", load.location)
    axis, fixed = found
    trips = -(-axis.extent // tiles[axis])
    if count >= trips:
        raise UserError(
            f"schedule pins {count} tiles of load {number}, fewer than its {trips} along '{group.names[axis]}' can be",
            load.location,
        )
    return Pinned(axis, fixed, count)
