"""A nest: the loops of a group under a schedule, and what stands in each of them. `nest_build` places it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeAlias

from ..dialects.schedule import Schedule
from .axes import Axis
from .cuts import Cut, Cutter
from .group import Group, Node, Output
from .pins import Pinned


@dataclass(eq=False)
class Load:
    """Brings the region of an input that the open loops fix; `fixed` are the looped axes that it depends on."""

    node: Node
    fixed: frozenset[Axis]


@dataclass(eq=False)
class Pin:
    """Brings the tiles of a load that stay while outer loops go round; `fixed` as for Load."""

    node: Node
    fixed: frozenset[Axis]


@dataclass(eq=False)
class Slice:
    """The part of a loaded region that one use needs."""

    node: Node


@dataclass(eq=False)
class Compute:
    """A map, expand, iota, or a reduction that lies within a tile."""

    node: Node


@dataclass(eq=False)
class Accumulate:
    """One step of a reduction over looped axes; `loops` are its own loops, outermost first."""

    node: Node
    loops: tuple[Axis, ...]


@dataclass(eq=False)
class Store:
    output: Output


@dataclass(eq=False)
class Loop:
    """A loop over the tiles of an axis, carrying the accumulators of the reductions that it serves."""

    axis: Axis
    carried: list[Node]
    body: list[Item] = field(default_factory=list["Item"])


Item: TypeAlias = Load | Pin | Slice | Compute | Accumulate | Store | Loop
Goal: TypeAlias = Node | Output


@dataclass(eq=False)
class Nest:
    """The placed items of a group under a schedule; the axes by their tiles."""

    group: Group
    schedule: Schedule
    items: list[Item]
    tiles: dict[Axis, int]
    passes: int
    """The most loops over one axis that the reductions of one place need, one after another."""
    cutter: Cutter
    pins: Mapping[Node, Pinned]

    @cached_property
    def cuts(self) -> dict[Loop, Cut]:
        """The loops that are not walked whole, or not with all their masks; none of them is inside another."""
        found: dict[Loop, Cut] = {}
        self._cut(self.items, (), found)
        return found

    def _cut(self, items: Sequence[Item], path: tuple[Axis, ...], found: dict[Loop, Cut]) -> None:
        for item in items:
            if not isinstance(item, Loop):
                continue
            cut = None
            if not stores(item):
                inner = [node for loop in inside(item) for node in loop.carried]
                cut = self.cutter.cut(item.axis, item.carried, path, self.tiles, inner)
            if cut is None:
                self._cut(item.body, (*path, item.axis), found)
            else:
                found[item] = cut

    def splits(self, loop: Loop) -> list[int]:
        """Where a loop is split because of pinned tiles, in ascending order."""
        inside_it = {item.node for each in (loop, *inside(loop)) for item in each.body if isinstance(item, Load)}
        return sorted({pin.count for node, pin in self.pins.items() if pin.axis is loop.axis and node in inside_it})

    @cached_property
    def looped_axes(self) -> frozenset[Axis]:
        return frozenset(axis for axis in self.group.axes if self.looped(axis))

    def looped(self, axis: Axis) -> bool:
        return self.tiles[axis] < axis.extent

    def trips(self, axis: Axis) -> int:
        return -(-axis.extent // self.tiles[axis])

    @cached_property
    def cores(self) -> dict[Axis, int]:
        """The axes that are divided among several cores, and among how many."""
        given = zip(self.group.axes, self.schedule.cores, strict=True) if self.schedule.cores else ()
        return {axis: cores for axis, cores in given if cores > 1}

    def divided(self, loop: Loop) -> int:
        """Among how many cores a loop is divided: one that writes results over an axis that is."""
        return self.cores.get(loop.axis, 1) if stores(loop) and not loop.carried else 1

    @cached_property
    def divisible(self) -> tuple[Axis, ...]:
        """The axes that can be divided among cores, outermost loop first: every result is written in a loop over it
        whose iterations do not depend on one another."""
        return tuple(_around_all(self.items, ()))

    @property
    def strategy(self) -> str:
        if any(node.cascade for node in self.group.nodes):
            return "online"
        streamed = any(self.looped(axis) for axis in self.group.reduced - self.group.taps)
        return "resident" if not streamed else "online" if self.passes <= 1 else "multipass"


def _around_all(items: Sequence[Item], path: tuple[Axis, ...]) -> list[Axis]:
    """The axes of the loops around every store in `items`, those in `path` too if there is any store."""
    found: list[list[Axis]] = []
    for item in items:
        if isinstance(item, Store):
            found.append(list(path))
        elif isinstance(item, Loop) and stores(item):
            found.append(_around_all(item.body, path if item.carried else (*path, item.axis)))
    first, *others = found or [[]]
    return [axis for axis in first if all(axis in other for other in others)]


def inside(loop: Loop) -> Iterator[Loop]:
    """The loops inside a loop."""
    for item in loop.body:
        if isinstance(item, Loop):
            yield item
            yield from inside(item)


def stores(loop: Loop) -> bool:
    """Whether a loop writes results."""
    return any(isinstance(item, Store) for each in (loop, *inside(loop)) for item in each.body)


def default_hold(node: Node, looped: Iterable[Axis]) -> frozenset[Axis]:
    """Fixed axes of a load unless the schedule says otherwise: all it varies along, but for the taps of windows."""
    return (node.present & frozenset(looped)) - node.taps


def is_cut(load: Node, held: frozenset[Axis], looped: frozenset[Axis]) -> bool:
    """Whether uses of a load held at these axes need a part of what it brings."""
    return held != load.present & looped or any(load.windows)
