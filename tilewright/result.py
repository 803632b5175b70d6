"""What an execution gives back."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.dialects.target import Target
from tilewright.runtime.machine import KernelResult, MachineResult
from tilewright.runtime.report import Json, machine_figures, off_chip_bytes, target_name

from .arrays import Array
from .errors import plain_error
from .notebook import grid
from .tolerance import relative_error

if TYPE_CHECKING:
    from .program import Program


@dataclass(frozen=True)
class Traffic:
    """Bytes moved: off chip, and on every link (`"gm->l1"`), in bus bytes."""

    read_bytes: int
    write_bytes: int
    links: Mapping[str, int] = field(repr=False)

    @property
    def total_bytes(self) -> int:
        """Off-chip bytes read and written."""
        return self.read_bytes + self.write_bytes

    @staticmethod
    def of(result: MachineResult, target: Target) -> Traffic:
        """The traffic the machine counted."""
        return Traffic(*off_chip_bytes(result.links, target), dict(result.links))


@dataclass(frozen=True)
class Unfused:
    """What one optimally scheduled kernel per named op would move and take."""

    read_bytes: int
    write_bytes: int
    cycles: int

    @staticmethod
    def of(result: MachineResult, target: Target) -> Unfused:
        read, written = off_chip_bytes(result.links, target)
        return Unfused(read, written, result.cycles)

    def json(self) -> dict[str, Json]:
        """`read_bytes`, `write_bytes`, `cycles`."""
        return {"read_bytes": self.read_bytes, "write_bytes": self.write_bytes, "cycles": self.cycles}


def finite(error: float | None) -> float | None:
    """JSON has no infinity: where NaN or infinities differ, the largest number."""
    return error if error is None else min(error, sys.float_info.max)


@dataclass(frozen=True)
class Run:
    """One execution. Traffic, cycles and kernels are those of the machine: only a hardware-level run has them."""

    program: Program = field(repr=False)
    level: str
    inputs: tuple[Array, ...] = field(repr=False)
    outputs: Mapping[str, Array] = field(repr=False)
    result: MachineResult | None = field(repr=False)

    @property
    def machine(self) -> MachineResult:
        """Everything the machine counted. Raises SourceError for a run at another level."""
        if self.result is None:
            raise plain_error(f"a run at the {self.level} level has no traffic or cycles: run at the hardware level")
        return self.result

    @property
    def traffic(self) -> Traffic:
        return Traffic.of(self.machine, self.program.target)

    @property
    def cycles(self) -> int:
        return self.machine.cycles

    @property
    def kernels(self) -> tuple[KernelResult, ...]:
        """What each launched kernel moved and took, in order."""
        return tuple(self.machine.kernels)

    def errors(self) -> dict[str, float | None]:
        """Each output's max|x − ref| / max|ref| against float64; None where there is no reference."""
        reference = self.program.reference(self.inputs)
        if reference is None:
            return dict.fromkeys(self.outputs)
        return {name: relative_error(x, r) for (name, x), r in zip(self.outputs.items(), reference, strict=True)}

    def report(self, unfused: bool = True) -> dict[str, Json]:
        """The figures as plain data; see docs for the keys.

        `unfused` compiles the program once more, one kernel per named op, for comparison; without it the key is None.
        """
        errors = self.errors()
        outputs: list[Json] = [
            {
                "name": spec.name,
                "shape": list(self.outputs[spec.name].shape),
                "dtype": spec.element.name,
                "max_rel_err": finite(errors[spec.name]),
            }
            for spec in self.program.outputs
        ]
        figures: dict[str, Json] = {"target": target_name(self.program.module), "level": self.level, "outputs": outputs}
        if self.result is None:
            return figures
        figures |= machine_figures(self.program.module, self.result)
        twin = self.program.unfused if unfused else None
        bounds = self.program.compulsory
        figures["unfused"] = twin.json() if twin else None
        figures["compulsory_bytes"] = sum(bounds) if bounds else None
        return figures

    def _repr_html_(self) -> str:
        """Outputs in a notebook, and what each kernel moved and took."""
        shapes = [[name, "x".join(map(str, x.shape)) or "scalar", str(x.dtype)] for name, x in self.outputs.items()]
        html = grid(["output", "shape", "type"], shapes)
        if self.result is None:
            return html
        rows = [[k.name, *(f"{n:,}" for n in (k.read_bytes, k.write_bytes, k.cycles))] for k in self.kernels]
        return html + grid(["kernel", "bytes read", "bytes written", "cycles"], rows)

    def __repr__(self) -> str:
        outputs = ", ".join(f"{name}: {'x'.join(map(str, x.shape))} {x.dtype}" for name, x in self.outputs.items())
        if self.result is None:
            return f"<tilewright.Run at the {self.level} level: {outputs}>"
        read, written = self.traffic.read_bytes, self.traffic.write_bytes
        return f"<tilewright.Run: {outputs}; {read} B read, {written} B written, {self.cycles} cycles>"
