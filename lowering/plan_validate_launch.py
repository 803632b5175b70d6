"""The part of `plan_validate` that looks into kernels: may a result lie on the bytes of an operand?

Nothing is derived from the form of the maps: they are evaluated for each iteration.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TypeAlias

from xdsl.dialects.builtin import AffineMapAttr, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr

from ..dialects import tile

OVERWRITING_TILES = 1 << 16
"""Iterations above which no result of a kernel may lie on its operand: each is looked at here."""

Box: TypeAlias = tuple[tuple[int, int], ...]
"""Per dimension the first element, and the one after the last."""


def writes_what_it_read(launch: tile.LaunchOp, old: SSAValue, new: SSAValue) -> bool:
    """Whether a kernel touches each element of `old` and of `new` in one iteration only, the same in both, and reads it
    before it writes it. Each buffer is an operand of the launch once."""
    function = launch.parent_op()
    module = None if function is None else function.parent_op()
    name = launch.callee.root_reference.data
    numbers = [[n for n, value in enumerate(launch.args) if _source(value) is one] for one in (old, new)]
    if not isinstance(module, ModuleOp) or [len(found) for found in numbers] != [1, 1]:
        return False
    kernel = next((op for op in module.ops if isinstance(op, tile.KernelOp) and op.sym_name.data == name), None)
    if kernel is None:
        return False
    args = [kernel.body.block.args[n] for (n,) in numbers]
    uses = [[use.operation for use in arg.uses] for arg in args]
    if args[0].type != args[1].type or [len(found) for found in uses] != [1, 1]:
        return False
    load, store = uses[0][0], uses[1][0]
    if not isinstance(load, tile.LoadOp) or not isinstance(store, tile.StoreOp) or load.parent is not store.parent:
        return False
    return (
        load.gather is None
        and _needs(store, load)
        and _touched(load, load.args[-1]) == _touched(store, store.args[0]) is not None
    )


def _needs(store: tile.StoreOp, load: tile.LoadOp) -> bool:
    """Whether what is stored was made, step by step back in its iteration, from what was loaded."""
    block = store.parent
    assert block is not None
    needed = {_source(store.args[0])}
    ops = [op for top in block.ops for op in top.walk()]
    for op in reversed(ops[: ops.index(store)]):
        made = isinstance(op, tile.TileOp) and not isinstance(op, tile.StoreOp | tile.SliceOp)
        if made and _source(op.operands[-1]) in needed:
            needed |= {_source(value) for value in op.operands}
            if op is load:
                return True
    return False


def _source(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, tile.SliceOp | tile.AliasOp):
        value = value.owner.operands[0]
    return value


def _touched(op: tile.LoadOp | tile.StoreOp, part: SSAValue) -> list[Box] | None:
    """The box of elements that each iteration touches, None if two share one or there are too many iterations."""
    loops: list[tile.ForOp] = []
    around = op.parent_op()
    while isinstance(around, tile.ForOp):
        loops.append(around)
        around = around.parent_op()
    bounds = [bound.data.results for loop in loops for bound in (loop.lower, loop.upper)]
    if not all(len(found) == 1 and isinstance(found[0], AffineConstantExpr) for found in bounds):
        return None
    counts = [range(_constant(loop.lower), _constant(loop.upper)) for loop in loops]
    if prod(len(count) for count in counts) > OVERWRITING_TILES:
        return None
    extents = tile.shape_of(part)
    boxes: list[Box] = []
    cells: dict[tuple[int, ...], list[Box]] = {}
    size: list[int] = []
    for values in product(*counts):
        held = dict(zip((loop.counter for loop in loops), values, strict=True))
        counters = [held[value] for value in op.counters]
        valid = [min(v, e) for v, e in zip(op.valid.data.eval(counters, []), extents, strict=True)]
        first = op.map.data.eval([*counters, *(0 for _ in extents)], [])
        last = op.map.data.eval([*counters, *(extent - 1 for extent in valid)], [])
        box = tuple((min(a, z), max(a, z) + 1) for a, z in zip(first, last, strict=True))
        if min(valid) < 1:
            continue
        # Boxes that meet share an element, and with it the cell that it lies in, whatever size cells have.
        size = size or [z - a for a, z in box]
        for cell in product(*(range(a // e, (z - 1) // e + 1) for (a, z), e in zip(box, size, strict=True))):
            near = cells.setdefault(cell, [])
            if any(_meet(box, other) for other in near):
                return None
            near.append(box)
        boxes.append(box)
    return boxes


def _meet(box: Box, other: Box) -> bool:
    return all(a < high and low < z for (a, z), (low, high) in zip(box, other, strict=True))


def _constant(bound: AffineMapAttr) -> int:
    (expr,) = bound.data.results
    assert isinstance(expr, AffineConstantExpr)
    return expr.value
