"""Loads, stores and moves as DMAs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, IndexType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr

from ..dialects import hardware, tile
from ..dialects.errors import UserError
from ..dialects.layout import Layout
from ..dialects.output_stage import check_stage
from ..dialects.target_model import Move
from ..dialects.transfer import descriptor
from .bufferize_layout import linear
from .emit_base import Emitter
from .emit_compute import fill_place
from .emit_edges import Edges
from .emit_views import Place, Valid, address, simplified, substituted
from .regions import add, scaled, total


def load(emitter: Emitter, op: tile.LoadOp) -> None:
    """A DMA; where the tile can leave its source a fill of all of it, and a DMA of the inside."""
    source, place = emitter.places[op.tiles[0]], emitter.places[op.target]
    place = place.with_valid(emitter.valid_of(op.valid, op, place.shape))
    emitter.written(op.target, place.valid)
    if op.gather is not None:
        gather(emitter, op, op.gather.value.data, place)
        return
    outside = seen_through(emitter, source, op.map, op, place.shape)
    edges = Edges(emitter.loops, op, source, place, emitter.counters(op))
    if edges.needed:
        fill_place(emitter, place, op.fill, op)
        outside, inside = edges.clip(outside, place)
        dma(emitter, outside, inside, op, fresh=False)
    else:
        dma(emitter, outside, place, op, fresh=emitter.is_whole(op.target))


def gather(emitter: Emitter, op: tile.LoadOp, chosen: int, place: Place) -> None:
    """A DMA of rows that indices choose: its source is a view of all rows there are, at the place that the map says."""
    source, indices = emitter.places[op.tiles[0]], emitter.places[op.tiles[1]]
    one = seen_through(emitter, source, op.map, op, place.shape)
    shape = tuple(1 if extent > 1 else size for extent, size in zip(indices.shape, place.shape, strict=True))
    if any(extent > 1 and atoms[0][1] for extent, atoms in zip(indices.shape, one.layout.dims, strict=True)):
        raise UserError("'tile.load' gathers along dimensions of the tile that its map uses too", op.location)
    dims = tuple(
        atoms if extent > 1 else ((1, one.layout.element_bytes),)
        for extent, atoms in zip(shape, one.layout.dims, strict=True)
    )
    rows = (source.shape[chosen], source.layout.dims[chosen][0][1])
    table = Place(
        one.buffer, one.memory, one.element, (rows[0], *shape), Layout(((rows,), *dims), one.layout.element_bytes),
        one.offset, (None,) * (len(shape) + 1),
    )  # fmt: skip
    target = emitter.target
    moved = target.move(table.memory, place.memory)
    if moved is None or moved.gather is None:
        raise UserError(
            f"target '{target.name}' cannot gather rows from '{table.memory}' to '{place.memory}'", op.location
        )
    properties: dict[str, Attribute] = {"gather": UnitAttr()}
    fresh = emitter.is_whole(op.target)
    emitter.instruction(hardware.DmaOp, moved.engine, [table, indices, place], op, properties, fresh=fresh)


def store(emitter: Emitter, op: tile.StoreOp) -> None:
    """A DMA of the valid part."""
    place = emitter.places[op.args[0]]
    place = place.with_valid(emitter.valid_of(op.valid, op, place.shape))
    outside = seen_through(emitter, emitter.places[op.destination], op.map, op, place.shape)
    dma(emitter, place, outside, op, fresh=False)


def move(emitter: Emitter, op: tile.MoveOp) -> None:
    """A DMA between memories."""
    source = emitter.places[op.tiles[0]]
    emitter.written(op.target, source.valid)
    dma(emitter, source, emitter.places[op.target], op, fresh=emitter.is_whole(op.target))


def seen_through(emitter: Emitter, place: Place, map_: AffineMapAttr, op: tile.TileOp, shape: Sequence[int]) -> Place:
    """A global tensor as a tile sees it through the map of a load or store.

    (i, p, q) → (4·i + p, 0) of rows of 64 bytes: offset 256·i, strides 64 and 0.
    """
    first = emitter.loops.depth
    positions: list[AffineExpr] = [AffineDimExpr(first + p) for p in range(len(shape))]
    strides = [0] * len(shape)
    offset: list[AffineExpr] = [place.offset]
    for expr, atoms in zip(substituted(map_.data, emitter.counters(op), positions), place.layout.dims, strict=True):
        found = linear(expr)
        if found is None or len(atoms) != 1:
            raise UserError(f"'{op.name}' map {map_.data} is not linear", op.location)
        stride = atoms[0][1]
        for dim, coefficient in found[1].items():
            if dim >= first:
                strides[dim - first] += coefficient * stride
            else:
                offset.append(scaled(AffineDimExpr(dim), coefficient * stride))
        offset.append(AffineConstantExpr(found[0] * stride))
    strides = [0 if extent == 1 else stride for extent, stride in zip(shape, strides, strict=True)]
    if any(stride < 0 for stride in strides):
        raise UserError(f"'{op.name}' runs backwards through its tensor", op.location)
    layout = Layout.strided(shape, strides, place.layout.element_bytes)
    none: Valid = (None,) * len(shape)
    return Place(place.buffer, place.memory, place.element, tuple(shape), layout, simplified(total(offset)), none)


def dma(emitter: Emitter, source: Place, destination: Place, op: Operation, fresh: bool) -> None:
    """One transfer, or a loop of smaller ones if a descriptor has too few dimensions."""
    target = emitter.target
    moved = target.move(source.memory, destination.memory)
    if moved is None:
        raise UserError(
            f"target '{target.name}' has no move from '{source.memory}' to '{destination.memory}'", op.location
        )
    check_stage(op, moved, source.element, destination.element)
    if _dims(emitter, moved, source, destination) <= target.max_dma_dims:
        stage = {name: op.properties[name] for name in ("scale", "activation") if name in op.properties}
        emitter.instruction(hardware.DmaOp, moved.engine, [source, destination], op, stage, fresh=fresh)
        return
    cut = _cut(emitter, moved, source, destination, op)
    body = Block(arg_types=[IndexType()])
    outer, emitter.block = emitter.block, body
    emitter.loops.enter(body.args[0], body.args[0], (0, source.shape[cut] - 1))
    here = AffineDimExpr(emitter.loops.depth - 1)
    dma(emitter, _row(source, cut, here), _row(destination, cut, here), op, fresh)
    emitter.loops.leave()
    emitter.block = outer
    bound = {"lower": AffineMapAttr.constant_map(0), "upper": AffineMapAttr.constant_map(source.shape[cut])}
    emitter.add(hardware.ForOp.build(operands=[[], []], properties=bound, regions=[Region(body)]), op)


def _cut(emitter: Emitter, moved: Move, source: Place, destination: Place, op: Operation) -> int:
    """The dimension to make a loop of: rows along it begin at multiples of the alignment, and what is left needs the
    fewest dimensions, in the fewest transfers."""
    ways: list[tuple[int, int, int]] = []
    here = AffineConstantExpr(0)
    for d, extent in enumerate(source.shape):
        if extent > 1 and _starts_well(emitter, source, d) and _starts_well(emitter, destination, d):
            left = _dims(emitter, moved, _row(source, d, here), _row(destination, d, here))
            ways.append((max(left, emitter.target.max_dma_dims), extent, d))
    if not ways:
        raise UserError(
            f"a transfer of target '{emitter.target.name}' has at most {emitter.target.max_dma_dims} dimensions; this "
            "one has more, and no part of it begins at a multiple of the alignment",
            op.location,
        )
    return min(ways)[2]


def _starts_well(emitter: Emitter, place: Place, d: int) -> bool:
    """Whether every index of a dimension begins at a multiple of the memory's alignment."""
    memory = emitter.target.memories[place.memory]
    return memory.offchip or all(stride % memory.align == 0 for _, stride in place.layout.dims[d])


def _dims(emitter: Emitter, moved: Move, source: Place, destination: Place) -> int:
    """The most dimensions a descriptor needs, of a whole tile or one at the edge."""
    whole = source.shape
    bounds = [*source.valid, *source.start], [*destination.valid, *destination.start]
    ragged = tuple(
        extent - 1 if extent > 1 and any(_bound(place, d) for place in (source, destination)) else extent
        for d, extent in enumerate(whole)
    )
    found = descriptor(moved, source.layout, destination.layout, whole)
    if any(bound is not None for side in bounds for bound in side):
        found = max(found, descriptor(moved, source.layout, destination.layout, ragged))
    return found


def _bound(place: Place, d: int) -> bool:
    return place.valid[d] is not None or bool(place.start and place.start[d] is not None)


def _row(place: Place, cut: int, here: AffineExpr) -> Place:
    """One index of a dimension, which becomes one of extent 1."""
    index: list[AffineExpr] = [AffineConstantExpr(0)] * len(place.shape)
    index[cut] = here
    width = place.layout.element_bytes
    dims = tuple(((1, width),) if d == cut else atoms for d, atoms in enumerate(place.layout.dims))

    def at(exprs: Valid) -> Valid:
        return tuple(
            add(expr, scaled(here, -1)) if d == cut and expr is not None else expr for d, expr in enumerate(exprs)
        )

    return Place(
        place.buffer,
        place.memory,
        place.element,
        tuple(1 if d == cut else extent for d, extent in enumerate(place.shape)),
        Layout(dims, width),
        add(place.offset, address(place.layout, index)),
        at(place.valid),
        at(place.start),
    )
