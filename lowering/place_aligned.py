"""Parts of loaded tiles that no instruction could begin at: they are loaded by themselves instead.

On chip an operand begins at a multiple of its memory's alignment. The taps of a window along the rows of a tile do not:
`%s = tile.slice %x {… d0 + 1 …}` of 4-byte elements lies 4 bytes into a row. Off chip any address will do, so
`%s = tile.load %tensor` with both maps composed takes the place of the slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from ..dialects import tile
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.target import Target
from .affine_bounds import is_multiple
from .bufferize_layout import buffer_type, slice_type
from .emit_views import address
from .loop_range import counter_range


def load_unaligned_parts(kernel: tile.KernelOp, target: Target) -> None:
    """Replaces slices of loads that begin between multiples of the alignment, or that cut blocks. Requires memories."""
    for op in [op for op in kernel.walk() if isinstance(op, tile.SliceOp)]:
        load = op.tiles[0].owner
        if (
            not isinstance(load, tile.LoadOp)
            or load.gather is not None
            or not op.target.uses.get_length()
            or _starts_well(op, target)
        ):
            continue
        made = _part_of(load, op)
        made.location = op.location
        made.res[0].name_hint = op.target.name_hint
        Rewriter.replace_op(op, made)
        if not load.res[0].uses.get_length():
            Rewriter.erase_op(load)


def _starts_well(op: tile.SliceOp, target: Target) -> bool:
    """Whether an instruction can begin at a slice of a whole tile."""
    kind = buffer_type(target, op.tiles[0])
    memory = target.memories[kind.memory.data]
    try:
        slice_type(kind, op)
    except UserError:
        return False
    layout = kind.layout.layout(byte_width(kind.element_type))
    start: list[AffineExpr] = [AffineDimExpr(n) for n in range(len(op.counters))]
    start += [AffineConstantExpr(0)] * len(tile.shape_of(op.target))
    index = [expr.replace_dims_and_symbols(start, []) for expr in op.map.data.results]
    return is_multiple(address(layout, index), memory.align, [counter_range(counter) for counter in op.counters])


def _part_of(load: tile.LoadOp, op: tile.SliceOp) -> tile.LoadOp:
    """The load of what a slice of a load shows.

    Load (i, p, q) → (8·i + p, q), slice (t, p, q) → (p, q + t): load (i, t, p, q) → (8·i + p, q + t).
    """
    counters = list(dict.fromkeys([*load.counters, *op.counters]))
    place = {counter: AffineDimExpr(n) for n, counter in enumerate(counters)}
    rank = len(tile.shape_of(op.target))
    positions: list[AffineExpr] = [AffineDimExpr(len(counters) + p) for p in range(rank)]
    inner = [
        expr.replace_dims_and_symbols([*(place[c] for c in op.counters), *positions], [])
        for expr in op.map.data.results
    ]
    outer: list[AffineExpr] = [*(place[c] for c in load.counters), *inner]

    def composed(attr: AffineMapAttr) -> AffineMapAttr:
        results = tuple(expr.replace_dims_and_symbols(outer, []) for expr in attr.data.results)
        return AffineMapAttr(AffineMap(len(counters) + rank, 0, results))

    valid = _renumbered(op.valid, [place[c] for c in op.counters], len(counters))
    properties: dict[str, Attribute] = {**load.properties, "map": composed(load.map), "valid": valid}
    if load.inside is not None:
        properties["inside"] = composed(load.inside)
    return tile.LoadOp.create(operands=[load.tiles[0], *counters], result_types=[op.target.type], properties=properties)


def _renumbered(attr: AffineMapAttr, dims: Sequence[AffineExpr], count: int) -> AffineMapAttr:
    results = tuple(expr.replace_dims_and_symbols(dims, []) for expr in attr.data.results)
    return AffineMapAttr(AffineMap(count, 0, results))
