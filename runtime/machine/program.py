"""A decoded program: kernels as nests of loops over prepared instructions, and the launches that run them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from math import prod
from typing import TypeAlias

from xdsl.ir import Attribute, Operation

from ...dialects import hardware
from ...dialects.dtypes import ElementType
from ...dialects.layout import Layout
from ...dialects.target_model import Target
from .affine import Affine, AffineList, Counters, constant_affine
from .errors import MachineError


@dataclass(frozen=True, eq=False)
class Buffer:
    """Bytes of a memory as a kernel sees them. An argument of the kernel has no offset until it is launched.

    `slots` parts of equal size, each a multiple of the memory's alignment if there are several, make up `size` bytes.
    """

    name: str
    memory: str
    offset: int | None
    size: int
    location: Attribute
    slots: int = 1


@dataclass(frozen=True, eq=False)
class View:
    """One operand of one instruction; `buffer` numbers the kernel's buffers, `reach` is where bounds can move."""

    name: str
    buffer: int
    memory: str
    element: ElementType
    shape: tuple[int, ...]
    layout: Layout
    offset: Affine
    start: AffineList | None
    valid: AffineList | None
    align: int
    """Bytes that the view's start is a multiple of: the memory's alignment on chip, 1 off chip."""


@dataclass(frozen=True, eq=False)
class Step:
    """An instruction or event of one engine inside a nest. `loops` names the counters around it, outermost first."""

    op: Operation
    engine: str
    loops: tuple[str, ...]

    @property
    def what(self) -> str:
        return f"'{self.op.name}' on engine '{self.engine}'"

    def place(self, counters: Counters) -> str:
        """Instruction, engine and iteration for messages."""
        if not self.loops or not counters:
            return self.what
        values = ", ".join(f"{name}={value}" for name, value in zip(self.loops, counters, strict=False))
        return f"{self.what} at {values}"

    def error(self, counters: Counters, message: str, *notes: tuple[str, Attribute | None]) -> MachineError:
        return MachineError(f"{self.place(counters)}: {message}", self.op.location, notes)


EventKey: TypeAlias = tuple[str, str, int]


@dataclass(frozen=True, eq=False)
class EventStep(Step):
    """A signal (on the engine it is from) or a wait (on the engine it is for)."""

    event: EventKey
    times: int
    signals: bool

    @property
    def event_name(self) -> str:
        source, sink, number = self.event
        return f"event {number} from '{source}' to '{sink}'"


@dataclass(frozen=True, eq=False)
class Instruction(Step):
    """`views`: inputs, then the output. `axes` gives, per view, the axis of the instruction that each of its
    dimensions runs along, -1 where one element serves all positions; `extents` are those of the axes."""

    op: hardware.InstructionOp
    views: tuple[View, ...]
    axes: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]
    init: AffineList | None = None
    map: AffineList | None = None

    @property
    def output(self) -> View:
        return self.views[-1]

    @property
    def fresh(self) -> bool:
        return self.op.fresh is not None

    @cached_property
    def early(self) -> bool:
        """Whether it is a load that may begin before the launch before has ended."""
        return isinstance(self.op, hardware.DmaOp) and self.op.early is not None

    @property
    def bounded(self) -> bool:
        """Whether any view says bounds of its active region."""
        return any(view.start is not None or view.valid is not None for view in self.views)

    @cached_property
    def depends(self) -> frozenset[int]:
        """Depths of the counters that the active region depends on."""
        bounds = [b for view in self.views for b in (view.start, view.valid) if b is not None]
        return frozenset(depth for bound in bounds for depth in bound.depends)

    def region(self, counters: Counters) -> tuple[tuple[int, int], ...]:
        """[low, high) of every axis, all (0, 0) where a view has no active element at a dimension without an axis."""
        lows, highs = [0] * len(self.extents), list(self.extents)
        for view, axes in zip(self.views, self.axes, strict=True):
            if view.start is None and view.valid is None:
                continue
            starts = view.start.at(counters) if view.start is not None else (0,) * len(view.shape)
            ends = view.valid.at(counters) if view.valid is not None else view.shape
            for axis, low, high, extent in zip(axes, starts, ends, view.shape, strict=True):
                if axis < 0:
                    if low > 0 or min(high, extent) < 1:
                        return ((0, 0),) * len(self.extents)
                    continue
                if low > lows[axis]:
                    lows[axis] = low
                if high < highs[axis]:
                    highs[axis] = high
        return tuple((low, high) if low < high else (0, 0) for low, high in zip(lows, highs, strict=True))


@dataclass(eq=False)
class Loop:
    """`depth` numbers its counter; bounds are over the counters around it. `cores`: iteration n is core n's alone, of
    so many; 0 for a loop of one core."""

    op: hardware.ForOp
    depth: int
    name: str
    lower: Affine
    upper: Affine
    body: list[Node]
    cores: int = 0

    def instructions(self) -> Iterator[Instruction]:
        """Every step inside that is no event once."""
        return (step for step in _steps(self.body) if isinstance(step, Instruction))


Node: TypeAlias = "Instruction | EventStep | Loop"


@dataclass(eq=False)
class Kernel:
    """`arguments` of the `buffers` come first. `depth`: most loops around an instruction."""

    name: str
    op: hardware.KernelOp
    arguments: int
    buffers: list[Buffer]
    body: list[Node]
    depth: int
    engines: tuple[str, ...]

    @property
    def cores(self) -> int:
        """How many cores execute it."""
        return prod(loop.cores for loop in self.core_loops)

    @cached_property
    def shares(self) -> list[Kernel]:
        """What each core executes: the same steps, the loops over cores at one iteration. The kernel itself if it is
        alone."""
        loops = self.core_loops
        if not loops:
            return [self]
        return [
            replace(self, body=_share(self.body, numbers))
            for numbers in product(*(range(loop.cores) for loop in loops))
        ]

    @cached_property
    def early(self) -> bool:
        """Whether it has loads that may begin before the launch before has ended."""
        return any(step.early for step in self.instructions())

    @cached_property
    def core_loops(self) -> list[Loop]:
        """The loops over cores, outermost first: they stand around everything else."""
        found: list[Loop] = []
        body = self.body
        while len(body) == 1 and isinstance(loop := body[0], Loop) and loop.cores:
            found.append(loop)
            body = loop.body
        return found

    def steps(self) -> Iterator[Instruction | EventStep]:
        """Every step once."""
        yield from _steps(self.body)

    def instructions(self) -> Iterator[Instruction]:
        """Every step that is no event once."""
        return (step for step in _steps(self.body) if isinstance(step, Instruction))

    def loops(self) -> Iterator[Loop]:
        """Every loop once, outer ones first."""
        yield from _loops(self.body)


def _share(body: list[Node], numbers: Sequence[int]) -> list[Node]:
    """The part of a nest that one core executes, given its number in each loop over cores."""
    if not numbers:
        return body
    loop = body[0]
    assert isinstance(loop, Loop)
    lower, upper = constant_affine(numbers[0]), constant_affine(numbers[0] + 1)
    return [Loop(loop.op, loop.depth, loop.name, lower, upper, _share(loop.body, numbers[1:]))]


def _steps(body: Sequence[Node]) -> Iterator[Instruction | EventStep]:
    for node in body:
        if isinstance(node, Loop):
            yield from _steps(node.body)
        else:
            yield node


def _loops(body: Sequence[Node]) -> Iterator[Loop]:
    for node in body:
        if isinstance(node, Loop):
            yield node
            yield from _loops(node.body)


@dataclass(frozen=True, eq=False)
class Launch:
    """A kernel on off-chip bytes: `bases` are the addresses of all its buffers, local ones included, and `owners` the
    numbers of their bytes (owners.py); `arguments` are the program's buffers behind its arguments."""

    kernel: Kernel
    bases: tuple[int, ...]
    owners: tuple[int, ...]
    op: hardware.LaunchOp
    arguments: tuple[External, ...]


@dataclass(frozen=True, eq=False)
class External:
    """An off-chip buffer of the program with its element type, layout, role and the number of its bytes."""

    op: hardware.BufferOp
    name: str
    offset: int
    owner: int
    element: ElementType
    shape: tuple[int, ...]
    layout: Layout

    @property
    def role(self) -> str:
        """input, output, constant, weight or workspace."""
        return self.op.role.data


@dataclass(eq=False)
class Program:
    """What the machine executes."""

    target: Target
    name: str
    externals: list[External] = field(default_factory=list[External])
    launches: list[Launch] = field(default_factory=list[Launch])
    peaks: dict[str, int] = field(default_factory=dict[str, int])

    def role(self, role: str) -> list[External]:
        """The buffers of a role, inputs and outputs by their index."""
        found = [external for external in self.externals if external.role == role]
        return sorted(found, key=lambda e: e.op.index.value.data if e.op.index is not None else 0)
