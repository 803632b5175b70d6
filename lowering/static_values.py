"""What can be known of values that do not depend on data, per tile: masks as predicates over positions.

A value is *static* if it is made of positions (iota) and constants only, constant tensors included. Over the positions
of a tile it lies in an interval, found by interval arithmetic from the intervals of its operands, for all tiles of a
grid at once. Where both ends are the same number the value is a constant of that tile: `j <= i` is true in every tile
below the diagonal, false in every tile above it, and not known in those that it crosses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..dialects.dtypes import ElementType, common_compute_type, element
from ..dialects.graph_primitives import IotaOp
from .axes import Axis
from .group import Group, Node
from .interval_rules import EXACT, apply_intervals, where_known
from .online_nodes import fn_of, number

Array: TypeAlias = npt.NDArray[np.float64]
Interval: TypeAlias = tuple[Array, Array]
"""Least and greatest value per tile of a grid; not a number where nothing is known."""


def static_nodes(group: Group) -> frozenset[Node]:
    """The nodes whose values depend on positions and constants only."""
    found: set[Node] = set()
    for node in group.nodes:
        made = node.kind in ("map", "expand") and bool(node.inputs) and all(source in found for source in node.inputs)
        known = node.table is not None if node.kind == "load" else node.kind == "constant" and number(node) is not None
        if made or known or node.kind == "iota":
            found.add(node)
    return frozenset(found)


def frontier(group: Group) -> tuple[Node, ...]:
    """The static values, varying with positions, that something else needs: what masks are made of."""
    static = static_nodes(group)
    used = {source for node in group.nodes if node not in static or node.kind == "expand" for source in node.inputs}
    made = [node for node in group.nodes if node.kind in ("map", "load") and node.present]
    return tuple(node for node in made if node in static and node in used)


@dataclass(frozen=True)
class Grid:
    """Tiles: one dimension of every array for each of `axes`, in tiles of so many positions; other axes are whole."""

    axes: tuple[Axis, ...]
    tiles: Mapping[Axis, int]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(-(-axis.extent // self.tiles[axis]) for axis in self.axes)

    def positions(self, axis: Axis) -> Interval:
        """The first and the last position of an axis in every tile."""
        if axis not in self.axes:
            return np.array(0.0), np.array(float(axis.extent - 1))
        tile = self.tiles[axis]
        first = np.arange(-(-axis.extent // tile), dtype=np.float64) * tile
        shape = [-1 if axis is other else 1 for other in self.axes]
        return first.reshape(shape), np.minimum(first + tile, axis.extent).reshape(shape) - 1

    def along(self, axes: Sequence[Axis], found: Interval) -> Interval:
        """Ends that have a dimension for each of `axes`, as those of the grid have; axes that it lacks are whole."""
        order = [axes.index(axis) for axis in self.axes if axis in axes]
        order += [d for d in range(len(axes)) if d not in order]
        shape = [found[0].shape[axes.index(axis)] if axis in axes else 1 for axis in self.axes]
        low, high = (end.transpose(order).reshape(shape) for end in found)
        return low, high


def constants(nodes: Iterable[Node], grid: Grid) -> dict[Node, Array]:
    """Per static node its value in every tile of the grid; not a number where it has several or is not known."""
    known: dict[Node, Interval] = {}
    found: dict[Node, Array] = {}
    for node in nodes:
        low, high = interval(node, grid, known)
        found[node] = np.broadcast_to(np.where(low == high, low, np.nan), grid.shape)
    return found


def interval(root: Node, grid: Grid, known: dict[Node, Interval]) -> Interval:
    """The interval of a static node in every tile of the grid; `known` are those found before, and grows."""
    stack = [(root, False)]
    while stack:
        node, entered = stack.pop()
        if node in known:
            continue
        if not entered:
            stack.append((node, True))
            stack += [(source, False) for source in node.inputs]
            continue
        made = _made(node, grid, [known[source] for source in node.inputs])
        known[node] = _held(element(node.element), made)
    return known[root]


def _made(node: Node, grid: Grid, operands: Sequence[Interval]) -> Interval:
    match node.kind:
        case "constant":
            value = number(node)
            assert value is not None
            return np.array(value), np.array(value)
        case "iota":
            assert isinstance(node.op, IotaOp)
            low = high = np.array(0.0)
            scale = 1
            for axis in reversed(node.dims[node.op.dim.value.data % len(node.dims)]):
                first, last = grid.positions(axis)
                low, high, scale = low + first * scale, high + last * scale, scale * axis.extent
            return low, high
        case "load":
            assert node.table is not None
            return grid.along(node.table.axes, node.table.ranges({axis: grid.tiles[axis] for axis in grid.axes}))
        case "expand":
            return operands[0]
        case _:
            return _mapped(node, operands)


def _mapped(node: Node, operands: Sequence[Interval]) -> Interval:
    """A scalar operator in the compute type of its operands; a cast computes nothing."""
    fn, kind = fn_of(node), element(node.element).kind
    if fn == "cast":
        return apply_intervals(fn, operands, kind)
    first = 1 if fn == "select" else 0
    compute = element(common_compute_type(source.element for source in node.inputs[first:]))
    lifted = [*operands[:first], *(_held(compute, operand) for operand in operands[first:])]
    found = apply_intervals(fn, lifted, kind)
    return found if kind == "bool" else _held(compute, found)


def _held(row: ElementType, value: Interval) -> Interval:
    """What becomes of an interval in an element type: floats may or may not be rounded where they are kept; of integers
    that wrap around, or that are not exact here, nothing is known."""
    low, high = value
    if row.kind == "int":
        info = np.iinfo(row.numpy)
        least, most = max(info.min, -EXACT), min(info.max, EXACT)
        return where_known((low >= least) & (high <= most), value)
    if row.kind == "float":
        with np.errstate(over="ignore"):
            rounded: list[Any] = [np.asarray(end).astype(row.numpy).astype(np.float64) for end in (low, high)]
        return np.minimum(low, rounded[0]), np.maximum(high, rounded[1])
    return value
