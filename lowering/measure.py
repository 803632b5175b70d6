"""What a schedule really costs: its kernel lowered to the end, its bytes counted and its time simulated.

The one place where a pass looks at the machine: the search ranks by an estimate, and cycles have one truth.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..dialects import tile
from ..dialects.graph_fused import FusedOp
from ..dialects.schedule import Schedule
from ..dialects.target import set_target
from ..dialects.target_model import Target
from ..runtime.machine import analyze
from .bufferize import BufferizePass
from .cores import CoresPass
from .emit import EmitPass
from .outline import kernel_alone
from .place import PlacePass
from .plan import PlanPass
from .search import Choice
from .skew import SkewPass
from .stages import StagesPass, proposals
from .sync import SyncPass
from .tile import TilePass

LOWERING = (
    TilePass(),
    PlacePass(),
    BufferizePass(),
    StagesPass(),
    PlanPass(),
    EmitPass(),
    CoresPass(),
    SkewPass(),
    SyncPass(),
)


def alone(fused: FusedOp, schedule: Schedule, target: Target) -> ModuleOp:
    """A module of one scheduled group."""
    module = kernel_alone(fused)
    for op in module.walk():
        if isinstance(op, FusedOp):
            op.schedule = schedule.to_attr()
    set_target(module, target)
    return module


@dataclass(frozen=True)
class Measured:
    """Bytes over the off-chip memory's links, and cycles of one launch."""

    bytes: int
    cycles: int


def skews(ctx: Context, fused: FusedOp, choice: Choice, target: Target) -> list[Schedule]:
    """The schedules that a choice stands for: itself, or, if it is skewed, with each skew worth trying.

    Raises UserError if something cannot be done on the target.
    """
    if not choice.skewed:
        return [choice.schedule]
    module = alone(fused, choice.schedule, target)
    for step in LOWERING[: LOWERING.index(StagesPass())]:
        step.apply(ctx, module)
    kernel = next(op for op in module.ops if isinstance(op, tile.KernelOp))
    return [choice.schedule.with_(skew=skew if any(skew) else ()) for skew in proposals(kernel)]


def measure(ctx: Context, fused: FusedOp, schedule: Schedule, target: Target) -> Measured:
    """Lowers a group alone, as `schedule` says, and simulates it without data.

    Raises UserError if something does not fit or cannot be done on the target.
    """
    module = alone(fused, schedule, target)
    for step in LOWERING:
        step.apply(ctx, module)
    result = analyze(module)
    return Measured(sum(k.read_bytes + k.write_bytes for k in result.kernels), result.cycles)
