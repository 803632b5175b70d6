"""Where the time of a compiled program goes, told in terms of its source: operations, their classes, tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Operation

from tilewright.dialects import graph_elementwise, graph_linear, graph_norm, graph_primitives, graph_shape, hardware
from tilewright.dialects.graph_base import GraphOp
from tilewright.ir.diagnostics import file_locations, location_names
from tilewright.runtime.machine import KernelProfile, Machine, MachineResult
from tilewright.runtime.machine.profile import InstructionProfile, WaitProfile, merged
from tilewright.runtime.machine.trace import Trace
from tilewright.runtime.report import Json, off_chip_bytes

from .errors import diagnosed
from .profile_costs import NOTHING, Costs
from .program import Program
from .tensors import Traffic, traffic

TRANSFERS = "loads and stores"
"""Class of the transfers that belong to no operation but to the kernel as a whole."""

NORMS = "norm/activation"
"""Class of normalisations and activations."""

_CLASSES = {
    graph_elementwise.__name__: "elementwise",
    graph_linear.__name__: "tensor",
    graph_norm.__name__: NORMS,
    graph_shape.__name__: "layout",
}
_ACTIVATIONS = {"graph.gelu", "graph.silu", "graph.relu", "graph.sigmoid", "graph.tanh", "graph.leaky_relu"}
_PRIMITIVES = {
    graph_primitives.MapOp: "elementwise",
    graph_primitives.ReduceOp: "reduction",
    graph_primitives.ContractOp: "tensor",
    graph_primitives.ViewOp: "layout",
}
_INSTRUCTIONS = {
    hardware.DmaOp: TRANSFERS,
    hardware.MatmulOp: "tensor",
    hardware.ReduceOp: "reduction",
}
"""Classes of instructions that no operation of the source is known for."""


def operator_class(op: Operation) -> str:
    """Elementwise, reduction, tensor, layout, or norm/activation."""
    if op.name in _ACTIVATIONS:
        return NORMS
    if op.name.startswith("graph.reduce"):
        return "reduction"
    known = next((name for kind, name in _PRIMITIVES.items() if isinstance(op, kind)), None)
    return known or _CLASSES.get(type(op).__module__, "elementwise")


@dataclass(frozen=True)
class SourceProfile:
    """What one operation of the source costs in one kernel (of all its launches)."""

    name: str
    place: str
    kind: str
    kernel: str
    costs: Costs


@dataclass(frozen=True)
class ClassProfile:
    """A class of kernels: those that do one operation of the class and nothing else, or `fused` ones. `cycles` is the
    time of their launches, `idle` the part of it in which the busiest engine of each does nothing."""

    kernels: int
    cycles: int
    idle: int
    costs: Costs


@dataclass(frozen=True)
class Profile:
    """Of a program at the hardware level, without data."""

    program: Program
    result: MachineResult
    kernels: tuple[KernelProfile, ...]

    @staticmethod
    def of(program: Program) -> Profile:
        """Raises SourceError for a program that is not at the hardware level."""
        snapshot = program.snapshot("hardware")
        with diagnosed(program.source.texts):
            result, kernels = snapshot.machine.profile()
        return Profile(program, result, tuple(kernels))

    @cached_property
    def sources(self) -> list[SourceProfile]:
        """Per operation of the source and kernel, the most engine cycles first."""
        ops = _by_place(self.program.source.op)
        groups: dict[tuple[str, str, str, str], list[InstructionProfile]] = {}
        for kernel in self.kernels:
            for one in kernel.instructions:
                groups.setdefault((*_source(one, ops), kernel.name), []).append(one)
        waits: dict[tuple[str, str, str, str], list[WaitProfile]] = {}
        for kernel in self.kernels:
            for wait in kernel.waits:
                if wait.before is not None:
                    waits.setdefault((*_source(wait.before, ops), kernel.name), []).append(wait)
        found = [SourceProfile(*key, Costs.of(group, waits.get(key, ()))) for key, group in groups.items()]
        return sorted(found, key=lambda row: -row.costs.cycles)

    @cached_property
    def classes(self) -> dict[str, Costs]:
        """By class of operation, kernels that fuse several split among them; the most engine cycles first."""
        found: dict[str, Costs] = {}
        for row in self.sources:
            found[row.kind] = found.get(row.kind, NOTHING) + row.costs
        return dict(sorted(found.items(), key=lambda item: -item[1].cycles))

    @cached_property
    def kernel_classes(self) -> dict[str, ClassProfile]:
        """By class of kernel, the longest first: their cycles are those of the program."""
        found: dict[str, list[KernelProfile]] = {}
        for kernel in self.kernels:
            found.setdefault(self.kernel_class(kernel), []).append(kernel)
        made = {kind: _class_of(kernels) for kind, kernels in found.items()}
        return dict(sorted(made.items(), key=lambda item: -item[1].cycles))

    def kernel_class(self, kernel: KernelProfile) -> str:
        """The class of a kernel's only operation, or `fused`."""
        kinds = {(row.name, row.place): row.kind for row in self.sources if row.kernel == kernel.name}
        inside = {key: kind for key, kind in kinds.items() if kind != TRANSFERS}
        return next(iter(inside.values())) if len(inside) == 1 else "fused" if inside else TRANSFERS

    @property
    def operations(self) -> int:
        """Multiply-adds, counted as two, and elements of everything else that engines but DMA compute."""
        return sum(one.operations for kernel in self.kernels for one in kernel.instructions)

    @cached_property
    def traffic(self) -> Traffic:
        """Which launches move which tensors."""
        return traffic(self.machine.program, self.kernels)

    @cached_property
    def timeline(self) -> Trace:
        """What happens when."""
        with diagnosed(self.program.source.texts):
            return self.machine.timeline(place)

    @property
    def machine(self) -> Machine:
        """The decoded program."""
        return self.program.snapshot("hardware").machine

    @property
    def off_chip(self) -> int:
        """Bytes read and written off chip."""
        return sum(off_chip_bytes(self.result.links, self.program.target))

    @property
    def roofline(self) -> dict[str, float]:
        """Share of the cycles for which each resource is needed whatever the schedule of the same instructions: the
        time cannot be less than the largest."""
        cycles = max(self.result.cycles, 1)
        shares = {"off-chip port": sum(k.port_cycles for k in self.kernels) / cycles}
        return shares | {name: busy / cycles for name, busy in self.result.engine_busy.items()}

    def waits(self) -> list[tuple[str, str, int]]:
        """Engine, the one it waits for, cycles; the longest first."""
        total: dict[tuple[str, str], int] = {}
        for kernel in self.kernels:
            for key, cycles in merged(kernel.waits).items():
                total[key] = total.get(key, 0) + cycles
        return sorted(((a, b, n) for (a, b), n in total.items()), key=lambda row: -row[2])

    def json(self) -> dict[str, Json]:
        """Keys: cycles, operations, off_chip_bytes, roofline, kernels, sources, classes, kernel_classes, waits."""
        kernels: list[Json] = [self._kernel(kernel) for kernel in self.kernels]
        sources: list[Json] = [
            {"name": row.name, "place": row.place, "kind": row.kind, "kernel": row.kernel, **row.costs.json()}
            for row in self.sources
        ]
        return {
            "cycles": self.result.cycles,
            "operations": self.operations,
            "off_chip_bytes": self.off_chip,
            "roofline": {**self.roofline},
            "kernels": kernels,
            "sources": sources,
            "classes": {kind: costs.json() for kind, costs in self.classes.items()},
            "kernel_classes": {
                kind: {"kernels": one.kernels, "time": one.cycles, "idle": one.idle, **one.costs.json()}
                for kind, one in self.kernel_classes.items()
            },
            "waits": [{"engine": a, "for": b, "cycles": n} for a, b, n in self.waits()],
        }

    def _kernel(self, kernel: KernelProfile) -> Json:
        instructions: list[Json] = [
            {
                "what": one.what, "engine": one.engine, "executed": one.executed, "cycles": one.cycles,
                "queued": one.queued, "bytes": one.bytes, "utilization": one.utilization,
                "place": place(one.location),
            }
            for one in kernel.instructions
        ]  # fmt: skip
        waits: list[Json] = [
            {
                "engine": w.engine, "for": w.source, "event": w.event, "cycles": w.cycles, "place": place(w.location),
                "before": w.before.what if w.before else None, "after": w.after.what if w.after else None,
            }
            for w in kernel.waits
        ]  # fmt: skip
        engines: list[Json] = [{**vars(engine)} for engine in kernel.engines]
        return {
            "name": kernel.name, "class": self.kernel_class(kernel), "cycles": kernel.cycles,
            "launch_cycles": kernel.launch_cycles, "port_cycles": kernel.port_cycles, "bound": kernel.bound,
            "engines": engines, "instructions": instructions, "waits": waits,
        }  # fmt: skip


def trace(program: Program) -> dict[str, object]:
    """The timeline of a program at the hardware level, as Perfetto reads it."""
    return Profile.of(program).timeline.json()


def place(location: Attribute) -> str:
    """The first place of a location as `file:line:column`, or the name it has instead (of a node of an imported
    model); empty where it is unknown."""
    found = next(file_locations(location), None)
    if found is None:
        return next(location_names(location), "")
    return f"{found.filename.data}:{found.line.data}:{found.column.data}"


def _by_place(module: ModuleOp) -> dict[str, Operation]:
    return {place(op.location): op for op in _graph_ops(module) if place(op.location)}


def _graph_ops(module: ModuleOp) -> Iterator[Operation]:
    return (op for op in module.walk() if isinstance(op, GraphOp))


def _source(one: InstructionProfile, ops: dict[str, Operation]) -> tuple[str, str, str]:
    """Name, place and class of what an instruction belongs to."""
    where = place(one.location)
    op = ops.get(where)
    if op is not None:
        return op.name, where, operator_class(op)
    kind = next((kind for cls, kind in _INSTRUCTIONS.items() if isinstance(one.step.op, cls)), "elementwise")
    return one.what, where, kind


def _class_of(kernels: Sequence[KernelProfile]) -> ClassProfile:
    rows = [one for kernel in kernels for one in kernel.instructions]
    waits = [wait for kernel in kernels for wait in kernel.waits]
    cycles = sum(kernel.cycles for kernel in kernels)
    busiest = sum(max((engine.busy for engine in kernel.engines), default=0) for kernel in kernels)
    return ClassProfile(len(kernels), cycles, cycles - busiest, Costs.of(rows, waits))
