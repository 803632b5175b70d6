"""The `cores` pass: loops divided among cores become one program over core numbers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IndexType, IntegerAttr, ModuleOp, UnitAttr, i32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap
from xdsl.passes import ModulePass

from ..dialects import hardware
from ..dialects.affine_eval import evaluate
from ..dialects.errors import UserError
from ..dialects.target import target_of
from .emit_views import simplified

CORES = "tilewright.cores"
"""On a loop: the number of cores that it is divided among."""


@dataclass(frozen=True)
class CoresPass(ModulePass):
    """Requires instructions; ensures that no loop is marked as divided among cores.

    The loops over one axis are divided alike. With n cores for a loop of T iterations core c executes those from
    c · T ÷ n to (c + 1) · T ÷ n, rounded down; what stands outside of the loop every core does for itself.

        for %i = 0 to 6 {cores = 4} { A %i }   →   for %c = 0 to 4 {core} { for %i = 6·%c/4 to 6·(%c+1)/4 { A %i } }

    Rejects (UserError) more cores than the target has, and loops over one axis that are divided differently.
    """

    name = "cores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        available = target_of(op).cores
        for kernel in [k for k in op.ops if isinstance(k, hardware.KernelOp)]:
            loops = [
                inner for inner in kernel.walk() if isinstance(inner, hardware.ForOp) and CORES in inner.attributes
            ]
            if loops:
                divide(kernel, loops, available)


def divide(kernel: hardware.KernelOp, loops: list[hardware.ForOp], available: int) -> None:
    """Puts loops over cores around the kernel's instructions, one for each divided axis."""
    axes: dict[object, list[hardware.ForOp]] = {}
    for loop in loops:
        axes.setdefault(loop.axis if loop.axis is not None else loop, []).append(loop)
    counts = {axis: _cores(group[0]) for axis, group in axes.items()}
    for axis, group in axes.items():
        for loop in group:
            if _cores(loop) != counts[axis]:
                raise UserError(
                    f"the loops over axis {axis} are divided among {counts[axis]} and among {_cores(loop)} cores",
                    loop.location,
                )
    if prod(counts.values()) > available:
        raise UserError(
            f"the kernel is divided among {prod(counts.values())} cores, the target has {available} (cores = …)",
            kernel.location,
        )
    block = kernel.body.block
    inside = [op for op in block.ops if not isinstance(op, hardware.BufferOp)]
    counters: dict[object, SSAValue] = {}
    for axis, count in counts.items():
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = f"core_{axes[axis][0].counter.name_hint or ''}".rstrip("_")
        around = hardware.ForOp.build(
            operands=[[], []],
            properties={"lower": _map(0, AffineConstantExpr(0)), "upper": _map(0, AffineConstantExpr(count))},
            regions=[Region(body)],
        )
        around.core = UnitAttr()
        around.location = kernel.location
        block.add_op(around)
        counters[axis], block = body.args[0], body
    for op in inside:
        op.detach()
        block.add_op(op)
    for axis, group in axes.items():
        for loop in group:
            _narrow(loop, counters[axis], counts[axis])


def _cores(loop: hardware.ForOp) -> int:
    found = loop.attributes[CORES]
    assert isinstance(found, IntegerAttr)
    return found.value.data


def _narrow(loop: hardware.ForOp, core: SSAValue, cores: int) -> None:
    """Gives a loop of constant bounds the bounds of one core's share."""
    first, last = (bound.data.results[0] for bound in (loop.lower, loop.upper))
    assert isinstance(first, AffineConstantExpr) and isinstance(last, AffineConstantExpr)
    trips = max(last.value - first.value, 0)

    def bound(number: AffineExpr) -> AffineMapAttr:
        share = number * (trips // cores) if trips % cores == 0 else (number * trips) // cores
        return _map(1, simplified(share + first) if trips % cores == 0 else share + first)

    del loop.attributes[CORES]
    loop.operands = [core, core]
    loop.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [1, 1])
    loop.lower, loop.upper = bound(AffineDimExpr(0)), bound(AffineDimExpr(0) + 1)


def _map(dims: int, expr: AffineExpr) -> AffineMapAttr:
    return AffineMapAttr(AffineMap(dims, 0, (expr,)))


# --- what other passes ask about cores --------------------------------------------------------------------------------


def core_loops(kernel: hardware.KernelOp) -> list[hardware.ForOp]:
    """The loops over cores, outermost first."""
    found: list[hardware.ForOp] = []
    block = kernel.body.block
    while isinstance(last := block.last_op, hardware.ForOp) and last.core is not None:
        found.append(last)
        block = last.body.block
    return found


def is_core(counter: SSAValue) -> bool:
    """Whether a counter is a core's number."""
    loop = counter.owner.parent_op() if isinstance(counter.owner, Block) else None
    return isinstance(loop, hardware.ForOp) and loop.core is not None


def core_count(loop: hardware.ForOp) -> int:
    """The cores of a loop over cores."""
    last = loop.upper.data.results[0]
    assert isinstance(last, AffineConstantExpr)
    return last.value


def trips_by_core(loop: hardware.ForOp) -> list[int] | None:
    """How many iterations a loop has on each core; None if that depends on other counters."""
    counters = list(dict.fromkeys([*loop.lower_operands, *loop.upper_operands]))
    if not all(is_core(counter) for counter in counters):
        return None
    around: list[Operation | None] = [
        counter.owner.parent_op() for counter in counters if isinstance(counter.owner, Block)
    ]
    cores = [range(core_count(op)) for op in around if isinstance(op, hardware.ForOp)]
    found: list[int] = []
    for values in product(*cores):
        known = dict(zip(counters, values, strict=True))
        low = max(int(evaluate(e, [known[v] for v in loop.lower_operands])) for e in loop.lower.data.results)
        high = min(int(evaluate(e, [known[v] for v in loop.upper_operands])) for e in loop.upper.data.results)
        found.append(max(high - low, 0))
    return found
