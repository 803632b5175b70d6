"""What the `fuse` pass does to a function before it joins ops: each value one place, each view one user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise, product
from math import prod

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineMap
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.dtypes import dense, element, splat
from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import Box, ConstantOp, ViewOp, WeightOp
from ..dialects.graph_types import ints_attr, static_shape
from ..dialects.index_map import IndexMap, reshape_affine


def prepare(function: FuncOp, views: bool) -> None:
    """Makes views of one number that number, drops what nobody uses, copies results that have no place of their own,
    fills what piecewise views leave out and copies what every user should have for itself; `views`: views too."""
    _fold_splats(function)
    _drop_dead(function)
    _copy_results(function)
    _fill_pieces(function)
    _split_shared(function, views)


def _fold_splats(function: FuncOp) -> None:
    """A view of a constant that is one number everywhere is such a constant: a reshape of it would have no bytes."""
    for op in list(function.body.block.ops):
        if isinstance(op, ViewOp) and len(op.args) == 1 and op.fill is None:
            source = op.args[0].owner
            number = splat(source.value) if isinstance(source, ConstantOp) else None
            if number is not None:
                shape, kind = static_shape(op.res.type), element(op.res.type).attribute
                constant = ConstantOp.make([], None, {"value": dense(np.broadcast_to(number, shape), kind)})
                constant.location = op.location
                constant.attributes.update(op.attributes)
                Rewriter.replace_op(op, constant)


def _drop_dead(function: FuncOp) -> None:
    """Ops whose results nobody uses would be kernels without a result."""
    for op in reversed(list(function.body.block.ops)):
        if op.results and not any(True for result in op.results for _ in result.uses):
            Rewriter.erase_op(op)


def _copy_results(function: FuncOp) -> None:
    """Gives every returned value a place of its own."""
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    seen: set[SSAValue] = set()
    for number, value in enumerate(list(last.operands)):
        root = value
        while isinstance(root.owner, ViewOp) and is_reshape(root.owner):
            root = root.owner.args[0]
        if isinstance(root, BlockArgument) or isinstance(root.owner, ConstantOp | WeightOp) or root in seen:
            rank = len(static_shape(value.type))
            maps: ArrayAttr[Attribute] = ArrayAttr([AffineMapAttr(AffineMap.identity(rank))])
            copy = ViewOp.create(operands=[value], result_types=[value.type], properties={"maps": maps})
            copy.location = last.location
            copy.attributes["tilewright.copy"] = StringAttr("result")
            Rewriter.insert_op(copy, InsertPoint.before(last))
            last.operands[number] = copy.res
        seen.add(root)


def _fill_pieces(function: FuncOp) -> None:
    """A piecewise view with a fill value gets pieces of a constant for what its boxes leave out."""
    for op in list(function.body.block.ops):
        if not isinstance(op, ViewOp) or op.fill is None or len(op.args) == 1:
            continue
        shape = static_shape(op.res.type)
        rank = len(shape)
        constant = ConstantOp.of(np.full((1,) * rank, op.fill_value), op.fill.type)
        constant.location = op.location
        boxes = [*op.boxes, *_left_out(op.boxes, shape)]
        added = len(boxes) - len(op.args)
        corner = AffineMap(rank, 0, (AffineConstantExpr(0),) * rank)
        maps: list[Attribute] = [*map(AffineMapAttr, op.affine_maps), *[AffineMapAttr(corner)] * added]
        properties = {
            "maps": ArrayAttr(maps),
            "lower": ArrayAttr([ints_attr(low for low, _ in box) for box in boxes]),
            "upper": ArrayAttr([ints_attr(high for _, high in box) for box in boxes]),
        }
        whole = ViewOp.create(
            operands=[*op.args, *[constant.res] * added],
            result_types=[op.res.type],
            properties=properties,
            attributes=dict(op.attributes),
            location=op.location,
        )
        Rewriter.insert_op(constant, InsertPoint.before(op))
        Rewriter.replace_op(op, whole)


def _left_out(boxes: Sequence[Box], shape: Sequence[int]) -> Iterator[Box]:
    """What disjoint boxes leave of a shape, as disjoint boxes: the cells of the grid of all their edges.

    Neighbouring cells are joined along the last dimension.
    """
    edges = [sorted({0, size, *(e for box in boxes for e in box[d])}) for d, size in enumerate(shape[:-1])]
    outer = [list(pairwise(cuts)) for cuts in edges]
    for cell in product(*outer):
        taken = sorted(
            box[-1]
            for box in boxes
            if all(low <= a and b <= high for (low, high), (a, b) in zip(box[:-1], cell, strict=True))
        )
        start = 0
        for low, high in [*taken, (shape[-1], shape[-1])]:
            if start < low:
                yield [*cell, (start, low)]
            start = high


def _split_shared(function: FuncOp, views: bool) -> None:
    """One user per splat constant, iota and, on demand, view, so that each can join its user's group.

    A piecewise view stays one: its pieces have to be stored, and once is enough.
    """
    for op in reversed(list(function.body.block.ops)):
        constant = isinstance(op, ConstantOp) and splat(op.value) is not None
        renaming = isinstance(op, ViewOp) and len(op.args) == 1 and views
        if not constant and not renaming and op.name != "graph.iota":
            continue
        for use in list(op.results[0].uses)[1:]:
            copy = op.clone()
            copy.location = op.location
            Rewriter.insert_op(copy, InsertPoint.before(op))
            use.operation.operands[use.index] = copy.results[0]


def is_reshape(op: Operation) -> bool:
    """Whether a view only gives the bytes of its operand another shape."""
    if not isinstance(op, ViewOp) or len(op.args) != 1 or op.fill is not None or "tilewright.copy" in op.attributes:
        return False
    shape, source = static_shape(op.res.type), static_shape(op.args[0].type)
    if op.lower is not None or prod(shape) != prod(source):
        return False  # the first elements in row-major order read like a reshape
    given, wanted = op.affine_maps[0], reshape_affine(source, shape)
    if given == wanted:
        return True
    normal = IndexMap.try_affine(given, shape)
    return normal is not None and normal == IndexMap.reshape(source, shape)


def is_outside(op: Operation) -> bool:
    """Ops that belong to no group: stored tensors and the function's end."""
    if isinstance(op, ConstantOp):
        return splat(op.value) is None
    return isinstance(op, WeightOp | ReturnOp | FusedOp)
