"""What a target file says, as frozen, validated records. Units: bytes, cycles, bytes per cycle and core.

The models only describe; `target.py` loads them, `target_check.py` checks them against each other and `cost.py`
turns their figures into cycles.
"""

from __future__ import annotations

import re
from collections import deque
from functools import cached_property
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

ElementName: TypeAlias = Literal["f32", "f16", "bf16", "f64", "i8", "ui8", "i32", "i64", "i1"]
CostClass: TypeAlias = Literal["add", "mul", "exp", "div", "sqrt", "reciprocal", "row_sum", "row_max", "fill", "copy"]

_SIZE = re.compile(r"([0-9][0-9_]*)\s*(B|KiB|MiB|GiB|TiB)?")
_UNITS = {None: 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def parse_size(value: object) -> object:
    """`"64KiB"` → 65536. Anything that is not text passes through, for the field's own type to judge."""
    if not isinstance(value, str):
        return value
    match = _SIZE.fullmatch(value.strip())
    if match is None:
        raise ValueError('a size such as 65536, "64KiB" or "1MiB"')
    return int(match[1]) * _UNITS[match[2]]


# Beyond what any machine has, and little enough that sums and products of them are exact in 64 bits and in floats.
Count = Annotated[int, Field(ge=1, le=10**15, strict=True)]
Cycles = Annotated[int, Field(ge=0, le=10**12, strict=True)]
Bytes = Annotated[int, BeforeValidator(parse_size), Field(ge=1, le=1 << 60, strict=True)]
Rate = Annotated[float, Field(ge=1e-6, le=1e12, allow_inf_nan=False)]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Memory(Record):
    """One memory. `scope`: each core has its own, or the chip has one.

    The off-chip memory has a port: `core_rate` bounds one core, `pool_rate` all cores together; reads and writes share
    both. Its latencies delay the completion of a transfer, they do not occupy the engine. `granule` is the unit of bus
    traffic. A `fractal` memory keeps the last two dimensions in blocks of `fractal_rows` rows × `fractal_bytes` bytes;
    `fractal_order` says which index of the grid of blocks is outermost.
    """

    bytes: Bytes
    align: Bytes
    scope: Literal["core", "chip"] = "core"
    offchip: bool = False
    granule: Bytes = 1
    layout: Literal["row_major", "fractal"] = "row_major"
    fractal_rows: Count | None = None
    fractal_bytes: Bytes | None = None
    fractal_order: Literal["row", "column"] = "column"
    core_rate: Rate | None = None
    pool_rate: Rate | None = None
    read_latency: Cycles = 0
    write_latency: Cycles = 0


class DmaEngine(Record):
    """An in-order queue of transfers; what it can do is said by its moves."""

    kind: Literal["dma"]


class MatrixType(Record):
    """One operand type of a matrix engine: `rate` blocks of m × k × n multiply-adds per cycle."""

    result: ElementName
    block: tuple[Count, Count, Count]
    rate: Rate
    rhs: tuple[ElementName, ...] | None = Field(default=None, min_length=1)
    """Types of the right operand; absent: that of the left one."""
    max_shape: tuple[Count, Count, Count] | None = None
    """Most m, k and n of one instruction; absent: what its memories hold."""


class MatrixEngine(Record):
    """Multiplies a tile of memory `lhs` (m × k) by one of `rhs` (k × n), adding into memory `result`."""

    kind: Literal["matrix"]
    lhs: str
    rhs: str
    result: str
    startup: Cycles = 0
    types: dict[ElementName, MatrixType] = Field(min_length=1)

    def type_of(self, lhs: str, rhs: str | None = None) -> MatrixType | None:
        """The entry for operands of these element types, None where the engine has none."""
        entry = {str(name): value for name, value in self.types.items()}.get(lhs)
        if entry is None or (rhs or lhs) not in (entry.rhs or (lhs,)):
            return None
        return entry


class VectorEngine(Record):
    """Element by element operators and reductions on tiles of `memories`."""

    kind: Literal["vector"]
    memories: tuple[str, ...] = Field(min_length=1)
    bytes_per_cycle: Rate
    reduce_factor: Rate = 1
    """How many times longer a row reduction takes per byte than an addition."""
    startup: dict[CostClass, Cycles]
    dtype_factor: dict[ElementName, Rate] = Field(default_factory=dict[ElementName, float])
    """Element types that take longer than their bytes say."""
    unsupported: tuple[ElementName, ...] = ()

    def supports(self, element: str) -> bool:
        return element not in self.unsupported


Engine: TypeAlias = Annotated[DmaEngine | MatrixEngine | VectorEngine, Field(discriminator="kind")]


class Move(Record):
    """A path that one engine copies bytes along, and what it can do to them on the way.

    `rate` counts the wider of source and destination; without it only the off-chip port bounds the move.
    """

    source: str = Field(alias="from")
    destination: str = Field(alias="to")
    engine: str
    rate: Rate | None = None
    convert: bool = False
    """Between row-major and fractal, or between fractal layouts of different widths."""
    transpose: bool = False
    pad: bool = False
    """Fills what lies beyond the valid extents."""
    cast: bool = False
    scale: bool = False
    """Multiplies by a scalar."""
    bias: str | None = None
    """The memory a bias row can be read from and added."""
    activation: tuple[str, ...] = ()
    """Scalar operators that can be applied."""
    gather: Cycles | None = None
    """Rows of the source may be chosen by indices that lie where the vector engine works; each takes so many cycles
    beyond those of its bytes. Absent: they cannot."""
    gather_rows: Bytes | None = None
    """Rows of this many bytes may come from unrelated addresses."""

    def __hash__(self) -> int:
        return hash((self.source, self.destination, self.engine))


class Target(Record):
    """A machine. Two targets are equal when they say the same; they are hashable."""

    name: str
    description: str = ""
    clock_hz: Count
    cores: Count = 1
    max_cores: Count = 1
    launch_cycles: Cycles = 0
    event_slots: Count
    """Events per ordered pair of engines."""
    max_dma_dims: Count
    """Dimensions one DMA descriptor can express."""
    memories: dict[str, Memory] = Field(alias="memory", min_length=1)
    engines: dict[str, Engine] = Field(alias="engine", min_length=1)
    moves: tuple[Move, ...] = Field(alias="move", min_length=1)

    @cached_property
    def canonical(self) -> str:
        """The whole content as JSON text, byte-identical for equal targets. `load_target` reads it back."""
        return self.model_dump_json(by_alias=True, exclude_defaults=False, exclude_none=True)

    def __hash__(self) -> int:
        return hash(self.canonical)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self.canonical == other.canonical

    @cached_property
    def offchip(self) -> str:
        """Name of the off-chip memory."""
        return next(name for name, memory in self.memories.items() if memory.offchip)

    @property
    def offchip_memory(self) -> Memory:
        return self.memories[self.offchip]

    @cached_property
    def matrix_engine(self) -> tuple[str, MatrixEngine] | None:
        """Name and record of the (first) matrix engine, None where the machine has none."""
        return next(((n, e) for n, e in self.engines.items() if isinstance(e, MatrixEngine)), None)

    @cached_property
    def vector_engine(self) -> tuple[str, VectorEngine] | None:
        """Name and record of the (first) vector engine, None where the machine has none."""
        return next(((n, e) for n, e in self.engines.items() if isinstance(e, VectorEngine)), None)

    @cached_property
    def working_memory(self) -> str:
        """Where a tile lies that the matrix engine does not ask for: with the vector engine; on a machine without one,
        in the first memory that is filled from and emptied to the off-chip memory directly."""
        if self.vector_engine is not None:
            return self.vector_engine[1].memories[0]
        ends = ((self.offchip, name) for name in self.memories)
        found = (name for chip, name in ends if self.move(chip, name) and self.move(name, chip))
        return next(found, next(name for name in self.memories if name != self.offchip))

    def move(self, source: str, destination: str) -> Move | None:
        """The direct move between two memories, None where there is none."""
        return self._moves_by_ends.get((source, destination))

    @cached_property
    def _moves_by_ends(self) -> dict[tuple[str, str], Move]:
        return {(move.source, move.destination): move for move in self.moves}

    @property
    def gathers(self) -> bool:
        """Whether whatever is loaded from the off-chip memory can be loaded as rows that indices choose."""
        loads = [move for move in self.moves if move.source == self.offchip]
        return bool(loads) and self.vector_engine is not None and all(move.gather is not None for move in loads)

    def move_rate(self, move: Move) -> float:
        """Bytes per cycle one core can reach on a move: its own rate, bounded by the off-chip port."""
        port = self.offchip_memory.core_rate if self.offchip in (move.source, move.destination) else None
        return min(rate for rate in (move.rate, port, float("inf")) if rate is not None)

    def path(self, source: str, destination: str) -> tuple[Move, ...] | None:
        """Moves from one memory to another: fewest hops, then least time per byte, then names in order.

        `()` from a memory to itself, None where no path exists. On davinci gm → l0a is (gm → l1, l1 → l0a).
        """
        best: dict[str, tuple[int, float, tuple[str, ...], tuple[Move, ...]]] = {source: (0, 0.0, (), ())}
        queue = deque([source])
        while queue:
            here = queue.popleft()
            hops, cost, names, moves = best[here]
            for move in (move for move in self.moves if move.source == here):
                there = move.destination
                found = (hops + 1, cost + 1 / self.move_rate(move), (*names, there), (*moves, move))
                if there not in best or found[:3] < best[there][:3]:
                    best[there] = found
                    queue.append(there)
        return best[destination][3] if destination in best else None
