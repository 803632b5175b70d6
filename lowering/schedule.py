"""The `schedule` pass: chooses how each group is run."""

from __future__ import annotations

import logging
from dataclasses import astuple, dataclass, replace

from pydantic import TypeAdapter
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from ..dialects.errors import UserError
from ..dialects.graph_base import GraphOp
from ..dialects.graph_fused import FusedOp
from ..dialects.operators import KERNEL
from ..dialects.schedule import Schedule
from ..dialects.target import target_of
from ..dialects.target_model import Target
from .axes import NotFusable
from .cache import remembered
from .costs import Costs, block_key
from .fuse_prepare import is_outside, is_reshape
from .online_text import explain
from .options import objective_of
from .search import Choice, Kind
from .trials import Trials

_log = logging.getLogger(__name__)
_SCHEDULE: TypeAdapter[Schedule] = TypeAdapter(Schedule)
CLOSE = 1.1
"""A kind whose first schedules take at most so many times what the best takes may have the best one (assumed)."""
FAR = 1.5
"""A kind whose best is estimated at more than so many times the best of all is not measured (assumed)."""


@dataclass(frozen=True)
class SchedulePass(ModulePass):
    """Requires groups; ensures that every group has a `schedule` that is known to fit the target's memories.

    A schedule that is there already is kept (it is checked by `tile`). Otherwise the search's candidates are lowered
    to the end, best estimate first, and the one with the fewest cycles (or bytes) on the simulated machine is taken.
    A group whose reductions take one walk in their online form says by which rules (`tilewright.online`), others why
    they take more (`tilewright.walks`).

    `simplest`: the fewest buffers and loops instead, a first version of a kernel to go on from by hand.
    `skew=false`: no stage runs ahead of another, engines take turns.
    `effort`: estimates per start of the search. `measured`: how many schedules that fit are compared. `tries`: how many
    candidates are lowered at most; the later ones need ever less memory.
    """

    name = "schedule"
    effort: int = 400
    measured: int = 6
    tries: int = 24
    simplest: bool = False
    skew: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if min(self.effort, self.measured, self.tries) < 1:
            raise UserError("the options of schedule are at least 1")
        target = target_of(op)
        costs = Costs(target, objective_of(op), self.effort, self.skew)
        chosen: dict[str, Schedule] = {}
        searched: list[str] = []
        for function in [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration]:
            for loose in function.body.block.ops:
                if isinstance(loose, GraphOp) and not is_outside(loose) and not is_reshape(loose):
                    raise UserError(f"'{loose.name}' is in no group: run fuse first", loose.location)
            for fused in [inner for inner in function.body.block.ops if isinstance(inner, FusedOp)]:
                if fused.schedule is not None or KERNEL in fused.attributes:
                    continue
                key = block_key(fused.body.block)
                if key not in chosen:

                    def find(key: str = key, fused: FusedOp = fused) -> Schedule:
                        searched.append(key)
                        return self.choose(ctx, fused, costs, target)

                    chosen[key] = remembered("schedule", self.question(key, costs), _SCHEDULE, find)
                fused.schedule = chosen[key].to_attr()
                explain(fused)
        _log.info("distinct groups: %d, searched for: %d, known from the cache: %d", len(chosen), len(searched),
                  len(chosen) - len(searched))  # fmt: skip

    def question(self, group: str, costs: Costs) -> tuple[object, ...]:
        """Everything that the schedule of a group depends on."""
        return *costs.question(group, 1), *astuple(self)

    def choose(self, ctx: Context, fused: FusedOp, costs: Costs, target: Target) -> Schedule:
        try:
            choices = costs.choices(fused.body.block)
        except NotFusable as reason:
            raise UserError(f"this group cannot be scheduled: {reason}", fused.location) from None
        if self.simplest:
            choices = sorted((replace(choice, skewed=0) for choice in choices), key=simplicity)
        trials = Trials(ctx, fused, costs, target)
        if self.simplest:
            trials.run(choices[: self.tries], 1)
        else:
            self.compare(trials, choices)
        best = trials.best()
        _log.info(
            "%s: %d of %d schedules simulated, taken is %s with tiles %s, order '%s'",
            ", ".join(f"%{result.name_hint}" if result.name_hint else "a result" for result in fused.results),
            len(trials.found), len(choices), best.strategy, "x".join(map(str, best.tiles)), best.order,
        )  # fmt: skip
        return best

    def compare(self, trials: Trials, choices: list[Choice]) -> None:
        """Measures one of each kind that is not far behind by estimate, then others of the kind that was best, and of
        the next if it is about as good."""
        kinds: dict[Kind, list[Choice]] = {}
        for choice in choices:
            kinds.setdefault(choice.kind, []).append(choice)
        best: dict[Kind, tuple[int, int]] = {}
        least = min((trials.costs.weigh(choice.estimate)[0] for choice in choices), default=0)
        for kind, same in kinds.items():
            before = len(trials.found)
            if before and trials.costs.weigh(same[0].estimate)[0] > FAR * least:
                continue
            trials.run(spread(same, max(2, self.tries // len(kinds))), 1)
            if len(trials.found) > before:
                best[kind] = min(weight for weight, _ in trials.found[before:])
        ranked = sorted(best, key=lambda kind: best[kind])
        for kind in ranked[:2] if self.measured > 1 else ():
            if best[kind][0] <= CLOSE * best[ranked[0]][0]:
                others = [c for c in spread(kinds[kind], self.tries) if c not in trials.tried]
                trials.run(others, self.measured - 1)


def simplicity(choice: Choice) -> tuple[int, ...]:
    """Copies of buffers, pieces of tiles, loops: the fewer, the easier to read."""
    chosen = choice.schedule
    copies = sum(chosen.slots) + chosen.move_slots + chosen.store_slots
    pieces = sum(t > p for t, p in zip(chosen.tiles, chosen.inner or chosen.tiles, strict=True))
    return copies, pieces, len(chosen.order)


def spread(choices: list[Choice], tries: int) -> list[Choice]:
    """The best half of the tries, then ever smaller needs of memory, down to the least."""
    head = choices[: tries // 2]
    rest = sorted(choices[tries // 2 :], key=lambda c: -max(c.estimate.peaks.values(), default=0))
    step = max(1, len(rest) // max(1, tries // 2))
    return [*head, *rest[step - 1 :: step], *rest[-1:]]
