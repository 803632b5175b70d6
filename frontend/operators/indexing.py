"""Elements chosen by data: gathers, scatters, one-hot vectors, the greatest k."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import StringAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects import graph
from ...dialects.dtypes import element
from ...dialects.graph_types import tensor_type
from ..builder import integer, kind_of, shape_of
from ..errors import Unsupported
from ..node import Handler, Node, normalized
from .shape import pick, runs

_MOST_SLICES = 16
"""Known indices that fall into more runs than this are looked up like unknown ones."""


def gather(node: Node) -> SSAValue:
    """Slices along an axis; known indices become slices of the program."""
    shape = node.shape(0)
    axis = node.axis("axis", 0, len(shape))
    if node.is_constant(1):
        index = node.array(1, "the indices").astype(np.int64)
        flat = np.where(index < 0, index + shape[axis], index).reshape(-1)
        if np.any((flat < 0) | (flat >= shape[axis])):
            raise Unsupported(f"an index is outside of {shape[axis]} elements")
        if len(flat) and len(runs(flat)) <= _MOST_SLICES:
            picked = pick(node, node.ssa(0), axis, flat)
            return node.build.reshape(picked, [*shape[:axis], *index.shape, *shape[axis + 1 :]])
    return looked_up(node, node.ssa(0), node.ssa(1), axis)


def looked_up(node: Node, table: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
    """Slices of a table at indices; stored tables are read before what is computed from them element by element.

    (q · s)[i] becomes q[i] · s[i], where there are fewer indices than slices: a quantised table stays as it is stored,
    and only what is looked up is dequantised.
    """
    computed, shape = table.owner, shape_of(table)
    if (
        not isinstance(computed, graph.CastOp | graph.ElementwiseOp)
        or math.prod(shape_of(indices)) >= shape[axis]
        or not _is_stored(table)
    ):
        return lookup(node, table, indices, axis, is_finite(node, table))
    parts: list[SSAValue] = []
    for value in computed.operands:
        own = shape_of(value)
        place = axis - (len(shape) - len(own))  # shapes are aligned at their ends
        if place < 0:
            parts.append(value)
        elif own[place] == 1:
            ones = (1,) * len(shape_of(indices))
            parts.append(node.build.reshape(value, [*own[:place], *ones, *own[place + 1 :]]))
        else:
            parts.append(looked_up(node, value, indices, place))
    kind = tensor_type(element(table.type).attribute, [*shape[:axis], *shape_of(indices), *shape[axis + 1 :]])
    return node.build.insert(type(computed).make(parts, kind, computed.properties))


def _is_stored(value: SSAValue) -> bool:
    """Whether a value is computed element by element from stored constants alone."""
    op = value.owner
    if isinstance(op, graph.CastOp | graph.ElementwiseOp):
        return all(_is_stored(operand) for operand in op.operands)
    if isinstance(op, graph.ReshapeOp):
        op = op.operands[0].owner
    return isinstance(op, graph.WeightOp | graph.ConstantOp)


def is_finite(node: Node, table: SSAValue) -> bool:
    """Whether a value is a stored table of numbers, none of them NaN or infinite."""
    if isinstance(table.owner, graph.ReshapeOp):
        return is_finite(node, table.owner.operands[0])
    if not isinstance(table.owner, graph.WeightOp):
        return False
    array = node.build.weights[table.owner.key.data]
    return array.dtype.kind in "iu" or bool(np.all(np.isfinite(array.astype(np.float32))))


def lookup(node: Node, x: SSAValue, indices: SSAValue, axis: int, finite: bool = False) -> SSAValue:
    """`graph.gather`."""
    properties: dict[str, Attribute] = {"axis": integer(axis)}
    if finite:
        properties["finite"] = UnitAttr()
    return node.build.named(graph.GatherOp, x, indices, **properties)


def gather_elements(node: Node) -> SSAValue:
    """An index for each element of the result."""
    axis = node.axis("axis", 0, len(node.shape(0)))
    return node.build.named(graph.GatherElementsOp, node.ssa(0), node.ssa(1), axis=integer(axis))


def linear_index(node: Node, indices: SSAValue, sizes: tuple[int, ...], batch: int) -> SSAValue:
    """[…, k] indices into dimensions of these sizes as one index [n] each, behind those of the batches."""
    build = node.build
    shape = shape_of(indices)
    k, count = shape[-1], math.prod(shape[:-1])
    flat = build.cast(build.reshape(indices, [count, k]), "i32")
    bounds = build.constant(np.asarray(sizes[:k], np.int32))
    negative = build.map("lt", flat, build.scalar(0, flat))
    flat = build.where(negative, build.map("add", flat, bounds), flat)
    strides = [math.prod(sizes[i + 1 : k]) for i in range(k)]
    total = build.reduce("sum", build.map("mul", flat, build.constant(np.asarray(strides, np.int32))), [1], False)
    if batch > 1:
        rows = build.iota([batch, count // batch], 0, "i32")
        offset = build.map("mul", rows, build.scalar(math.prod(sizes[:k]), rows))
        total = build.map("add", total, build.reshape(offset, [count]))
    return total


def gather_nd(node: Node) -> SSAValue:
    """Slices at tuples of indices."""
    shape, places = node.shape(0), node.shape(1)
    b, k = node.int("batch_dims", 0), places[-1]
    batch = math.prod(shape[:b])
    rest = shape[b + k :]
    table = node.build.reshape(node.ssa(0), [batch * math.prod(shape[b : b + k]), math.prod(rest)])
    known = known_index(node, shape[b : b + k], batch) if node.is_constant(1) else None
    if known is not None and len(runs(known)) <= _MOST_SLICES:
        return node.build.reshape(pick(node, table, 0, known), [*places[:-1], *rest])
    index = linear_index(node, node.ssa(1), shape[b:], batch)
    return node.build.reshape(looked_up(node, table, index, 0), [*places[:-1], *rest])


def known_index(node: Node, sizes: tuple[int, ...], batch: int) -> npt.NDArray[np.int64]:
    """As `linear_index`, of indices that are known now. Raises Unsupported for one outside of its dimension."""
    index = node.array(1, "the indices").astype(np.int64).reshape(-1, len(sizes))
    index = np.where(index < 0, index + np.asarray(sizes), index)
    if np.any((index < 0) | (index >= np.asarray(sizes))):
        raise Unsupported(f"an index is outside of {'x'.join(map(str, sizes))} elements")
    flat: npt.NDArray[np.int64] = np.asarray(np.ravel_multi_index(tuple(index.T), sizes), np.int64)
    return flat + np.repeat(np.arange(batch), len(flat) // batch) * math.prod(sizes)


def _reduction(node: Node) -> StringAttr:
    return StringAttr(node.text("reduction", "none"))


def scatter_elements(node: Node) -> SSAValue:
    """An index for each update."""
    axis = node.axis("axis", 0, len(node.shape(0)))
    operands = [node.ssa(i) for i in range(3)]
    return node.build.named(graph.ScatterElementsOp, *operands, axis=integer(axis), reduction=_reduction(node))


def scatter_nd(node: Node) -> SSAValue:
    """Slices replaced at tuples of indices."""
    shape, places = node.shape(0), node.shape(1)
    k = places[-1]
    index = linear_index(node, node.ssa(1), shape, 1)
    rest, count = math.prod(shape[k:]), shape_of(index)[0]
    data = node.build.reshape(node.ssa(0), [math.prod(shape[:k]), rest])
    wide = node.build.expand(node.build.reshape(index, [count, 1]), [count, rest])
    updates = node.build.reshape(node.ssa(2), [count, rest])
    found = node.build.named(graph.ScatterElementsOp, data, wide, updates, axis=integer(0), reduction=_reduction(node))
    return node.build.reshape(found, shape)


def one_hot(node: Node) -> SSAValue:
    """on where the position along a new axis is the index, else off."""
    indices = node.ssa(0)
    shape = list(shape_of(indices))
    depth = int(node.number(1, "the depth"))
    axis = normalized(node.int("axis", -1), len(shape) + 1)
    build = node.build
    if element(indices.type).kind != "int":
        indices = build.cast(indices, "i32")
    negative = build.map("lt", indices, build.scalar(0, indices))
    wrapped = build.where(negative, build.map("add", indices, build.scalar(depth, indices)), indices)
    spread = build.reshape(wrapped, [*shape[:axis], 1, *shape[axis:]])
    places = build.iota([depth if d == axis else 1 for d in range(len(shape) + 1)], axis, kind_of(spread))
    hit = build.map("eq", spread, places)
    values = node.ssa(2)
    off, on = (build.reshape(build.take(values, 0, i, 1), ()) for i in (0, 1))
    return build.where(hit, on, off)


def top_k(node: Node) -> list[SSAValue]:
    """An element's rank is how many go before it; the element of rank r comes out at place r."""
    x, shape = node.ssa(0), node.shape(0)
    k = int(node.number(1, "k")) if node.version >= 10 else node.int("k")
    axis, rank = node.axis("axis", -1, len(shape)), len(shape)
    build, n = node.build, shape[axis]
    if not 1 <= k <= n:
        raise Unsupported(f"k = {k} of {n} elements")
    own, other = [*shape[: axis + 1], 1, *shape[axis + 1 :]], [*shape[:axis], 1, *shape[axis:]]
    mine, theirs = build.reshape(x, own), build.reshape(x, other)
    i = build.iota([n if d == axis else 1 for d in range(rank + 1)], axis, "i32")
    j = build.iota([n if d == axis + 1 else 1 for d in range(rank + 1)], axis + 1, "i32")
    ahead = build.map("gt" if node.flag("largest", True) else "lt", theirs, mine)
    tied = build.map("and", build.map("eq", theirs, mine), build.map("lt", j, i))
    before = build.cast(build.map("or", ahead, tied), "i32")
    ranks = build.reduce("sum", before, [axis + 1])  # […, n, 1, …]
    places = build.iota([k if d == axis + 1 else 1 for d in range(rank + 1)], axis + 1, "i32")
    hit = build.map("eq", ranks, places)  # […, n, k, …]
    out = [k if d == axis else s for d, s in enumerate(shape)]
    values = build.reduce("sum", build.where(hit, mine, build.scalar(0, mine)), [axis])
    indices = build.reduce("sum", build.where(hit, i, build.scalar(0, i)), [axis])
    return [build.reshape(values, out), build.cast(build.reshape(indices, out), "i64")]


def hardmax(node: Node) -> SSAValue:
    """1 at the first greatest element along the axis, 0 elsewhere."""
    x, shape = node.ssa(0), node.shape(0)
    rank = len(shape)
    axis = node.axis("axis", -1 if node.version >= 13 else 1, rank)
    build = node.build
    flat = x if node.version >= 13 else build.reshape(x, [math.prod(shape[:axis]), math.prod(shape[axis:])])
    along = axis if node.version >= 13 else 1
    place = build.cast(build.named(graph.ArgMaxOp, flat, axis=integer(along)), "i32")
    hit = build.map("eq", place, build.iota(shape_of(flat), along, "i32"))
    return build.reshape(build.cast(hit, kind_of(x)), shape)


TABLE: dict[str, Handler] = {
    "Gather": gather,
    "GatherElements": gather_elements,
    "GatherND": gather_nd,
    "ScatterElements": scatter_elements,
    "Scatter": scatter_elements,
    "ScatterND": scatter_nd,
    "OneHot": one_hot,
    "TopK": top_k,
    "Hardmax": hardmax,
}
