"""Whether a program asks only for what its target has: a dump of one machine is not a program for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation, SSAValue

from . import hardware
from .dtypes import byte_width, type_name
from .engine_limits import check_descriptor, check_event_number, check_product, product_sizes
from .errors import UserError
from .hardware_types import ViewType
from .layout import Layout
from .operators import TARGETS
from .target import target_of
from .target_model import MatrixEngine, Target
from .tile_types import BufferType, TileType
from .transfer import descriptor, transfer_rows


def verify_target_use(module: ModuleOp) -> None:
    """Raises UserError at the first op that names a memory or an engine which the module's target does not have, or
    exceeds a limit of one instruction (`engine_limits`). Where the active region of an instruction moves with counters
    the machine looks at each.
    """
    target = target_of(module)
    for op in (op for top in module.ops if not _is_for_others(top, target.name) for op in top.walk()):
        for memory in _memories(op):
            if memory not in target.memories:
                raise _unknown("memory", memory, target.name, target.memories, op)
        engine = op.properties.get("engine")
        if isinstance(engine, StringAttr) and engine.data not in target.engines:
            raise _unknown("engine", engine.data, target.name, target.engines, op)
        try:
            _check_limits(op, target)
        except UserError as error:
            raise UserError(f"'{op.name}': {error.message}", op.location) from None


def _check_limits(op: Operation, target: Target) -> None:
    """Raises UserError, without a place."""
    match op:
        case hardware.EventOp():
            check_event_number(target, op.from_engine.data, op.to_engine.data, op.event.value.data)
        case hardware.MatmulOp() if not _bounded(op):
            engine = target.engines.get(op.engine.data)
            if isinstance(engine, MatrixEngine):
                lhs, rhs = (type_name(view.type.element_type) for view in op.inputs if isinstance(view.type, ViewType))
                extents: dict[str, int] = {}
                for letters, view in zip(op.letters(), op.views, strict=True):
                    extents.update(zip(letters, op.shape(view), strict=True))
                check_product(target, op.engine.data, engine.type_of(lhs, rhs), product_sizes(op.letters(), extents))
        case hardware.DmaOp() if not _bounded(op):
            source, *_, destination = (_layout(view) for view in op.views)
            move, shape = target.move(source[0], destination[0]), op.shape(op.output)
            if move is not None and op.gather is not None:
                whole = tuple((0, extent) for extent in shape)
                check_descriptor(target, transfer_rows(target, move, source[1], destination[1], whole).dims)
            elif move is not None:
                check_descriptor(target, descriptor(move, source[1], destination[1], shape))
        case _:
            pass


def _bounded(op: hardware.InstructionOp) -> bool:
    """Whether the active region may be less than the whole."""
    owners = [view.owner for view in op.views]
    return not all(isinstance(o, hardware.ViewOp) and o.valid is None and o.start is None for o in owners)


def _layout(view: SSAValue) -> tuple[str, Layout]:
    """Memory and layout of a view."""
    kind, owner = view.type, view.owner
    assert isinstance(kind, ViewType) and isinstance(owner, hardware.ViewOp)
    return kind.memory.data, owner.layout.layout(byte_width(kind.element_type))


def _is_for_others(op: Operation, target: str) -> bool:
    """Whether this is a kernel by hand for other targets: it is not used on this one."""
    attr = op.attributes.get(TARGETS)
    if not isinstance(attr, ArrayAttr):
        return False
    return target not in [one.data for one in cast("ArrayAttr[Attribute]", attr) if isinstance(one, StringAttr)]


def _memories(op: Operation) -> Iterator[str]:
    """Memories of an op's results and block arguments."""
    args = (arg for region in op.regions for block in region.blocks for arg in block.args)
    values: list[SSAValue] = [*op.results, *args]
    for value in values:
        kind = value.type
        if isinstance(kind, TileType | BufferType | ViewType) and kind.memory.data:
            yield kind.memory.data


def _unknown(what: str, name: str, target: str, known: Iterable[str], op: Operation) -> UserError:
    return UserError(
        f"target '{target}' has no {what} '{name}' (it has {', '.join(known)}); was this lowered for another target?",
        op.location,
    )
