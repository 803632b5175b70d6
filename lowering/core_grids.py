"""Ways to divide the loops of a nest among cores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

from .axes import Axis
from .nest import Nest


def core_grids(nest: Nest, available: int) -> list[tuple[int, ...]]:
    """Cores per axis of the group, () for one core; never empty, the most promising first.

    First the one with the fewest tiles on the busiest core, of those the one with the fewest cores, outer loops divided
    rather than inner ones. Then, for each axis, the like with as many cores along it as leave that number: what is
    loaded outside a divided loop is loaded by all its cores, and that differs from axis to axis. Last, one core.
    """
    axes = nest.divisible
    found = _best_grids(tuple(nest.trips(axis) for axis in axes), available)
    return list(dict.fromkeys([*(_by_axis(nest, axes, grid) for grid in found), ()]))


@lru_cache(maxsize=1 << 12)
def _best_grids(trips: tuple[int, ...], available: int) -> tuple[tuple[int, ...], ...]:
    """The most promising grid for loops of so many tiles, and for each loop the one with most cores along it."""
    grids = list(_grids(trips, available))

    def weigh(grid: tuple[int, ...]) -> tuple[object, ...]:
        return busiest(grid), prod(grid), [-cores for cores in grid]

    def busiest(grid: tuple[int, ...]) -> int:
        return prod(-(-count // cores) for count, cores in zip(trips, grid, strict=True))

    best = min(grids, key=weigh)
    alike = [grid for grid in grids if busiest(grid) == busiest(best)]
    return best, *(min(alike, key=lambda grid: (-grid[place], weigh(grid))) for place in range(len(trips)))


def _grids(trips: Sequence[int], available: int) -> Iterator[tuple[int, ...]]:
    """Every number of cores per loop that is the least for its greatest share, within `available` in all."""
    if not trips:
        yield ()
        return
    count = trips[0]
    for cores in sorted({-(-count // -(-count // n)) for n in range(1, min(count, available) + 1)}):
        for rest in _grids(trips[1:], available // cores):
            yield (cores, *rest)


def _by_axis(nest: Nest, axes: Sequence[Axis], grid: Sequence[int]) -> tuple[int, ...]:
    cores = dict(zip(axes, grid, strict=True))
    return tuple(cores.get(axis, 1) for axis in nest.group.axes) if prod(grid) > 1 else ()
