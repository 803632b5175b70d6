"""Where a value's elements are: frames of tiles, regions of inputs, and the affine maps between them.

A *frame* is the list of axes that the dimensions of a tile stand for (None: a dimension of extent 1 that stands for
nothing). A *region* is what one load brings: a dimension per axis, or per window of an input dimension.
A 3-tap window of stride 1 over 8 outputs is one dimension of (8 - 1)·1 + (3 - 1)·1 + 1 = 10 input positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from .axes import Axis, Linear
from .group import Group, Node, Window
from .nest import Nest
from .pins import Pinned

Frame = tuple[Axis | None, ...]


@dataclass(frozen=True, eq=False)
class RegionDim:
    """One dimension of a loaded region: an axis, or the window of input dimension `index`."""

    extent: int
    axis: Axis
    window: Window | None = None
    index: int = -1


def frame_of(group: Group, axes: frozenset[Axis], extents: Mapping[Axis, int]) -> Frame:
    """The canonical frame of a tile that varies along `axes`: those of extent above 1, or one unit dimension."""
    frame = tuple(axis for axis in group.axes if axis in axes and extents[axis] > 1)
    return frame or (None,)


def held_extent(nest: Nest, axis: Axis, fixed: frozenset[Axis], pin: Pinned | None = None) -> int:
    """Elements of an axis in a region loaded with the axes of `fixed` at one tile, `pin` at some."""
    if pin is not None and axis is pin.axis:
        return nest.tiles[axis] * pin.count
    return nest.tiles[axis] if axis in fixed else axis.extent


def window_extent(expr: Linear, window: Window, base: int) -> int:
    """Input positions that `base` steps of a window cover."""
    reach = sum((tap.extent - 1) * expr.terms[tap] for tap in window.taps)
    return (base - 1) * expr.terms[window.base] + reach + 1


def region_of(nest: Nest, node: Node, fixed: frozenset[Axis], pin: Pinned | None = None) -> list[RegionDim]:
    """The dimensions of what a load (or of its pinned tiles) brings, in canonical order; without those of extent 1."""
    dims: list[RegionDim] = []
    seen: set[Axis] = set()
    for position, (expr, window) in enumerate(zip(node.index, node.windows, strict=True)):
        if window is not None:
            extent = window_extent(expr, window, held_extent(nest, window.base, fixed))
            dims.append(RegionDim(extent, window.base, window, position))
            seen.update(expr.terms)
    for axis in node.present:
        if axis not in seen:
            dims.append(RegionDim(held_extent(nest, axis, fixed, pin), axis))
    rank = {axis: position for position, axis in enumerate(nest.group.axes)}
    return sorted((dim for dim in dims if dim.extent > 1), key=lambda dim: rank[dim.axis])


class Counters:
    """Affine expressions over the loop counters in reach: dims 0…n−1 of a map are these counters."""

    def __init__(self, order: Sequence[Axis]) -> None:
        self.dims = {axis: AffineDimExpr(position) for position, axis in enumerate(order)}
        self.count = len(order)

    def start(self, axis: Axis, tile: int) -> AffineExpr:
        """First element of the current tile of an axis."""
        if axis not in self.dims:
            return AffineConstantExpr(0)
        return scaled(self.dims[axis], tile)

    def left(self, axis: Axis, tile: int) -> AffineExpr:
        """Elements from the current tile's start to the end of the axis."""
        if axis not in self.dims:
            return AffineConstantExpr(axis.extent)
        return add(AffineConstantExpr(axis.extent), scaled(self.dims[axis], -tile))


def scaled(expr: AffineExpr, factor: int) -> AffineExpr:
    if isinstance(expr, AffineConstantExpr):
        return AffineConstantExpr(expr.value * factor)
    return expr if factor == 1 else expr * factor


def add(left: AffineExpr, right: AffineExpr) -> AffineExpr:
    if isinstance(left, AffineConstantExpr) and isinstance(right, AffineConstantExpr):
        return AffineConstantExpr(left.value + right.value)
    if isinstance(left, AffineConstantExpr):
        return right if left.value == 0 else add(right, left)
    if isinstance(right, AffineConstantExpr) and right.value == 0:
        return left
    return left + right


def total(exprs: Sequence[AffineExpr]) -> AffineExpr:
    result: AffineExpr = AffineConstantExpr(0)
    for expr in exprs:
        result = add(result, expr)
    return result


def affine_map(dims: int, results: Sequence[AffineExpr]) -> AffineMap:
    return AffineMap(dims, 0, tuple(results))
