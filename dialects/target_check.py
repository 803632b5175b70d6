"""Whether the parts of a target fit each other. Returns problems with the key path each belongs to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, get_args

from .names import near
from .scalar import TABLE
from .target_model import CostClass, DmaEngine, MatrixEngine, Memory, Target, VectorEngine

KeyPath: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Problem:
    """One mistake. `path` names the offending key, outermost first; a move's is ("move", from, to, key). `others` name
    keys that take part in it: changing one of them may be what caused it."""

    path: KeyPath
    message: str
    others: tuple[KeyPath, ...] = ()


def check_target(target: Target) -> list[Problem]:
    """All inconsistencies of a target, in the order of its parts."""
    problems = [*_names(target), *_memories(target), *_engines(target), *_moves(target)]
    return problems or list(_reachability(target))


def _unknown(path: KeyPath, what: str, name: str, known: Iterable[str]) -> Problem:
    known = sorted(known)
    return Problem(path, f"no {what} '{name}'{near(name, known)} ({what} names: {', '.join(known)})")


def _names(target: Target) -> Iterator[Problem]:
    if target.cores > target.max_cores:
        message = f"{target.cores} cores, but max_cores is {target.max_cores}"
        yield Problem(("cores",), message, (("max_cores",),))


def _memories(target: Target) -> Iterator[Problem]:
    offchip = [name for name, memory in target.memories.items() if memory.offchip]
    if len(offchip) != 1:
        found = ", ".join(offchip) or "none"
        keys = tuple(("memory", name, "offchip") for name in offchip)
        yield Problem(("memory",), f"exactly one memory must be off chip (offchip = true), found {found}", keys)
    for name, memory in target.memories.items():
        yield from _memory(("memory", name), memory)


_WIDEST = 8
"""Bytes of an f64 or i64."""


def _memory(path: KeyPath, memory: Memory) -> Iterator[Problem]:
    for key in ("align", "granule"):
        if memory.bytes % getattr(memory, key):
            message = f"{key} {getattr(memory, key)} does not divide the {memory.bytes} bytes"
            yield Problem((*path, key), message, ((*path, "bytes"),))
    if memory.layout == "fractal":
        for key in ("fractal_rows", "fractal_bytes"):
            if getattr(memory, key) is None:
                yield Problem((*path, "layout"), f"a fractal layout needs {key}", ((*path, key),))
        width = memory.fractal_bytes
        if width is not None and (width < _WIDEST or width & (width - 1)):
            message = f"fractal_bytes is a power of two and at least {_WIDEST}, the bytes of the widest element"
            yield Problem((*path, "fractal_bytes"), message)
    if memory.offchip:
        if memory.core_rate is None or memory.pool_rate is None:
            yield Problem((*path, "offchip"), "an off-chip memory needs core_rate and pool_rate")
        if memory.scope != "chip":
            yield Problem((*path, "scope"), "an off-chip memory has scope 'chip'")
        return
    for key, default in (("core_rate", None), ("pool_rate", None), ("read_latency", 0), ("write_latency", 0)):
        if getattr(memory, key) != default:
            yield Problem((*path, key), f"{key} belongs to the off-chip memory")
    if memory.granule != 1:
        yield Problem((*path, "granule"), "on-chip memories count single bytes: granule is 1")


def _engines(target: Target) -> Iterator[Problem]:
    for name, engine in target.engines.items():
        path = ("engine", name)
        if isinstance(engine, MatrixEngine):
            for key in ("lhs", "rhs", "result"):
                if getattr(engine, key) not in target.memories:
                    yield _unknown((*path, key), "memory", getattr(engine, key), target.memories)
            for kind, entry in engine.types.items():
                if any(most < block for most, block in zip(entry.max_shape or entry.block, entry.block, strict=True)):
                    keys = ((*path, "types", kind, key) for key in ("max_shape", "block"))
                    message = f"max_shape {list(entry.max_shape or ())} is less than a block of {list(entry.block)}"
                    yield Problem(next(keys), message, tuple(keys))
        elif isinstance(engine, VectorEngine):
            for memory in engine.memories:
                if memory not in target.memories:
                    yield _unknown((*path, "memories"), "memory", memory, target.memories)
            missing = [cost_class for cost_class in get_args(CostClass) if cost_class not in engine.startup]
            if missing:
                yield Problem((*path, "startup"), f"no start-up cycles for {', '.join(missing)}")


def _moves(target: Target) -> Iterator[Problem]:
    for move in target.moves:
        path = ("move", move.source, move.destination)
        ends = {"from": move.source, "to": move.destination}
        for key, name in (*ends.items(), ("bias", move.bias)):
            if name is not None and name not in target.memories:
                yield _unknown((*path, key), "memory", name, target.memories)
        if move.source == move.destination:
            yield Problem((*path, "to"), f"a move from {move.source} to itself")
        if move.engine not in target.engines:
            yield _unknown((*path, "engine"), "engine", move.engine, target.engines)
        elif not isinstance(target.engines[move.engine], DmaEngine):
            yield Problem(
                (*path, "engine"), f"engine '{move.engine}' is of kind {target.engines[move.engine].kind}, not dma"
            )
        for fn in move.activation:
            if fn not in TABLE:
                yield Problem((*path, "activation"), f"no scalar operator '{fn}'{near(fn, TABLE)}")
            elif TABLE[fn].arity != 1 or TABLE[fn].params or TABLE[fn].result != "same":
                yield Problem((*path, "activation"), f"'{fn}' is not a function of one number without parameters")
        offchip = any(name in target.memories and target.memories[name].offchip for name in ends.values())
        if move.rate is None and not offchip:
            yield Problem((*path, "rate"), "a move between on-chip memories needs a rate")


def _reachability(target: Target) -> Iterator[Problem]:
    """Data must get from the off-chip memory into each memory and back, through moves and engines."""
    edges = {(move.source, move.destination) for move in target.moves}
    for engine in target.engines.values():
        if isinstance(engine, MatrixEngine):
            edges |= {(engine.lhs, engine.result), (engine.rhs, engine.result)}
        elif isinstance(engine, VectorEngine):
            edges |= {(a, b) for a in engine.memories for b in engine.memories}
    into = _closure(target.offchip, edges)
    out_of = _closure(target.offchip, {(b, a) for a, b in edges})
    for name in target.memories:
        path = ("memory", name)
        ends = tuple(("move", *pair) for other in target.memories for pair in ((name, other), (other, name)))
        if name not in into:
            yield Problem(path, f"nothing moves data from {target.offchip} into memory '{name}'", ends)
        elif name not in out_of:
            yield Problem(path, f"nothing moves data from memory '{name}' back to {target.offchip}", ends)


def _closure(start: str, edges: set[tuple[str, str]]) -> set[str]:
    seen = {start}
    grown = True
    while grown:
        more = {b for a, b in edges if a in seen} - seen
        seen |= more
        grown = bool(more)
    return seen
