"""What the estimate says of memories and of latency, against the planner and the simulated machine."""

from __future__ import annotations

import pytest
from lowering_cases import fused_in
from tilewright.dialects import cost, tile
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import load_target
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.group_build import read_group
from tilewright.lowering.measure import LOWERING, alone
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.plan import PlanPass, planned_bytes
from xdsl.context import Context

import tilewright

SOFTMAX = """func.func @main(%x: tensor<300x1000xf16>) -> tensor<300x1000xf16> {
  %y = graph.softmax %x {axis = -1 : i64}
  func.return %y : tensor<300x1000xf16>
}"""
EXP = """func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = graph.exp %x
  func.return %y : tensor<1024x1024xf32>
}"""


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        (SOFTMAX, Schedule("ab", (300, 1000), (14, 500), "ab", "multipass", (), ("ab",), (2,), store_slots=2)),
        (SOFTMAX, Schedule("ab", (300, 1000), (14, 500), "ab", "multipass", (), ("ab",), (3,), store_slots=2)),
        (EXP, Schedule("ab", (1024, 1024), (16, 512), "ab", "resident", (), ("ab",), (2,), store_slots=2)),
        (EXP, Schedule("ab", (1024, 1024), (16, 512), "ab", "resident", (), ("ab",), (1,), store_slots=1)),
        (EXP, Schedule("ab", (1024, 1024), (16, 512), "ab", "resident", (), ("ab",), (1,), store_slots=2)),
    ],
)
def test_slots_take_what_the_plan_says(text: str, schedule: Schedule) -> None:
    """A load of several slots keeps its bytes, a result on its way out has the slots of the store, and what has several
    lives as long as its loop."""
    target = load_target("davinci")
    (fused,) = fused_in(tilewright.compile(text, target="davinci", to="fuse").module)
    nest = place_nest(read_group(fused.body.block), schedule)
    found = estimate(nest, Facts(nest.group, target), roomy=True)
    module = alone(fused, schedule, target)
    for step in LOWERING[: LOWERING.index(PlanPass()) + 1]:
        step.apply(Context(), module)
    (kernel,) = (op for op in module.walk() if isinstance(op, tile.KernelOp))
    needed = planned_bytes(kernel, "ub")[1]
    assert needed <= found.peaks["ub"] <= 1.02 * needed  # too much by the small tiles of a reduction in two steps


def test_slots_hide_the_latency() -> None:
    """Two slots of what fits do not: the port would stand still for an eighth of the time."""
    target = load_target("davinci")
    program = tilewright.compile(EXP, target="davinci")
    port = 2 * 4 * 1024 * 1024 / cost.port_rate(target, 1)
    assert program.analyze().cycles <= 1.06 * port
    (fused,) = fused_in(tilewright.compile(EXP, target="davinci", to="schedule").module)
    assert fused.schedule is not None and max(Schedule.from_attr(fused.schedule).slots) > 2
