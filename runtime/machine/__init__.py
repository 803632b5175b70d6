"""The machine: one decoded program, executed on data, simulated in time, checked for order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from .data import Loader
from .errors import MachineError
from .machine import TRACED, Machine
from .options import Interleaving, MachineOptions
from .profile import KernelProfile
from .result import Array, KernelResult, MachineResult, MemoryResult
from .trace import Place

__all__ = [
    "TRACED", "Array", "Interleaving", "KernelProfile", "KernelResult", "Machine", "MachineError", "MachineOptions",
    "MachineResult", "MemoryResult", "analyze", "check_order", "profile", "run", "trace",
]  # fmt: skip


def run(
    module: ModuleOp, inputs: Sequence[Array], options: MachineOptions | None = None, loader: Loader | None = None
) -> MachineResult:
    """`Machine.run` of a hardware-level module."""
    return Machine(module).run(inputs, options, loader)


def analyze(module: ModuleOp) -> MachineResult:
    """`Machine.analyze` of a hardware-level module."""
    return Machine(module).analyze()


def profile(module: ModuleOp) -> tuple[MachineResult, list[KernelProfile]]:
    """`Machine.profile` of a hardware-level module."""
    return Machine(module).profile()


def trace(module: ModuleOp, place: Place, spans: int = TRACED) -> dict[str, Any]:
    """`Machine.trace` of a hardware-level module."""
    return Machine(module).trace(place, spans)


def check_order(module: ModuleOp) -> None:
    """`Machine.check_order` of a hardware-level module."""
    Machine(module).check_order()
