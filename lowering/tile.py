"""The `tile` pass: every scheduled `graph.fused` becomes a `tile.kernel` and a launch."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects import tile
from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import ConstantOp, ViewOp, WeightOp
from ..dialects.schedule import Schedule
from ..dialects.target import target_of
from .axes import NotFusable
from .group_build import read_group
from .handwritten import kernel_of
from .nest_build import build_nest
from .roles import product_apart
from .tile_kernel import KernelEmitter


@dataclass(frozen=True)
class TilePass(ModulePass):
    """Requires scheduled groups; ensures kernels over tiles in value form.

    1. `%o = graph.fused %x {schedule} {…}` → `tile.kernel @main_0(…)` before the function and
       `%o = tile.launch %x {callee = @main_0}`; loops, loads and stores as the schedule says.
       A group that names a hand-written kernel launches that.
    2. a reshape between groups → `tile.alias`: the same bytes with another shape.

    Rejects (UserError at the group) a group without a schedule, or a schedule that does not fit it.
    """

    name = "tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apart = product_apart(target_of(op))
        for function in [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration]:
            number = 0
            for inner in list(function.body.block.ops):
                match inner:
                    case FusedOp():
                        kernel = kernel_of(inner)
                        if kernel is None:
                            kernel = lower_group(inner, f"{function.sym_name.data}_{number}", apart)
                            Rewriter.insert_op(kernel, InsertPoint.before(function))
                        number += 1
                        launch = tile.LaunchOp.create(
                            operands=list(inner.args),
                            result_types=[result.type for result in inner.res],
                            properties={"callee": SymbolRefAttr(kernel.sym_name)},
                        )
                        _replace(inner, launch)
                    case ViewOp():
                        alias = tile.AliasOp.create(operands=list(inner.args), result_types=[inner.res.type])
                        _replace(inner, alias)
                    case ConstantOp() | WeightOp():
                        pass
                    case _:
                        if inner.name.startswith("graph."):
                            raise UserError(
                                f"'{inner.name}' is in no group: run fuse and schedule first", inner.location
                            )


def _replace(old: FusedOp | ViewOp, new: tile.LaunchOp | tile.AliasOp) -> None:
    new.location = old.location
    for before, after in zip(old.results, new.results, strict=True):
        after.name_hint = before.name_hint
    Rewriter.replace_op(old, new)


def lower_group(fused: FusedOp, name: str, apart: bool) -> tile.KernelOp:
    """The kernel of one scheduled group; `apart` as for KernelEmitter. Raises UserError at the group's location."""
    if fused.schedule is None:
        raise UserError("this group has no schedule: run the schedule pass first", fused.location)
    try:
        group = read_group(fused.body.block)
        nest = build_nest(group, Schedule.from_attr(fused.schedule))
        kernel = KernelEmitter(nest, name, apart).emit()
    except NotFusable as reason:
        raise UserError(f"this group is not one kernel: {reason}", fused.location) from None
    except UserError as error:
        raise UserError(error.message, error.location or fused.location, error.notes) from None
    kernel.location = fused.location
    return kernel
