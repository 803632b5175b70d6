"""Sums that lose digits."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.dialects import hardware
from tilewright.runtime.machine.program import Instruction

from ..profiling import Profile, place
from .base import Advice, rows

HALF = "accumulation in half precision"
_HALVES = {"f16": 11, "bf16": 8}
"""Bits of a rounding."""


def half_sums(profile: Profile) -> Iterator[Advice]:
    """Sums that are carried in 16 bits from one iteration to the next, by additions, products or reductions."""
    for _, kernel, one in rows(profile):
        kind = one.step.output.element.name
        if kind in _HALVES and one.executed > 1 and _carries(one.step):
            yield Advice(
                HALF,
                f"'{one.what}' in {kernel.name} adds up {one.executed} tiles in {kind}: each addition may be off "
                f"by 2^-{_HALVES[kind]}",
                "keep the sum in f32 and convert it once, behind the loop",
                0,
                place(one.location),
            )


def _carries(step: Instruction) -> bool:
    """Whether an instruction adds to what it wrote in the iteration before."""
    if not step.loops or len(step.loops) - 1 in step.output.offset.depends:
        return False
    match step.op:
        case hardware.VectorOp():
            return step.op.fn.data == "add" and any(v.buffer == step.output.buffer for v in step.views[:-1])
        case hardware.MatmulOp():
            return step.op.overwrite is None
        case _:
            return False
