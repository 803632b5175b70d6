"""Instructions of the matrix and vector engines."""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects import hardware, tile
from ..dialects.dtypes import type_name
from ..dialects.engine_limits import check_product, product_sizes
from ..dialects.errors import UserError
from .emit_base import Emitter
from .emit_views import Place, Valid, meet


def contract(emitter: Emitter, op: tile.ContractOp) -> None:
    """A matmul: it overwrites unless it accumulates, and starts from zero where `init` says so."""
    matrix = emitter.target.matrix_engine
    if matrix is None:
        raise UserError(f"target '{emitter.target.name}' has no matrix engine", op.location)
    lhs, rhs = (emitter.places[value] for value in op.tiles[:2])
    names = op.letters()
    extents: dict[str, AffineExpr | None] = {}
    for letters, place in zip(names, (lhs, rhs), strict=False):
        for letter, valid in zip(letters, place.valid, strict=True):
            extents[letter] = meet(extents.get(letter), valid)
    out = _result(emitter, op, tuple(extents.get(letter) for letter in names[2]))
    entry = matrix[1].type_of(type_name(lhs.element), type_name(rhs.element))
    shape = {c: n for part, at in zip(names, (lhs, rhs), strict=False) for c, n in zip(part, at.shape, strict=True)}
    try:
        check_product(emitter.target, matrix[0], entry, product_sizes(names, shape))
    except UserError as error:
        raise UserError(
            f"{error.message}; take smaller tiles, or smaller `inner` in the schedule", op.location
        ) from None
    properties: dict[str, Attribute] = {"spec": op.spec}
    counters: list[SSAValue] = []
    if op.accumulate is None or (op.init is not None and not op.init.data.results):
        properties["overwrite"] = UnitAttr()
    elif op.init is not None:
        properties["init"] = op.init
        counters = list(op.counters)
    fresh = "overwrite" in properties and emitter.is_whole(op.target)
    emitter.instruction(hardware.MatmulOp, matrix[0], [lhs, rhs, out], op, properties, counters, fresh)


def map_(emitter: Emitter, op: tile.MapOp) -> None:
    """One scalar operator."""
    sources = [emitter.places[value] for value in op.tiles]
    shape = emitter.places[op.target].shape
    valid: Valid = (None,) * len(shape)
    for source in sources:
        valid = tuple(
            have if extent == 1 != size else meet(have, found)
            for have, found, extent, size in zip(valid, source.valid, source.shape, shape, strict=True)
        )
    out = _result(emitter, op, valid) if sources else emitter.places[op.target]
    properties: dict[str, Attribute] = {"fn": op.fn}
    if op.immediates is not None:
        properties["immediates"] = op.immediates
    if op.params is not None:
        properties["params"] = op.params
    fresh = emitter.is_whole(op.target) and op.target not in op.tiles
    emitter.instruction(hardware.VectorOp, vector(emitter, op), [*sources, out], op, properties, fresh=fresh)


def reduce(emitter: Emitter, op: tile.ReduceOp) -> None:
    """A reduction of the valid elements."""
    source = emitter.places[op.tiles[0]]
    reduced = emitter.places[op.target].shape
    valid = tuple(None if size == 1 else found for size, found in zip(reduced, source.valid, strict=True))
    out = _result(emitter, op, valid)
    properties: dict[str, Attribute] = {"monoid": op.monoid, "axes": op.axes}
    fresh = emitter.is_whole(op.target)
    emitter.instruction(hardware.ReduceOp, vector(emitter, op), [source, out], op, properties, fresh=fresh)


def fill(emitter: Emitter, op: tile.FillOp) -> None:
    """A constant in the valid elements."""
    place = emitter.places[op.target]
    place = place.with_valid(emitter.valid_of(op.valid, op, place.shape))
    emitter.written(op.target, place.valid)
    fill_place(emitter, place, op.value, op, emitter.is_whole(op.target))


def iota(emitter: Emitter, op: tile.IotaOp) -> None:
    """Indices in the valid elements."""
    place = emitter.places[op.target]
    place = place.with_valid(emitter.valid_of(op.valid, op, place.shape))
    emitter.written(op.target, place.valid)
    fresh = emitter.is_whole(op.target)
    emitter.instruction(hardware.IotaOp, vector(emitter, op), [place], op, {"map": op.map}, op.counters, fresh)


def fill_place(emitter: Emitter, place: Place, value: Attribute | None, op: Operation, fresh: bool = True) -> None:
    """Writes a value to all valid elements, by the vector engine or else by a move that can pad."""
    assert value is not None
    target = emitter.target
    unit = target.vector_engine
    if unit is not None and place.memory in unit[1].memories:
        engine = unit[0]
    else:
        padding = [m for m in target.moves if m.destination == place.memory and m.pad]
        if not padding:
            raise UserError(f"target '{target.name}' has no engine that fills memory '{place.memory}'", op.location)
        engine = padding[0].engine
    emitter.instruction(hardware.FillOp, engine, [place], op, {"value": value}, fresh=fresh)


def vector(emitter: Emitter, op: Operation) -> str:
    """The name of the vector engine. Raises UserError where there is none."""
    unit = emitter.target.vector_engine
    if unit is None:
        raise UserError(f"target '{emitter.target.name}' has no vector engine", op.location)
    return unit[0]


def _result(emitter: Emitter, op: tile.TileOp, valid: Valid) -> Place:
    """Where the result goes; a whole buffer is valid from now on as the result is, a slice states that itself."""
    if emitter.is_whole(op.target):
        emitter.written(op.target, valid)
    return emitter.places[op.target].with_valid(valid)
