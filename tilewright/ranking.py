"""The schedules of a program's kernels beside one another, and one of them written in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import target_of
from tilewright.lowering.axes import NotFusable
from tilewright.lowering.costs import Costs
from tilewright.lowering.options import objective_of
from tilewright.lowering.schedule import SchedulePass
from tilewright.lowering.trials import Trials

from .errors import diagnosed, plain_error
from .module import Module
from .program import Program

COMPARED = 20
"""Schedules that fit and are simulated at least, however few are asked for: ranks do not depend on that."""


@dataclass(frozen=True)
class Candidate:
    """One schedule of one kernel (its number in the program): off-chip bytes and cycles of one launch, simulated."""

    kernel: int
    rank: int
    schedule: Schedule
    bytes: int
    cycles: int


def candidates(program: Program, top: int = 20, kernel: int | None = None) -> list[Candidate]:
    """The best schedules of each kernel (or of one) that the search finds and that fit, best first, ranked from 1.

    `program` was compiled up to the `fuse` pass. Raises SourceError where a kernel has none, or for a kernel that
    there is not.
    """
    module = program.snapshot(after="fuse").module
    groups = [op for op in module.walk() if isinstance(op, FusedOp)]
    if kernel is not None and not 0 <= kernel < len(groups):
        raise plain_error(f"there is no kernel {kernel}: the program has {len(groups)}, counted from 0")
    found: list[Candidate] = []
    with diagnosed(program.source.texts):
        costs = Costs(target_of(module), objective_of(module), SchedulePass.effort)
        for number, group in enumerate(groups):
            if kernel in (None, number):
                found += _ranked(number, group, costs, top)
    return found


def _ranked(number: int, group: FusedOp, costs: Costs, top: int) -> list[Candidate]:
    trials = Trials(Context(), group, costs, costs.target)
    try:
        choices = costs.choices(group.body.block)
    except NotFusable as reason:
        raise UserError(f"this group cannot be scheduled: {reason}", group.location) from None
    for choice in choices:
        trials.measure(choice)
        if trials.fitting >= max(top, COMPARED):
            break
    trials.best()  # says why, where none fits
    first = costs.objective == "time"
    ranked = sorted(trials.found, key=lambda pair: pair[0])[:top]
    return [
        Candidate(number, rank, schedule, cost[1] if first else cost[0], cost[0] if first else cost[1])
        for rank, (cost, schedule) in enumerate(ranked, 1)
    ]


def with_schedules(program: Program, chosen: Sequence[Candidate]) -> Module:
    """The program after the `fuse` pass with these schedules written in; kernels without one are left to the search."""
    op = program.snapshot(after="fuse").module.clone()
    groups = [inner for inner in op.walk() if isinstance(inner, FusedOp)]
    for candidate in chosen:
        groups[candidate.kernel].schedule = candidate.schedule.to_attr()
    return replace(program.source, op=op)
