"""Layouts that cost bytes or whole kernels."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.runtime.machine.cases import Case
from tilewright.runtime.machine.profile import InstructionProfile
from tilewright.runtime.machine.what_if import without_granules

from ..profiling import Profile, place
from ..render import bytes_text
from .base import Advice, external_of, label, launches, rows, saving


def granules(profile: Profile) -> Iterator[Advice]:
    """Off-chip runs that are no multiple of a granule, strided or unaligned: the port carries bytes that nobody asked
    for."""
    target = profile.program.target
    for launch, kernel, one in rows(profile):
        if not one.offchip or one.bytes <= one.payload:
            continue

        def change(case: Case, one: InstructionProfile = one, cores: int = launch.kernel.cores) -> Case:
            if case.step is not one.step or case.link is None:
                return case
            return without_granules(case, round(case.link[1] * one.payload / one.bytes), target, cores)

        yield Advice(
            "strided off-chip access",
            f"'{one.what}' of {label(profile, external_of(launch, one))} in {kernel.name} moves "
            f"{bytes_text(one.bytes)} for {bytes_text(one.payload)}: its runs are no multiples of the granules of "
            f"{target.offchip_memory.granule} bytes",
            "store the tensor with the axis that tiles take whole innermost, pad its rows to whole granules, or make "
            "its tiles wider",
            saving(profile, launch, kernel, change),
            place(one.location),
        )


def layout_kernels(profile: Profile) -> Iterator[Advice]:
    """Kernels that only move data about: transposes, copies, slices that what reads them could do."""
    for _, kernel in launches(profile):
        computes = any(one.operations for one in kernel.instructions)
        if profile.kernel_class(kernel) != "layout" and computes:
            continue
        row = next(row for row in profile.sources if row.kernel == kernel.name)
        yield Advice(
            "a layout kernel",
            f"{kernel.name} does nothing but '{row.name}', for {kernel.cycles} cycles and "
            f"{bytes_text(row.costs.bytes)}",
            "let the kernel that reads the result take the operand as it lies (transpose_a, transpose_b, strides)",
            kernel.cycles,
            row.place,
        )
