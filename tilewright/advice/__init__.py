"""What would make a program faster or more exact: the classic mistakes, with evidence and what each costs.

Every rule looks at the decoded hardware level, so that hand-written kernels are seen as compiled ones are. What a
change would save is asked of the simulation: it runs again with what the change would make of the instructions. A rule
is a function from a profile to what it finds, and a row of RULES.
"""

from __future__ import annotations

from dataclasses import replace

from ..profiling import Profile
from .base import Advice, Rule
from .events import needless_events
from .kernels import intermediates, tiny_kernels
from .layouts import granules, layout_kernels
from .numbers import HALF, half_sums
from .shapes import dynamic_shapes
from .tiles import double_buffers, idle_lanes, small_tiles

RULES: tuple[Rule, ...] = (
    granules, idle_lanes, small_tiles, double_buffers, intermediates, needless_events, tiny_kernels, layout_kernels,
    half_sums,
)  # fmt: skip

WORTH = 0.02
"""Share of a program's cycles from which a saving is mentioned: less than what the choice of a schedule, by estimates
that differ from the simulation, moves the time by anyway."""


def advice(profile: Profile) -> list[Advice]:
    """All that is worth saying, the largest saving first, equal ones of one rule as one; empty for a good program."""
    least = WORTH * profile.result.cycles
    merged: dict[tuple[str, str, str], Advice] = {}
    for one in (one for rule in RULES for one in rule(profile)):
        key = (one.rule, one.evidence, one.place)
        earlier = merged.get(key)
        merged[key] = one if earlier is None else replace(one, saving=one.saving + earlier.saving)
    found = [one for one in merged.values() if one.saving >= least or one.rule == HALF]
    return sorted(found, key=lambda one: -one.saving)


__all__ = ["HALF", "RULES", "WORTH", "Advice", "advice", "dynamic_shapes"]
