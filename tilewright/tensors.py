"""Which launches move which tensors on and off the chip, in bus bytes: the same bytes as the machine counts by link."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.runtime.machine import KernelProfile
from tilewright.runtime.machine.profile import InstructionProfile
from tilewright.runtime.machine.program import External, Program
from tilewright.runtime.report import Json


@dataclass(frozen=True)
class Tensor:
    """Off chip. `role` is input, output, constant, weight or workspace (an intermediate), of a kernel's own buffer
    `local`; `size` its bytes, without granules."""

    number: int
    name: str
    role: str
    size: int


@dataclass(frozen=True)
class Flow:
    """What one launch reads from a tensor and writes to it, in bus bytes."""

    launch: int
    tensor: Tensor
    read: int
    written: int


@dataclass(frozen=True)
class Traffic:
    """`tensors` in the order of the program; `flows` by launch; `names` of the launched kernels."""

    names: tuple[str, ...]
    tensors: tuple[Tensor, ...]
    flows: tuple[Flow, ...]

    def of(self, tensor: Tensor) -> tuple[int, int]:
        """Bytes read and written of a tensor over the whole program."""
        mine = [flow for flow in self.flows if flow.tensor == tensor]
        return sum(flow.read for flow in mine), sum(flow.written for flow in mine)

    def json(self) -> dict[str, Json]:
        """Keys: tensors (name, role, bytes, read_bytes, write_bytes), kernels, edges (from, to, bytes)."""
        tensors: list[Json] = []
        for tensor in self.tensors:
            read, written = self.of(tensor)
            tensors.append(
                {"name": tensor.name, "role": tensor.role, "bytes": tensor.size,
                 "read_bytes": read, "write_bytes": written}
            )  # fmt: skip
        edges: list[Json] = [{"tensor": f.tensor.number, "kernel": f.launch, "read_bytes": f.read,
                              "write_bytes": f.written} for f in self.flows]  # fmt: skip
        return {"tensors": tensors, "kernels": [*self.names], "edges": edges}


def traffic(program: Program, kernels: Sequence[KernelProfile]) -> Traffic:
    """Of a decoded program and its profile, an entry per launch."""
    tensors = {external: _tensor(number, external) for number, external in enumerate(program.externals)}
    owned: list[Tensor] = []
    flows: list[Flow] = []
    for number, (launch, kernel) in enumerate(zip(program.launches, kernels, strict=True)):
        counts: dict[Tensor, list[int]] = {}
        for one, buffer, direction in _ends(kernel, program.target.offchip):
            if buffer < launch.kernel.arguments:
                tensor = tensors[launch.arguments[buffer]]
            else:
                held = launch.kernel.buffers[buffer]
                tensor = Tensor(len(tensors) + len(owned), f"{held.name} of {kernel.name}", "local", held.size)
                tensor = next((t for t in owned if (t.name, t.size) == (tensor.name, tensor.size)), tensor)
                owned += [] if tensor in owned else [tensor]
            counts.setdefault(tensor, [0, 0])[direction] += one.bytes
        flows += [Flow(number, tensor, *count) for tensor, count in counts.items()]
    return Traffic(tuple(k.name for k in kernels), (*tensors.values(), *owned), tuple(flows))


def _ends(kernel: KernelProfile, offchip: str) -> Iterator[tuple[InstructionProfile, int, int]]:
    """Off-chip ends of the transfers of a launch: the transfer, number of the buffer, 0 if it is read, 1 if written."""
    for one in kernel.instructions:
        if one.offchip:
            for direction, view in enumerate((one.step.views[0], one.step.output)):
                if view.memory == offchip:
                    yield one, view.buffer, direction


def name_of(number: int, external: External) -> str:
    """What to call a tensor: what its program calls it, else what it is."""
    op = external.op
    return op.label.data if op.label is not None else op.res.name_hint or f"{external.role} {number}"


def _tensor(number: int, external: External) -> Tensor:
    return Tensor(number, name_of(number, external), external.role, external.layout.size_bytes)
