"""An independent check of the off-chip plan of a function, the part of `plan_validate` for one address space."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise

from xdsl.dialects.builtin import IntegerAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, SSAValue

from ..dialects import tile
from ..dialects.attributes import int_values
from ..dialects.dtypes import element
from ..dialects.errors import UserError
from ..dialects.target import Target
from ..dialects.tile_types import BufferType
from .plan_names import ARGUMENTS, OFFSET
from .plan_validate import validate_plan


@dataclass(frozen=True)
class Region:
    """Bytes [low, high) that something has."""

    low: int
    high: int
    name: str
    location: Attribute | None


def validate_function(function: FuncOp, target: Target) -> None:
    """Checks the off-chip offsets of a planned function: arguments and constants have bytes of their own throughout,
    intermediates as `validate_plan` wants it. Raises UserError, naming both that share bytes."""
    block = function.body.block
    validate_plan(block, target)
    room = target.offchip_memory.bytes
    held: list[Region] = []
    for arg, low in zip(block.args, int_values(function.attributes[ARGUMENTS]), strict=True):
        held.append(_region(arg, arg.type, low, f"argument '%{arg.name_hint}'", arg.location))
    for op in block.ops:
        offset = op.attributes.get(OFFSET)
        if not isinstance(offset, IntegerAttr) or not op.results:
            continue
        for use in op.results[0].uses:
            if isinstance(use.operation, tile.AliasOp):
                held.append(
                    _region(op.results[0], use.operation.res[0].type, offset.value.data, "a constant", op.location)
                )
                break
    held.sort(key=lambda one: one.low)
    for region in held:
        if region.low < 0 or region.high > room:
            raise UserError(f"stale offset: {region.name} leaves '{target.offchip}' of {room} bytes", region.location)
    for before, region in pairwise(held):
        _check(before, region, target)
    starts = [one.low for one in held]
    for op in block.ops:
        if isinstance(op, tile.AllocOp) and op.offset is not None and held:
            region = _region(op.res[0], op.res[0].type, op.offset.value.data, "an intermediate", op.location)
            spot = bisect_right(starts, region.low)
            for other in held[max(spot - 1, 0) : spot + 1]:
                _check(other, region, target)


def _check(left: Region, right: Region, target: Target) -> None:
    if left.low < right.high and right.low < left.high:
        raise UserError(
            f"stale offset: {right.name} at [{right.low}, {right.high}) of '{target.offchip}' overlaps {left.name} at "
            f"[{left.low}, {left.high}), which is in use throughout",
            right.location,
            [(f"{left.name} is here", left.location)],
        )


def _region(value: SSAValue, kind: Attribute, low: int, name: str, location: Attribute | None) -> Region:
    """The bytes of a buffer as far as its layout reaches."""
    assert isinstance(kind, BufferType)
    size = element(kind.element_type).bytes if 0 not in kind.shape else 0
    for numbers in kind.layout.dims if size else ():
        values = [number.data for number in numbers]
        size += sum((extent - 1) * stride for extent, stride in zip(values[::2], values[1::2], strict=True))
    hint = f" '%{value.name_hint}'" if value.name_hint and not name.startswith("argument") else ""
    return Region(low, low + size, name + hint, location)
