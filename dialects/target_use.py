"""Whether a program names only what its target has: a dump of one machine is not a program for another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue

from .errors import UserError
from .hardware_types import ViewType
from .target import target_of
from .tile_types import BufferType, TileType


def verify_target_use(module: ModuleOp) -> None:
    """Raises UserError at the first op that names a memory or an engine which the module's target does not have."""
    target = target_of(module)
    for op in module.walk():
        for memory in _memories(op):
            if memory not in target.memories:
                raise _unknown("memory", memory, target.name, target.memories, op)
        engine = op.properties.get("engine")
        if isinstance(engine, StringAttr) and engine.data not in target.engines:
            raise _unknown("engine", engine.data, target.name, target.engines, op)


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
