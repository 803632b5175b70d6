"""The `split` pass: long reductions with few results are divided among cores and merged by a second kernel."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import UNKNOWN_LOC, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Region
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp
from ..dialects.target import target_of
from ..dialects.target_model import Target
from .axes import NotFusable
from .costs import CYCLES_ERROR, Costs, block_key
from .group import Group
from .group_build import read_group
from .handwritten import KERNEL
from .options import objective_of
from .search import Objective
from .split_group import split

_log = logging.getLogger(__name__)

MOST = 4
"""Numbers of parts that are tried for an axis: the greatest divisors of its extent that the cores allow."""


@dataclass(frozen=True)
class SplitPass(ModulePass):
    """Requires groups; ensures that a reduction with fewer results than the target has cores is divided where that is
    estimated to be faster.

    A reduced axis becomes equal parts. One group computes the accumulators of each part, in the online form those at
    the part's own bases; a second one moves them to common bases, combines them and does what comes after.

        %m = fused {sum over 2^24}   →   %p = fused {sum over each of 32 parts}; %m = fused {sum over 32}

    Groups with a schedule, and those whose kernel is written by hand, stay as they are; so does everything on one core
    and for the objective `traffic`, as parts only add bytes.

    `effort`: estimates per start of the search.
    """

    name = "split"
    effort: int = 48

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.effort < 1:
            raise UserError("the options of split are at least 1")
        target = target_of(op)
        if target.cores == 1 or objective_of(op) != "time":
            return
        costs = DividedCosts(target, "time", self.effort)
        for function in [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration]:
            for fused in [inner for inner in function.body.block.ops if isinstance(inner, FusedOp)]:
                if fused.schedule is not None or KERNEL in fused.attributes:
                    continue
                found = costs.division(fused.body.block)
                if found is not None:
                    _log.info("@%s: a reduction is divided in %d parts", function.sym_name.data, found.parts)
                    divide(fused, found.axis, found.parts)


@dataclass(frozen=True)
class Division:
    """The reduced axis (its place in canonical order), the number of parts, and estimated cycles of both kernels."""

    axis: int
    parts: int
    cycles: int
    bytes: int


class DividedCosts(Costs):
    """What groups cost if those are divided that gain by it."""

    def __init__(self, target: Target, objective: Objective, effort: int) -> None:
        super().__init__(target, objective, effort)
        self.divisions: dict[str, Division | None] = {}

    def cost(self, block: Block, times: int = 1) -> tuple[int, int]:
        """As of one kernel, or of the two that it is divided in."""
        whole = super().cost(block, times)
        found = self.division(block)
        return whole if found is None else min(whole, (found.cycles, found.bytes))

    def division(self, block: Block) -> Division | None:
        """How a group is divided; None where one kernel is estimated to be as fast."""
        if self.target.cores == 1 or self.objective != "time":
            return None
        key = block_key(block)
        if key not in self.divisions:
            self.divisions[key] = self.divided(block)
        return self.divisions[key]

    def divided(self, block: Block) -> Division | None:
        try:
            best = self.best(block)
        except NotFusable:
            return None  # the schedule pass will say why
        cores = self.target.cores
        if best.schedule.taking_part * 2 > cores:
            return None
        found: Division | None = None
        least = best.estimate.cycles * (1 - CYCLES_ERROR)
        group = read_group(block)
        for axis, parts in divisions(group, cores):
            try:
                made = split(group, group.axes[axis], parts, list(block.args), UNKNOWN_LOC)
                merge, _ = made.merge(list(Block(arg_types=made.parts).args))
                halves = [super(DividedCosts, self).cost(half) for half in (made.partial, merge)]
            except NotFusable as reason:
                _log.debug("axis %s is not divided: %s", group.names[group.axes[axis]], reason)
                continue
            cycles, moved = (sum(figure) for figure in zip(*halves, strict=True))
            if cycles < least:
                found, least = Division(axis, parts, cycles, moved), cycles
        return found


def divisions(group: Group, cores: int) -> Iterator[tuple[int, int]]:
    """Reduced axes, each with numbers of parts."""
    for place, axis in enumerate(group.axes):
        if axis in group.reduced - group.taps:
            parts = [n for n in range(2, min(cores, axis.extent) + 1) if axis.extent % n == 0]
            yield from ((place, n) for n in parts[-MOST:])


def divide(fused: FusedOp, axis: int, parts: int) -> None:
    """Puts two groups in the place of one."""
    group = read_group(fused.body.block)
    made = split(group, group.axes[axis], parts, list(fused.args), fused.location)
    partial = FusedOp(made.partial_operands, made.parts, Region(made.partial))
    block, operands = made.merge(list(partial.res))
    merge = FusedOp(operands, [result.type for result in fused.res], Region(block))
    for op in (partial, merge):
        op.location = fused.location
        op.attributes.update(fused.attributes)
    for old, new in zip(fused.res, merge.res, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(fused, [partial, merge], list(merge.res))
