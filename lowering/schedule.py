"""The `schedule` pass: chooses how each group is run."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp
from ..dialects.target import set_target, target_of
from ..dialects.target_model import Target
from .axes import NotFusable
from .costs import Costs, block_key
from .options import objective_of
from .search import Choice


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Requires groups; ensures that every group has a `schedule` that is known to fit the target's memories.

    A schedule that is there already is kept (it is checked by `tile`). Otherwise the search's candidates are lowered
    to planned buffers, best first, until one fits.
    """

    name = "schedule"
    effort: int = 400
    tries: int = 24

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        costs = Costs(target, objective_of(op), self.effort)
        chosen: dict[str, Choice] = {}
        for function in [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration]:
            for fused in [inner for inner in function.body.block.ops if isinstance(inner, FusedOp)]:
                if fused.schedule is not None:
                    continue
                key = block_key(fused.body.block)
                if key not in chosen:
                    chosen[key] = self.choose(ctx, fused, costs, target)
                fused.schedule = chosen[key].schedule.to_attr()

    def choose(self, ctx: Context, fused: FusedOp, costs: Costs, target: Target) -> Choice:
        try:
            choices = costs.choices(fused.body.block)
        except NotFusable as reason:
            raise UserError(f"this group cannot be scheduled: {reason}", fused.location) from None
        failure: UserError | None = None
        for choice in spread(choices, self.tries):
            try:
                try_schedule(ctx, fused, choice, target)
            except UserError as error:
                failure = failure or error
                continue
            return choice
        assert failure is not None
        raise UserError(failure.message, failure.location or fused.location, failure.notes)


def spread(choices: list[Choice], tries: int) -> list[Choice]:
    """The best half of the tries, then ever smaller needs of memory, down to the least."""
    head = choices[: tries // 2]
    rest = sorted(choices[tries // 2 :], key=lambda c: -max(c.estimate.peaks.values(), default=0))
    step = max(1, len(rest) // max(1, tries // 2))
    return [*head, *rest[step - 1 :: step], *rest[-1:]]


def try_schedule(ctx: Context, fused: FusedOp, choice: Choice, target: Target) -> None:
    """Lowers one group to planned buffers. Raises UserError if something does not fit."""
    from .bufferize import BufferizePass
    from .place import PlacePass
    from .plan import PlanPass
    from .tile import TilePass

    block = Block(arg_types=[value.type for value in fused.args])
    copy = FusedOp(block.args, [result.type for result in fused.res], Region())
    fused.body.clone_into(copy.body)
    copy.schedule = choice.schedule.to_attr()
    copy.location = fused.location
    block.add_ops([copy, ReturnOp(*copy.res)])
    kinds = ([value.type for value in fused.args], [result.type for result in fused.res])
    module = ModuleOp([FuncOp("trial", kinds, Region(block))])
    set_target(module, target)
    for step in (TilePass(), PlacePass(), BufferizePass(), PlanPass()):
        step.apply(ctx, module)
