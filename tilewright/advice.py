"""What would make a program faster or more exact: the classic mistakes, with evidence and what each costs.

Every rule looks at the hardware level, so that hand-written kernels are seen as compiled ones are. The saving is
predicted from the simulation; what is below WORTH of the time is not worth saying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from xdsl.dialects.builtin import ModuleOp

from tilewright.dialects import cost, hardware
from tilewright.dialects.dtypes import element
from tilewright.dialects.errors import UserError
from tilewright.dialects.tile_types import BufferType
from tilewright.runtime import machine
from tilewright.runtime.machine.profile import InstructionProfile, KernelProfile
from tilewright.runtime.report import Json

from .profiling import Profile, place
from .render import bytes_text

WORTH = 0.02
"""Share of a program's cycles from which a saving is mentioned."""

EVENTS = 48
"""Events of a program that are tried to be left out at most."""


@dataclass(frozen=True)
class Advice:
    """One mistake: `rule`, what was seen, what to do, cycles it may save (0: exactness), where in the source."""

    rule: str
    evidence: str
    change: str
    saving: int
    place: str = ""

    def json(self) -> Json:
        """As plain data."""
        return {**vars(self)}


Rule = Callable[[Profile], Iterator[Advice]]


def advice(profile: Profile) -> list[Advice]:
    """All that is worth saying, the largest saving first, equal ones of one rule as one; empty for a good program."""
    least = WORTH * profile.result.cycles
    found = [one for rule in RULES for one in rule(profile) if one.saving >= least or one.rule == HALF]
    merged: dict[tuple[str, str, str], Advice] = {}
    for one in found:
        key = (one.rule, one.evidence, one.place)
        earlier = merged.get(key)
        merged[key] = one if earlier is None else replace(one, saving=one.saving + earlier.saving)
    return sorted(merged.values(), key=lambda one: -one.saving)


def _rows(profile: Profile) -> Iterator[tuple[KernelProfile, InstructionProfile]]:
    return ((kernel, one) for kernel in profile.kernels for one in kernel.instructions)


def _granules(profile: Profile) -> Iterator[Advice]:
    """Off-chip runs that are no multiple of a granule: the port carries bytes that nobody asked for."""
    target = profile.program.target
    for kernel, one in _rows(profile):
        wasted = one.bytes - one.payload
        if one.offchip and one.bytes and wasted * 4 > one.bytes:
            yield Advice(
                "strided off-chip access",
                f"'{one.what}' of {_argument(profile, kernel, one)} in {kernel.name} moves {bytes_text(one.bytes)} for "
                f"{bytes_text(one.payload)}: its runs are shorter than whole granules of "
                f"{target.offchip_memory.granule} bytes",
                "store the tensor with the axis that tiles take whole innermost, or make its tiles wider",
                int(wasted / cost.port_rate(target)),
                place(one.location),
            )


def _startup(profile: Profile) -> Iterator[Advice]:
    """Vector instructions on so few elements that the engine mostly starts up."""
    target = profile.program.target
    for kernel, one in _rows(profile):
        op = one.step.op
        if not isinstance(op, hardware.VectorOp) or one.executed < 2:
            continue
        out = one.step.output.element
        start = cost.vector_cycles(target, op.fn.data, 1, out.bytes, out.compute, one.engine) - 1
        if start * one.executed * 2 > one.cycles:
            elements = one.operations // one.executed
            yield Advice(
                "idle vector lanes",
                f"'{one.what}' in {kernel.name} runs {one.executed} times on {elements} elements; starting up is "
                f"{start} of {one.cycles // one.executed} cycles each time",
                "take larger tiles along the axes of the vector instructions",
                start * (one.executed - 1),
                place(one.location),
            )


def _workspace(profile: Profile) -> Iterator[Advice]:
    """Intermediates that go off chip though they are small enough to stay."""
    target = profile.program.target
    room = max(memory.bytes for name, memory in target.memories.items() if name != target.offchip)
    moved: dict[str, tuple[int, int, list[str]]] = {}
    for kernel, one in _rows(profile):
        external = _external(profile, kernel, one)
        if external is not None and external.role.data == "workspace":
            size = _size(external)
            total, _, kernels = moved.get(_label(external), (0, 0, []))
            moved[_label(external)] = total + one.bytes, size, [*kernels, kernel.name]
    for name, (total, size, kernels) in moved.items():
        if size * 2 <= room:
            between = " and ".join(dict.fromkeys(kernels))
            yield Advice(
                "intermediate off chip",
                f"{name} ({bytes_text(size)}) goes off chip between {between}: {bytes_text(total)} moved",
                "let one kernel make and use it; `tilewright report --section fusion` says what keeps them apart",
                int(total / cost.port_rate(target)),
            )


def _events(profile: Profile) -> Iterator[Advice]:
    """Events without which everything is ordered all the same: tried, one after another."""
    module = profile.program.module
    keys: dict[tuple[str, str, str, int], hardware.EventOp] = {}
    for kernel in module.ops:
        if isinstance(kernel, hardware.KernelOp):
            for op in kernel.walk():
                if isinstance(op, hardware.EventOp):
                    keys.setdefault((kernel.sym_name.data, *_key(op)), op)
    if len(keys) > EVENTS or sum(kernel.instructions for kernel in profile.result.kernels) > machine.TRACED:
        return
    for (name, source, sink, number), op in keys.items():
        without = _without(module, name, (source, sink, number))
        try:
            machine.check_order(without)
            cycles = machine.analyze(without).cycles
        except UserError:
            continue
        yield Advice(
            "needless synchronisation",
            f"event {number} from '{source}' to '{sink}' in {name} orders nothing that others do not order",
            "leave out its signals and waits, or the events and let the sync pass make them",
            profile.result.cycles - cycles,
            place(op.location),
        )


def _launches(profile: Profile) -> Iterator[Advice]:
    """Kernels that follow one another and take less time than their launches."""
    small = [kernel for kernel in profile.kernels if kernel.cycles < 2 * kernel.launch_cycles]
    if len(small) > 1:
        work = sum(kernel.cycles - kernel.launch_cycles for kernel in small)
        launches = sum(kernel.launch_cycles for kernel in small)
        names = f"{small[0].name} to {small[-1].name}"
        yield Advice(
            "tiny kernels",
            f"{len(small)} kernels ({names}) work for {work} cycles and launch for {launches}",
            "let fewer kernels do it: compile without 'unfused', or write the operations so that they share their axes",
            launches - small[0].launch_cycles,
        )


def _layouts(profile: Profile) -> Iterator[Advice]:
    """Kernels that only move data about."""
    for kernel in profile.kernels:
        if profile.kernel_class(kernel) == "layout":
            row = next(row for row in profile.sources if row.kernel == kernel.name and row.kind == "layout")
            yield Advice(
                "a layout kernel",
                f"{kernel.name} does nothing but '{row.name}', for {kernel.cycles} cycles and {bytes_text(row.bytes)}",
                "let the kernel that reads the result take the operand as it lies (transpose_a, transpose_b, strides)",
                kernel.cycles,
                row.place,
            )


HALF = "accumulation in half precision"
_HALVES = {"f16": 11, "bf16": 8}
"""Bits of a rounding."""


def _half(profile: Profile) -> Iterator[Advice]:
    """Sums that are carried in 16 bits from one iteration to the next."""
    for kernel, one in _rows(profile):
        step, op, kind = one.step, one.step.op, one.step.output.element
        if not isinstance(op, hardware.VectorOp) or op.fn.data != "add" or kind.name not in _HALVES:
            continue
        carried = any(view.buffer == step.output.buffer for view in step.views[:-1])
        if carried and step.loops and len(step.loops) - 1 not in step.output.offset.depends:
            yield Advice(
                HALF,
                f"'{one.what}' in {kernel.name} adds up {one.executed} tiles in {kind.name}: each addition may be off "
                f"by 2^-{_HALVES[kind.name]}",
                "keep the sum in f32 and convert it once, behind the loop",
                0,
                place(one.location),
            )


RULES: tuple[Rule, ...] = (_granules, _startup, _workspace, _events, _launches, _layouts, _half)


# --- what a kernel's arguments are ------------------------------------------------------------------------------------


def _external(profile: Profile, kernel: KernelProfile, one: InstructionProfile) -> hardware.BufferOp | None:
    """The off-chip buffer that a transfer of a launch reads or writes."""
    if one.argument is None or not one.offchip:
        return None
    position = next(number for number, other in enumerate(profile.kernels) if other is kernel)
    launches = [op for op in profile.program.module.walk() if isinstance(op, hardware.LaunchOp)]
    owner = launches[position].args[one.argument].owner
    while isinstance(owner, hardware.AliasOp):
        owner = owner.source.owner
    return owner if isinstance(owner, hardware.BufferOp) else None


def _argument(profile: Profile, kernel: KernelProfile, one: InstructionProfile) -> str:
    external = _external(profile, kernel, one)
    return _label(external) if external is not None else "its operand"


def _label(external: hardware.BufferOp) -> str:
    if external.label is not None:
        return f"'{external.label.data}'"
    return (
        f"%{external.res.name_hint}"
        if external.res.name_hint
        else f"a {external.role.data} at {external.offset.value.data}"
    )


def _size(external: hardware.BufferOp) -> int:
    kind = external.res.type
    assert isinstance(kind, BufferType)
    return kind.layout.layout(element(kind.element_type).bytes).size_bytes


def _key(op: hardware.EventOp) -> tuple[str, str, int]:
    return op.from_engine.data, op.to_engine.data, op.event.value.data


def _without(module: ModuleOp, kernel: str, key: tuple[str, str, int]) -> ModuleOp:
    copy = module.clone()
    for op in list(copy.ops):
        if isinstance(op, hardware.KernelOp) and op.sym_name.data == kernel:
            for event in [e for e in op.walk() if isinstance(e, hardware.EventOp) and _key(e) == key]:
                event.detach()
                event.erase()
    return copy
