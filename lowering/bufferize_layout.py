"""How tiles lie in the memories of a target, and how the parts of a tile lie in it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import tile
from ..dialects.dtypes import byte_width
from ..dialects.errors import UserError
from ..dialects.layout import Atom, Layout, LayoutAttr
from ..dialects.target import Memory, Target
from ..dialects.tile_types import BufferType, TileType


def tile_layout(memory: Memory, shape: Sequence[int], width: int, dense: bool = False) -> Layout:
    """The layout of a tile of elements of `width` bytes.

    Row-major memories start every row at a multiple of their alignment, unless the tile is `dense`. Fractal ones cut
    rows (the last dimension) into pieces of one block width, all rows of the first piece before those of the second,
    the number of rows padded to whole blocks: 17 × 40 f16 in blocks of 16 rows × 32 bytes has strides 32 for rows and
    32·32, 2 for columns. Dimensions of extent 1 take no part in it, and a tile with one other dimension is dense.
    """
    kept = [d for d, extent in enumerate(shape) if extent != 1]
    core = [shape[d] for d in kept]
    if memory.layout == "fractal" and memory.fractal_rows and memory.fractal_bytes and len(core) > 1:
        dims = _blocked(core, width, memory.fractal_rows, memory.fractal_bytes)
    else:
        dims = Layout.row_major(core, width, 1 if dense else memory.align).dims
    atoms: list[tuple[Atom, ...]] = [((1, width),)] * len(shape)
    for d, found in zip(kept, dims, strict=True):
        atoms[d] = found
    return Layout(tuple(atoms), width)


def _blocked(shape: Sequence[int], width: int, rows: int, block_bytes: int) -> tuple[tuple[Atom, ...], ...]:
    columns = block_bytes // width
    height = _round_up(prod(shape[:-1]), rows)
    outer = Layout.row_major(shape[:-1], block_bytes).dims
    if shape[-1] <= columns:
        return (*outer, ((shape[-1], width),))
    return (*outer, ((-(-shape[-1] // columns), height * block_bytes), (columns, width)))


def slot_bytes(kind: BufferType, memory: Memory) -> int:
    """Bytes that one slot of a buffer takes, and from one slot to the next: its footprint up to the alignment."""
    return _round_up(max(kind.layout.layout(byte_width(kind.element_type)).size_bytes, 1), memory.align)


def buffer_type(target: Target, value: SSAValue) -> BufferType:
    """The buffer of a tile (in its memory's layout), or of a tensor (off chip, dense row-major)."""
    kind = value.type
    if isinstance(kind, TileType):
        if kind.memory.data not in target.memories:
            location = value.owner.location if isinstance(value.owner, Operation) else None
            raise UserError(f"{kind} names no memory of target '{target.name}': run place first", location)
        memory = target.memories[kind.memory.data]
        # A transfer of more dimensions than a descriptor has is made row by row.
        many = sum(extent > 1 for extent in kind.shape) > target.max_dma_dims
        dense = not many and not may_be_cut(value)
        layout = tile_layout(memory, kind.shape, byte_width(kind.element_type), dense)
        return BufferType(kind.shape, kind.element_type, kind.memory.data, LayoutAttr.from_layout(layout))
    return tensor_buffer(target, kind)


CUTTING = (tile.SliceOp, tile.InsertOp, tile.ForOp, tile.YieldOp)
"""Ops through which others may see a part of a tile."""


def may_be_cut(value: SSAValue) -> bool:
    """Whether an instruction may begin at a row inside the tile: then rows need the alignment that tiles have.

    A tile that is only used whole lies densely: its transfers are as contiguous as the tensor they come from.
    """
    return (
        not isinstance(value.owner, Operation)
        or isinstance(value.owner, CUTTING)
        or any(isinstance(use.operation, CUTTING) and not renames(use.operation) for use in value.uses)
    )


def renames(op: Operation) -> bool:
    """Whether a slice shows all of its tile, but for dimensions of extent 1, and to ops that do not cut it."""
    if not isinstance(op, tile.SliceOp):
        return False
    source, target = tile.shape_of(op.tiles[0]), tile.shape_of(op.target)
    first = len(op.counters)
    shown = [expr.position - first for expr in op.map.data.results if isinstance(expr, AffineDimExpr)]
    constant = [expr.value for expr in op.map.data.results if isinstance(expr, AffineConstantExpr)]
    if len(shown) + len(constant) != len(source) or any(constant) or any(p < 0 for p in shown):
        return False
    same = [target[p] for p in shown if target[p] > 1] == [e for e in source if e > 1]
    return same and not any(isinstance(use.operation, CUTTING) for use in op.target.uses)


def tensor_buffer(target: Target, kind: Attribute) -> BufferType:
    """The off-chip buffer of a tensor type; a buffer type stays."""
    if isinstance(kind, BufferType):
        return kind
    assert isinstance(kind, TensorType)
    shape, element = tuple(kind.get_shape()), kind.element_type  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    layout = Layout.row_major(shape, byte_width(element))  # pyright: ignore[reportUnknownArgumentType]
    return BufferType(shape, element, target.offchip, LayoutAttr.from_layout(layout))  # pyright: ignore[reportUnknownArgumentType]


def slice_type(source: BufferType, op: tile.SliceOp) -> BufferType:
    """The type of a slice of a buffer: the strides of the source, seen through the map.

    Raises UserError, at the op, for a part that the layout cannot describe: one that cuts a block, or runs backwards.
    """
    layout = source.layout.layout(byte_width(source.element_type))
    shape = tile.shape_of(op.target)
    first = len(op.counters)
    exprs = [linear(expr) for expr in op.map.data.results]
    if any(found is None for found in exprs):
        raise UserError(f"'tile.slice' map {op.map.data} is not linear", op.location)
    dims: list[tuple[Atom, ...]] = []
    for position, extent in enumerate(shape):
        number = first + position
        parts = [(d, found[1][number]) for d, found in enumerate(exprs) if found is not None and number in found[1]]
        if extent == 1:
            dims.append(((1, layout.element_bytes),))
        elif all(len(layout.dims[d]) == 1 for d, _ in parts):
            stride = sum(coefficient * layout.dims[d][0][1] for d, coefficient in parts)
            if stride < 0:
                raise UserError("'tile.slice' runs backwards through its tile", op.location)
            dims.append(((extent, stride),))
        else:
            dims.append(_blocked_part(layout, parts, number, extent, exprs, first, shape, op))
    return BufferType(shape, source.element_type, source.memory.data, LayoutAttr.from_layout(Layout(tuple(dims), 1)))


Linear = tuple[int, dict[int, int]]


def _blocked_part(
    layout: Layout,
    parts: Sequence[tuple[int, int]],
    number: int,
    extent: int,
    exprs: Sequence[Linear | None],
    first: int,
    shape: Sequence[int],
    op: tile.SliceOp,
) -> tuple[Atom, ...]:
    """Atoms of a dimension that walks a blocked dimension of the source."""
    if len(parts) == 1:
        (d, coefficient), found = parts[0], exprs[parts[0][0]]
        assert found is not None
        (_, outer), (block, inner) = layout.dims[d]
        others = {n: c for n, c in found[1].items() if n != number and (n < first or shape[n - first] > 1)}
        starts = [found[0], *others.values()]
        if coefficient % block == 0:
            return ((extent, outer * (coefficient // block)),)
        if coefficient == 1 and all(start % block == 0 for start in starts):
            if extent <= block:
                return ((extent, inner),)
            return ((-(-extent // block), outer), (block, inner))
        if coefficient == 1 and block % extent == 0 and all(start % extent == 0 for start in starts):
            return ((extent, inner),)
    raise UserError("'tile.slice' cuts the blocks of its memory's layout", op.location)


def linear(expr: AffineExpr) -> Linear | None:
    """An affine expression as constant and coefficients by dimension number; None with floordiv or mod."""
    match expr:
        case AffineConstantExpr(value=value):
            return value, {}
        case AffineDimExpr(position=position):
            return 0, {position: 1}
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = linear(lhs), linear(rhs)
            if left is None or right is None:
                return None
            if kind is AffineBinaryOpKind.Add:
                total = {n: left[1].get(n, 0) + right[1].get(n, 0) for n in {*left[1], *right[1]}}
                return left[0] + right[0], {n: c for n, c in sorted(total.items()) if c}
            if kind is AffineBinaryOpKind.Mul and not (left[1] and right[1]):
                scalar, other = (left[0], right) if not left[1] else (right[0], left)
                return scalar * other[0], {n: c * scalar for n, c in other[1].items() if c * scalar}
            return None
        case _:
            return None


def _round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple
