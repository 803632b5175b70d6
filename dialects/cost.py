"""Cycles and bus bytes of single instructions: the only place that turns a target's figures into time.

The search, the machine and the reports all call these. Pure functions of counts; every cycle count is rounded up in
exact arithmetic, so that an estimate over an array of candidates equals the machine's count for each of them. A count
is an int or an int64 array (`N`): ints give an int, arrays an array of the broadcast shape.

Where the formulas come from: rates by the wider side, start-up plus bytes by rate for the vector engine and blocks per
cycle for the matrix engine are the rules of the public figures that the target files cite; what is assumed is said at
each function.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from .errors import UserError
from .layout_runs import Runs
from .scalar import TABLE
from .target_model import CostClass, DmaEngine, MatrixEngine, Move, Target, VectorEngine

IntArray: TypeAlias = npt.NDArray[np.int64]
N = TypeVar("N", int, IntArray)

REDUCE_CLASS: dict[str, CostClass] = {"sum": "row_sum", "prod": "row_sum", "max": "row_max", "min": "row_max"}
"""Start-up class of a row reduction by monoid (prod as sum and min as max: assumed)."""
MOVEMENT: tuple[Literal["fill", "copy"], ...] = ("fill", "copy")
"""What the vector engine does besides scalar operators; a cost class of the same name each."""


def granule_bytes(run_bytes: N, runs: N, granule: int) -> N:
    """Bus bytes of `runs` contiguous runs of `run_bytes` each: runs × ⌈run_bytes ÷ granule⌉ × granule.

    Rounded up by length, whatever the address. 3 runs of 40 bytes at granule 32: 192.
    """
    return runs * ceil_div(run_bytes, granule) * granule


def bus_bytes(runs: Runs, granule: int) -> int:
    """Bus bytes of the runs of a layout (`Layout.valid_runs`)."""
    return sum(granule_bytes(length, count, granule) for count, length in runs)


def chip_rate(target: Target) -> Fraction:
    """Off-chip bytes per cycle for all cores of the target together."""
    return target.cores * port_rate(target, target.cores)


def port_rate(target: Target, cores: int = 1) -> Fraction:
    """Off-chip bytes per cycle for each of `cores` busy cores: min(core_rate, pool_rate ÷ cores)."""
    memory = target.offchip_memory
    if memory.core_rate is None or memory.pool_rate is None:
        raise UserError(f"target '{target.name}' gives no rates for its off-chip memory '{target.offchip}'")
    return min(_exact(memory.core_rate), _exact(memory.pool_rate) / cores)


def is_offchip(target: Target, move: Move) -> bool:
    """Whether a move has the off-chip memory at one end, so that it uses port and pool."""
    return target.offchip in (move.source, move.destination)


def dma_cycles(
    target: Target, move: Move, source_bytes: N, destination_bytes: N, offchip_bytes: N | None = None, cores: int = 1
) -> N:
    """Cycles a DMA occupies its engine: max(⌈wider ÷ move rate⌉, ⌈off-chip bus bytes ÷ port rate⌉).

    source_bytes, destination_bytes: what is read and written (they differ by casts and padding); the wider counts.
    offchip_bytes: bus bytes of the off-chip side, granules included (`bus_bytes`); without it that side's bytes.
    cores: how many cores use the pool at the same time (`port_rate`).
    The move's own rate is not applied where the target gives none; latency comes on top (`dma_latency`).
    """
    cycles = larger(source_bytes, destination_bytes) * 0
    if move.rate is not None:
        cycles = ceil_div(larger(source_bytes, destination_bytes), move.rate)
    if is_offchip(target, move):
        side = source_bytes if move.source == target.offchip else destination_bytes
        carried = side if offchip_bytes is None else offchip_bytes
        cycles = larger(cycles, ceil_div(carried, port_rate(target, cores)))
    return cycles


def dma_latency(target: Target, move: Move) -> int:
    """Cycles from the end of a DMA's occupation to its completion: the off-chip memory's latency, 0 between others."""
    if move.source == target.offchip:
        return target.offchip_memory.read_latency
    return target.offchip_memory.write_latency if move.destination == target.offchip else 0


def vector_cycles(
    target: Target, fn: str, elements: N, widest_bytes: int, dtype: str = "f32", engine: str | None = None
) -> N:
    """Cycles of one scalar operator: passes × (start-up + ⌈elements × widest_bytes × dtype factor ÷ bytes_per_cycle⌉).

    fn: a scalar operator of the table, `fill` or `copy`. elements: of the result, broadcasting included.
    widest_bytes: bytes per element of the widest among operands and result. dtype: the type computed in.
    passes: instructions that make up a composite operator (tanh, erf; the scalar table).
    Raises UserError where the machine has no vector engine or the engine cannot compute in `dtype`.
    """
    unit = vector_engine(target, engine)
    cost_class, passes = _cost_class(fn)
    return (ceil_div(elements * widest_bytes, _rate(unit, dtype)) + unit.startup[cost_class]) * passes


def reduce_cycles(
    target: Target,
    monoid: str,
    elements: N,
    element_bytes: int,
    dtype: str = "f32",
    across_lanes: bool = True,
    engine: str | None = None,
) -> N:
    """Cycles of a reduction: start-up + ⌈elements × element_bytes × dtype factor × reduce_factor ÷ bytes_per_cycle⌉.

    elements: of the input. across_lanes: along the innermost dimension (a row reduction), start-up class row_sum or
    row_max. Otherwise whole rows are combined: the monoid's scalar operator on as many elements, factor 1 (assumed).
    Raises UserError as `vector_cycles` does.
    """
    if monoid not in REDUCE_CLASS:
        raise UserError(f"no monoid '{monoid}' (known: {', '.join(REDUCE_CLASS)})")
    if not across_lanes:
        combine = {"sum": "add", "prod": "mul"}.get(monoid, monoid)
        return vector_cycles(target, combine, elements, element_bytes, dtype, engine)
    unit = vector_engine(target, engine)
    rate = _rate(unit, dtype) / _exact(unit.reduce_factor)
    return ceil_div(elements * element_bytes, rate) + unit.startup[REDUCE_CLASS[monoid]]


def fill_cycles(target: Target, engine: str, memory: str, elements: N, element_bytes: int, dtype: str = "f32") -> N:
    """Cycles of writing a constant: the vector engine's class `fill`, or bytes ÷ rate of a padding move into `memory`.

    Raises UserError where the engine cannot fill that memory.
    """
    unit = target.engines[engine]
    if isinstance(unit, VectorEngine) and memory in unit.memories:
        return vector_cycles(target, "fill", elements, element_bytes, dtype, engine)
    moves = [m for m in target.moves if m.engine == engine and m.destination == memory and m.pad]
    if not isinstance(unit, DmaEngine) or not moves:
        raise UserError(f"engine '{engine}' of target '{target.name}' cannot fill memory '{memory}'")
    return ceil_div(elements * element_bytes, max(target.move_rate(move) for move in moves))


def matmul_cycles(target: Target, m: N, k: N, n: N, lhs: str, rhs: str | None = None, engine: str | None = None) -> N:
    """Cycles of a product of m × k by k × n: start-up + ⌈⌈m ÷ block m⌉ × ⌈k ÷ block k⌉ × ⌈n ÷ block n⌉ ÷ rate⌉.

    Every dimension is padded to the block. 17 × 16 × 16 in f16 on davinci is two blocks. lhs, rhs: element types.
    Raises UserError where the machine has no matrix engine or the engine does not multiply these types.
    """
    name, unit = _pick(target, engine, MatrixEngine, "matrix")
    entry = unit.type_of(lhs, rhs)
    if entry is None:
        known = ", ".join(unit.types)
        raise UserError(
            f"engine '{name}' of target '{target.name}' does not multiply {lhs} by {rhs or lhs} (it has {known})"
        )
    blocks = ceil_div(m, entry.block[0]) * ceil_div(k, entry.block[1]) * ceil_div(n, entry.block[2])
    return ceil_div(blocks, entry.rate) + unit.startup


def vector_engine(target: Target, name: str | None = None) -> VectorEngine:
    """The vector engine of that name, or the first. Raises UserError where there is none."""
    return _pick(target, name, VectorEngine, "vector")[1]


def ceil_div(count: N, rate: float | Fraction) -> N:
    """⌈count ÷ rate⌉ in integers: exact for any rate a target file can write."""
    ratio = _exact(rate)
    return -(-count * ratio.denominator // ratio.numerator)


def larger(left: N, right: N) -> N:
    """Elementwise maximum that keeps ints ints."""
    return left + (right - left) * (right > left)


@lru_cache(maxsize=1024)
def _exact(rate: float | Fraction) -> Fraction:
    """The decimal number written in the file, not the binary one next to it."""
    return rate if isinstance(rate, Fraction) else Fraction(str(rate))


def _rate(unit: VectorEngine, dtype: str) -> Fraction:
    if not unit.supports(dtype):
        raise UserError(f"the vector engine does not compute in {dtype}")
    factor = {str(name): value for name, value in unit.dtype_factor.items()}.get(dtype, 1)
    return _exact(unit.bytes_per_cycle) / _exact(factor)


def _cost_class(fn: str) -> tuple[CostClass, int]:
    for movement in MOVEMENT:
        if fn == movement:
            return movement, 1
    if fn not in TABLE:
        raise UserError(f"no scalar operator '{fn}'")
    return TABLE[fn].cost, TABLE[fn].passes


E = TypeVar("E", MatrixEngine, VectorEngine)


def _pick(target: Target, name: str | None, kind: type[E], word: str) -> tuple[str, E]:
    for found, engine in target.engines.items():
        if isinstance(engine, kind) and name in (None, found):
            return found, engine
    raise UserError(f"target '{target.name}' has no {word} engine" + (f" '{name}'" if name else ""))
