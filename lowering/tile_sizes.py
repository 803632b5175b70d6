"""Which tile sizes are worth trying: of the axes of a group, and of the pieces that the matrix engine takes."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import gcd, lcm, prod

from ..dialects.dtypes import accumulator_type, byte_width, type_name
from ..dialects.target_model import Memory, Target
from .axes import Axis
from .group import Group, Node
from .known_table import Table
from .roles import Roles, tile_bytes


def tile_sizes(group: Group, axis: Axis, target: Target, fine: bool = False) -> list[int]:
    """Tile sizes worth trying, smallest first: whole, equal parts, powers of two, in multiples of the granularity.

    `fine`: of any granularity, for groups of which nothing coarser fits.
    """
    extent = axis.extent
    if axis in group.taps or any(expr.terms.get(axis, 0) < 0 for load in group.loads for expr in load.index):
        return [1]  # a transfer steps forward only: what is read backwards is read one index at a time
    block = 1 if fine else granularity(group, axis, target)
    sizes = {extent}
    for parts in (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64):
        sizes.add(round_up(-(-extent // parts), block))
    power = 1
    while power < extent:
        sizes.add(round_up(power, block))
        power *= 2
    fitting = sorted(size for size in sizes if size <= extent)
    while len(fitting) > 12:  # thin out, keep both ends
        del fitting[1:-1:2]
    return fitting


def all_sizes(axis: Axis, block: int) -> list[int]:
    """For every number of tiles that an axis can have the smallest tile size, in multiples of a block; ascending.

    >>> all_sizes(Axis(100, 0), 16)
    [16, 32, 48, 64, 100]
    """
    sizes = {round_up(-(-axis.extent // count), block) for count in range(1, -(-axis.extent // block) + 1)}
    return sorted({min(size, axis.extent) for size in sizes})


def tables(group: Group) -> list[Table]:
    """What is known of the inputs of a group."""
    return [load.table for load in group.loads if load.table is not None]


def known_tiles(group: Group, tiles: Sequence[int], sizes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The tiles, but along the axes of constant masks the longest in which these do not change."""
    found = list(tiles)
    for place, axis in enumerate(group.axes):
        steps = [table.step(axis) for table in tables(group) if axis in table.axes]
        fitting = [size for size in sizes[place] if all(step % size == 0 for step in steps)]
        if steps and fitting:
            found[place] = max(fitting)
    return tuple(found)


def granularity(group: Group, axis: Axis, target: Target) -> int:
    """Elements that an axis is tiled by: the matrix engine's block where it is m, n or k of a contraction, else 1."""
    if target.matrix_engine is None or any(axis in load.taps or axis in _bases(load) for load in group.loads):
        return 1
    for node in group.nodes:
        if node.kind != "contract":
            continue
        lhs, rhs = node.inputs
        entry = target.matrix_engine[1].type_of(type_name(lhs.element), type_name(rhs.element))
        if entry is not None and ((axis in lhs.present) != (axis in rhs.present) or axis in node.reduced):
            sides = (node.reduced, lhs.present - rhs.present, rhs.present - lhs.present)
            side = next(side for side in sides if axis in side)
            if any(axis in table.axes for table in tables(group)) and axis is not max(side, key=lambda a: a.extent):
                continue  # blocks of a mask: the positions in them are the rows of the engine's blocks
            return max(entry.block)
    return 1


def _bases(load: Node) -> frozenset[Axis]:
    return frozenset(window.base for window in load.windows if window is not None)


def round_up(value: int, multiple: int) -> int:
    return -(-value // multiple) * multiple


def inner_tiles(group: Group, tiles: dict[Axis, int], target: Target, roles: Roles) -> dict[Axis, int]:
    """Pieces of the matrix operands: tiles halved along their longest axis until two pieces of each operand fit, where
    they have memories of their own, and one instruction takes them."""
    inner = dict(tiles)
    for node in group.nodes:
        if node.kind != "contract":
            continue
        lhs, rhs = node.inputs
        block = _piece_block(node, target, roles)
        for source, name in ((lhs, roles.lhs), (rhs, roles.rhs)) if roles.subdivides else ():
            if name is not None:
                _shrink(group, source, inner, tiles, target.memories[name], block)
        entry = target.matrix_engine and target.matrix_engine[1].type_of(type_name(lhs.element), type_name(rhs.element))
        if entry and entry.max_shape is not None:
            sides = lhs.present - rhs.present, node.reduced, rhs.present - lhs.present
            for axes, most in zip(sides, entry.max_shape, strict=True):
                while prod(inner[axis] for axis in axes) > most and _halved(group, axes, inner, tiles, block):
                    pass
    return inner


def _piece_block(node: Node, target: Target, roles: Roles) -> int:
    """Elements that pieces are cut by, so that none begins inside a block of any memory of the matrix engine."""
    lhs, rhs = node.inputs
    block = 1
    for name, kind in (
        (roles.lhs, lhs.element),
        (roles.rhs, rhs.element),
        (roles.result, accumulator_type(lhs.element)),
    ):
        memory = target.memories.get(name or "")
        if memory is not None and memory.layout == "fractal":
            columns = (memory.fractal_bytes or 1) // byte_width(kind)
            block = lcm(block, columns, memory.fractal_rows or 1)
        elif memory is not None:
            block = lcm(block, memory.align // gcd(memory.align, byte_width(kind)))
    return block


def _shrink(
    group: Group, source: Node, inner: dict[Axis, int], tiles: dict[Axis, int], memory: Memory, block: int
) -> None:
    while True:
        axes = [axis for axis in group.axes if axis in source.present and inner[axis] > 1]
        size = tile_bytes(memory, [inner[axis] for axis in axes], byte_width(source.element))
        if 2 * size <= memory.bytes or not _halved(group, axes, inner, tiles, block):
            return


def _halved(group: Group, axes: Collection[Axis], inner: dict[Axis, int], tiles: dict[Axis, int], block: int) -> bool:
    """Halves the longest piece of some axes. False where none can be."""
    for axis in sorted((a for a in group.axes if a in axes), key=lambda a: -inner[a]):
        half = _half(axis, inner[axis], tiles[axis], block)
        if half < inner[axis]:
            inner[axis] = half
            return True
    return False


def _half(axis: Axis, inner: int, tile: int, block: int) -> int:
    """About half of a piece: a multiple of the block where it can be; of looped axes a divisor of the tile."""
    half = round_up(-(-inner // 2), block) if inner > block else -(-inner // 2)
    if tile < axis.extent:
        divisors = [size for size in range(half, 0, -1) if tile % size == 0]
        return next((size for size in divisors if size % block == 0), divisors[0] if divisors else inner)
    return half
