"""The schedules of one group that are lowered to the end and simulated, and the best of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp
from ..dialects.schedule import Schedule
from ..dialects.target_model import Target
from .costs import Costs
from .measure import Measured, measure, skews
from .search import Choice, Kind

_log = logging.getLogger(__name__)


@dataclass
class Trials:
    """What has been measured so far. `fitting` counts the choices that fit; `patterns` has the skew that was best when
    all were tried: once for each kind, for its first choice that fits."""

    ctx: Context
    fused: FusedOp
    costs: Costs
    target: Target
    fitting: int = 0
    patterns: dict[Kind, int] = field(default_factory=dict[Kind, int])
    failure: UserError | None = None
    found: list[tuple[tuple[int, int], Schedule]] = field(default_factory=list[tuple[tuple[int, int], Schedule]])
    tried: list[Choice] = field(default_factory=list[Choice])
    costs_of: dict[Schedule, Measured | UserError] = field(default_factory=dict[Schedule, "Measured | UserError"])

    def run(self, choices: Sequence[Choice], fitting: int) -> None:
        """Measures choices in turn until so many of them fit."""
        enough = self.fitting + fitting
        for choice in choices:
            self.measure(choice)
            self.tried.append(choice)
            if self.fitting == enough:
                break

    def measure(self, choice: Choice) -> None:
        """Lowers and simulates a choice: if skewed, with every pattern or the one known to be best."""
        try:
            schedules = skews(self.ctx, self.fused, choice, self.target)
        except UserError as error:
            self.failure = self.failure or error
            return
        results: dict[int, tuple[tuple[int, int], Schedule]] = {}
        tried = {n: schedule for n, schedule in enumerate(schedules) if schedule not in schedules[:n]}
        pattern = self.patterns.get(choice.kind)
        if pattern is not None and len(schedules) > 1:
            tried = {pattern: schedules[pattern]}
        for number, schedule in tried.items():
            cost = self.cost(schedule)
            if isinstance(cost, UserError):
                self.failure = self.failure or cost
                continue
            results[number] = self.costs.weigh(cost), schedule
        if results and len(tried) > 1:
            self.patterns[choice.kind] = min(results, key=lambda number: results[number][0])
        self.found += results.values()
        self.fitting += bool(results)

    def cost(self, schedule: Schedule) -> Measured | UserError:
        """What a schedule costs, or why it does not fit. Choices of several kinds may be one schedule."""
        if schedule not in self.costs_of:
            try:
                cost = measure(self.ctx, self.fused, schedule, self.target)
            except UserError as error:
                self.costs_of[schedule] = error
            else:
                tiles = "x".join(map(str, schedule.tiles))
                _log.debug("%d cycles, %d bytes: tiles %s, order '%s'", cost.cycles, cost.bytes, tiles, schedule.order)
                self.costs_of[schedule] = cost
        return self.costs_of[schedule]

    def best(self) -> Schedule:
        """The one that costs least. Raises UserError, saying why the first did not fit, where none does."""
        if self.found:
            return min(self.found, key=lambda pair: pair[0])[1]
        assert self.failure is not None
        raise UserError(self.failure.message, self.failure.location or self.fused.location, self.failure.notes)
