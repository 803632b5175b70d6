"""Figures of one execution (or analysis) as plain data, ready for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.ir import Attribute, Operation

from ..dialects.attributes import int_values
from ..dialects.hardware import KernelOp, ProgramOp
from ..dialects.target import TARGET_ATTRIBUTE, Target, target_of
from .machine import MachineResult

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

MEMORY = "tilewright.memory"
"""Attribute of a kernel: per memory, [highest byte used, most bytes alive at once]."""
WORKSPACE = "tilewright.workspace"
"""Attribute of a program: bytes of its off-chip arena of intermediates."""


def off_chip_bytes(links: Mapping[str, int], target: Target) -> tuple[int, int]:
    """Bytes read from and written to the off-chip memory, of bytes by link (`"gm->l1"`)."""
    ends = [(link.split("->"), count) for link, count in links.items()]
    read = sum(count for (source, _), count in ends if source == target.offchip)
    written = sum(count for (_, destination), count in ends if destination == target.offchip)
    return read, written


def target_name(module: ModuleOp) -> str:
    """The target as the user named it, with its overrides; of one that came from a file, its name."""
    spec = module.attributes.get(TARGET_ATTRIBUTE)
    return spec.data if isinstance(spec, StringAttr) and not spec.data.startswith("{") else target_of(module).name


def machine_figures(module: ModuleOp, result: MachineResult) -> dict[str, Json]:
    """Everything a report says of a hardware-level module and what the machine counted on it.

    Keys: target, traffic, workspace_bytes, cycles, time_us, engines, kernels, memory.
    """
    target = target_of(module)
    read, written = off_chip_bytes(result.links, target)
    links: dict[str, Json] = dict(sorted(result.links.items()))
    return {
        "target": target_name(module),
        "traffic": {"read_bytes": read, "write_bytes": written, "links": links},
        "workspace_bytes": workspace_bytes(module),
        "cycles": result.cycles,
        "time_us": result.cycles / target.clock_hz * 1e6,
        "engines": {
            name: {
                "busy_cycles": result.engine_busy.get(name, 0),
                "utilization": result.engine_busy.get(name, 0) / result.cycles if result.cycles else 0.0,
            }
            for name in target.engines
        },
        "kernels": kernel_figures(module, result),
        "memory": memory_figures(module, target),
    }


def kernel_figures(module: ModuleOp, result: MachineResult) -> list[Json]:
    """One entry per launched kernel: its schedule as recorded in the module, and what the machine counted."""
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    entries: list[Json] = []
    for kernel in result.kernels:
        attribute = kernels[kernel.name].schedule if kernel.name in kernels else None
        schedule = plain(attribute) if attribute is not None else None
        strategy = schedule.get("strategy") if isinstance(schedule, dict) else None
        entries.append(
            {
                "name": kernel.name,
                "strategy": strategy if isinstance(strategy, str) else None,
                "schedule": schedule,
                "read_bytes": kernel.read_bytes,
                "write_bytes": kernel.write_bytes,
                "cycles": kernel.cycles,
            }
        )
    return entries


def workspace_bytes(module: ModuleOp) -> int:
    """Off-chip bytes of intermediates."""
    programs = [op for op in module.ops if isinstance(op, ProgramOp)]
    return sum(value.value.data for op in programs if isinstance(value := op.attributes.get(WORKSPACE), IntegerAttr))


def memory_figures(module: ModuleOp, target: Target) -> dict[str, Json]:
    """Per memory of the target: the highest byte a plan uses, its capacity, and the bytes any plan needs.

    On chip of the kernel that needs most; off chip of inputs, outputs, constants and the arena of intermediates.
    """
    figures: dict[str, Json] = {}
    for name, memory in target.memories.items():
        peak, bound = 0, 0
        for op in module.walk():
            numbers = _memory_of(op, name)
            peak, bound = max(peak, numbers[0]), max(bound, numbers[1])
        figures[name] = {"peak_bytes": peak, "capacity_bytes": memory.bytes, "lower_bound_bytes": bound}
    return figures


def _memory_of(op: Operation, name: str) -> tuple[int, int]:
    attribute = op.attributes.get(MEMORY)
    if not isinstance(attribute, DictionaryAttr) or name not in attribute.data:
        return 0, 0
    peak, bound = cast("list[int]", plain(attribute.data[name]))
    return peak, bound


def plain(attribute: Attribute) -> Json:
    """An attribute of numbers, strings, lists and dictionaries as plain data; others as their text."""
    match attribute:
        case StringAttr():
            return attribute.data
        case IntegerAttr():
            return cast("IntegerAttr[Any]", attribute).value.data
        case DenseArrayBase():
            return list(int_values(attribute))
        case ArrayAttr():
            return [plain(inner) for inner in attribute]
        case DictionaryAttr():
            return {name: plain(inner) for name, inner in attribute.data.items()}
        case _:
            return str(attribute)
