"""Views in a group: of an input another way to load it, of a computed value other names of its axes."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import Operation
from xdsl.ir.affine import AffineMap

from ..dialects.graph_primitives import ViewOp
from ..dialects.index_map import IndexMap
from .axes import Axis, AxisSpace, Linear, NotFusable
from .group import Node


def load_view(
    space: AxisSpace,
    template: Node,
    op: ViewOp,
    map_: AffineMap,
    shape: tuple[int, ...],
    box: Sequence[tuple[int, int]],
) -> Node:
    """A view of an input is another way to load it."""
    normal = normal_form(map_, shape)
    dims = [[space.fresh(extent) for extent in extents] for extents in normal.atoms]
    replace: dict[Axis, Linear] = {}
    for axes, (terms, offset) in zip(template.dims, normal.exprs, strict=True):
        whole: dict[Axis, int] = {}
        for coefficient, d, i in terms:
            whole[dims[d][i]] = whole.get(dims[d][i], 0) + coefficient
        if len(axes) == 1:
            replace[axes[0]] = Linear(whole, offset)
            continue
        _spread(axes, whole, offset, replace)
    inside = [expr.substitute(replace) for expr in template.inside]
    fill = template.fill
    if any((low, high) != (0, size) for (low, high), size in zip(box, shape, strict=True)):
        if fill is not None and fill != op.fill:
            raise NotFusable("padding with two values")
        fill = op.fill
        for d, (low, high) in enumerate(box):
            position = Linear({axis: prod(a.extent for a in dims[d][k + 1 :]) for k, axis in enumerate(dims[d])})
            inside += [position.shifted(-low)] if low > 0 else []
            inside += [position.negated().shifted(high - 1)] if high < shape[d] else []
    index = [expr.substitute(replace) for expr in template.index]
    return Node("load", template.element, shape, dims, op, arg=template.arg, index=index, inside=inside, fill=fill)


def _spread(axes: Sequence[Axis], terms: dict[Axis, int], offset: int, replace: dict[Axis, Linear]) -> None:
    """Divides an index expression among the factors of a split dimension, where every term fits one factor."""
    if offset:
        raise NotFusable("a slice of a split dimension")
    remaining = dict(terms)
    scale = prod(axis.extent for axis in axes)
    for axis in axes:
        size, scale = scale, scale // axis.extent
        mine = {a: c for a, c in remaining.items() if c % scale == 0 and c * (a.extent - 1) < size and c >= scale}
        if sum(c // scale * (a.extent - 1) for a, c in mine.items()) >= axis.extent:
            raise NotFusable("an index that carries over the factors of a split dimension")
        replace[axis] = Linear({a: c // scale for a, c in mine.items()})
        remaining = {a: c for a, c in remaining.items() if a not in mine}
    if remaining:
        raise NotFusable("an index that crosses the factors of a split dimension")


def rename_view(space: AxisSpace, node: Node, map_: AffineMap, shape: tuple[int, ...], op: Operation) -> Node:
    """A permutation, split, merge or broadcast: the same value with its axes in other dimensions."""
    normal = normal_form(map_, shape)
    atoms = [[space.fresh(extent) for extent in extents] for extents in normal.atoms]
    used: set[tuple[int, int]] = set()
    for p, (terms, offset) in enumerate(normal.exprs):
        ordered = sorted(terms, key=lambda term: -term[0])
        extents = [normal.atoms[d][i] for _, d, i in ordered]
        places = [prod(extents[k + 1 :]) for k in range(len(extents))]
        whole = offset == 0 and [c for c, _, _ in ordered] == places and prod(extents) == node.shape[p]
        if not whole or any((d, i) in used for _, d, i in ordered):
            raise NotFusable("a slice or window of a computed value")
        used.update((d, i) for _, d, i in ordered)
        space.unify(node.dims[p], [atoms[d][i] for _, d, i in ordered])
    return Node("view", node.element, shape, atoms, op, [node])


def normal_form(map_: AffineMap, shape: tuple[int, ...]) -> IndexMap:
    """The index map over atoms of the dimensions. Raises NotFusable if it has none."""
    found = IndexMap.try_affine(map_, shape)
    if found is None:
        raise NotFusable(f"the view {map_} does not split dimensions into factors")
    return found
