"""Regret: simulated cycles of the schedule that is taken against the best that is known, over random programs.

    python benchmarks/regret.py [--programs 10] [--random 200] [--small 200] [--seed 0] [--target davinci,unified]

For every group of random programs (the generator of the tests, with larger extents): what the `schedule` pass takes,
`--random` legal schedules drawn at random from the space that the search walks, and every schedule of spaces of at
most `--small` states, all lowered to the end and simulated alone. Regret is what the taken one costs beyond the best
of all of them.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, permutations, product
from math import factorial, prod
from pathlib import Path
from statistics import median

from hypothesis import HealthCheck, Phase, given, seed, settings
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import SUMS, Schedule, Sums
from tilewright.dialects.target import set_target
from tilewright.dialects.target_model import Target
from tilewright.lowering.axes import NotFusable
from tilewright.lowering.costs import Costs
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.group_build import read_group
from tilewright.lowering.measure import measure, skews
from tilewright.lowering.options import set_objective
from tilewright.lowering.schedule import SchedulePass
from tilewright.lowering.search import Choice, Search
from tilewright.lowering.state import MOST_SLOTS, SLOT_MODES, Skewed, State
from tilewright.lowering.tile_sizes import all_sizes
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import random_programs

EXTENTS = (1, 16, 33, 64, 100, 128, 200, 256)
"""Of every dimension: long enough that tiles matter, short enough that hundreds of schedules are simulated."""


class Space:
    """The legal schedules of one group."""

    def __init__(self, fused: FusedOp, target: Target) -> None:
        group = read_group(fused.body.block)
        self.fused, self.target = fused, target
        self.search = Search(group, target, "time", 1)
        self.tiles = [
            all_sizes(axis, block) if len(sizes) > 1 else sizes
            for axis, block, sizes in zip(group.axes, self.search.blocks, self.search.sizes, strict=True)
        ]
        axes = range(len(group.axes))
        self.results = [a for a in axes if not self.search.reduced[a]]
        self.sums = [a for a in axes if self.search.reduced[a]]
        self.lowest = [len(axes) - len(self.sums) if load.present & group.taps else 0 for load in group.loads]
        self.summing: tuple[Sums, ...] = SUMS if self.search.summable else SUMS[:1]
        skews: tuple[Skewed, ...] = (0, 2) if self.search.staged else (0,)
        self.forms = [(online, skew) for online in {False, self.search.cascades} for skew in skews]

    @property
    def states(self) -> int:
        """How many states there are; several may be one schedule."""
        orders = factorial(len(self.results)) * factorial(len(self.sums))
        levels = (len(self.results) + len(self.sums) + 1) ** len(self.lowest)
        return prod(map(len, self.tiles)) * orders * levels * len(SLOT_MODES) * len(self.forms)

    def drawn(self, random: random.Random) -> Iterator[State]:
        """States at random, without end."""
        while True:
            results, sums = (random.sample(axes, len(axes)) for axes in (self.results, self.sums))
            levels = tuple(random.randint(low, len(self.tiles)) for low in self.lowest)
            online, skewed = random.choice(self.forms)
            tiles = tuple(map(random.choice, self.tiles))
            slots, depth = random.choice(SLOT_MODES), random.randint(2, MOST_SLOTS)
            sums_by = random.choice(self.summing)
            yield State(tiles, (*results, *sums), levels, slots, online, skewed, depth=depth, sums=sums_by)

    def all(self) -> Iterator[State]:
        """Every state."""
        orders = [(*a, *b) for a in permutations(self.results) for b in permutations(self.sums)]
        levels = product(*(range(low, len(self.tiles) + 1) for low in self.lowest))
        for tiles, order, level, slots, form in product(product(*self.tiles), orders, levels, SLOT_MODES, self.forms):
            yield State(tiles, order, level, slots, *form)

    def choices(self, states: Iterator[State]) -> Iterator[Choice]:
        """Those of which the estimate says that they fit, each once."""
        seen: set[tuple[Schedule, bool]] = set()
        for state in states:
            found = self.search.evaluate(state)
            if found is not None and not found.estimate.excess and (found.schedule, found.skewed) not in seen:
                seen.add((found.schedule, found.skewed))
                yield found

    def cycles(self, choice: Choice) -> Iterator[tuple[int, Schedule]]:
        """Simulated, of each skew worth trying; nothing where it does not fit after all."""
        try:
            tried = dict.fromkeys(skews(Context(), self.fused, choice, self.target))
        except UserError:
            return
        for schedule in tried:
            try:
                yield measure(Context(), self.fused, schedule, self.target).cycles, schedule
            except UserError:
                continue


@dataclass(frozen=True)
class Regret:
    """`compared` schedules, `best` of them with `found` cycles; `taken` cycles of the one that the pass takes."""

    taken: int
    chosen: Schedule
    found: int
    best: Schedule
    compared: int

    @property
    def value(self) -> float:
        return max(0.0, self.taken / self.found - 1)


def regret(fused: FusedOp, target: Target, drawn: int, small: int, seed: int) -> Regret:
    """Of one group. Raises NotFusable or UserError where it has no schedule."""
    step = SchedulePass()
    chosen = step.choose(Context(), fused, Costs(target, "time", step.effort), target)
    taken = measure(Context(), fused, chosen, target).cycles
    space = Space(fused, target)
    # Where hardly anything fits, drawing goes on for a while and then stops with fewer.
    at_random = islice(space.choices(islice(space.drawn(random.Random(seed)), 40 * drawn)), drawn)
    every = space.choices(space.all()) if space.states <= small else iter(())
    results = [(taken, chosen)]
    for choice in (*at_random, *every):
        results += space.cycles(choice)
    found, best = min(results, key=lambda pair: pair[0])
    return Regret(taken, chosen, found, best, len(results))


def programs(count: int, first: int) -> list[ModuleOp]:
    """Random programs of the tests' generator with the extents above."""
    random_programs.EXTENTS = EXTENTS
    found: list[ModuleOp] = []

    @seed(first)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(random_programs.programs(max_ops=5))
    def collect(case: random_programs.Case) -> None:
        found.append(case.module)

    collect()
    return found[:count]


def groups(module: ModuleOp, target: str) -> tuple[Target, list[FusedOp]]:
    """The groups that the `fuse` pass makes of a program."""
    copy = module.clone()
    made = set_target(copy, target)
    set_objective(copy, "time")
    FusePass().apply(Context(), copy)
    return made, [op for op in copy.walk() if isinstance(op, FusedOp)]


def short(schedule: Schedule) -> str:
    return (
        f"{schedule.strategy} {'x'.join(map(str, schedule.tiles))} order '{schedule.order}' hold {schedule.hold} "
        f"slots {schedule.slots} skew {schedule.skew} inner {schedule.inner}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=int, default=10)
    parser.add_argument("--random", type=int, default=200, help="schedules drawn for each group")
    parser.add_argument("--small", type=int, default=200, help="states of a space that is tried as a whole")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default="davinci,unified")
    parser.add_argument("--show", type=float, default=0.02, help="regret from which on the schedules are shown")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    cases = programs(options.programs, options.seed)
    for target in options.target.split(","):
        found: list[float] = []
        compared, start = 0, time.process_time()
        for number, module in enumerate(cases):
            try:
                machine, fusions = groups(module, target)
            except UserError as error:
                print(f"{target} {number}: {error.message}")
                continue
            for fused in fusions:
                try:
                    one = regret(fused, machine, options.random, options.small, options.seed + number)
                except (UserError, NotFusable) as error:
                    print(f"{target} {number}: {error}")
                    continue
                found.append(one.value)
                compared += one.compared
                if one.value >= options.show:
                    print(f"{target} {number}: {one.value:.1%}, {one.taken} cycles where {one.found} can be")
                    print(f"  taken {short(one.chosen)}\n  best  {short(one.best)}")
        seconds = time.process_time() - start
        print(
            f"{target}: {len(found)} groups, {compared} schedules, regret median {median(found):.2%}, "
            f"worst {max(found):.2%}, at most 2% in {sum(value <= 0.02 for value in found)} ({seconds:.0f} s)",
            flush=True,
        )


if __name__ == "__main__":
    main()
