"""Random programs on the machine: results, traffic, order, interleavings and events (semantics 5.2 to 5.4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, inputs_of, programs
from tilewright.dialects.errors import UserError
from tilewright.dialects.hardware import EventOp
from tilewright.dialects.target import set_target
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.pipeline import PASSES, run_pipeline
from tilewright.lowering.schedule import SchedulePass
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineOptions, check_order, run
from tilewright.runtime.reference import evaluate
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

TARGETS = ("davinci", "unified{memory.scratchpad.bytes=8KiB}", "unified{memory.scratchpad.bytes=8KiB cores=3}")
CHECKS = list(HealthCheck)


def lowered(case: Case, target: str) -> ModuleOp:
    module = case.module.clone()
    set_target(module, target)
    passes: list[ModulePass] = [FusePass(effort=12), SchedulePass(effort=12, measured=1)]
    rest = ("tile", "place", "bufferize", "plan", "emit", "cores", "sync")
    run_pipeline(module, [*passes, *(PASSES[p]() for p in rest)])
    return module


@pytest.mark.parametrize("target", TARGETS)
@given(case=programs(), seed=st.integers(0, 9))
@settings(max_examples=20, deadline=None, suppress_health_check=CHECKS)
def test_programs_run_as_their_reference(target: str, case: Case, seed: int) -> None:
    inputs = inputs_of(case.module, seed)
    module = lowered(case, target)
    result = run(module, inputs)
    for found, want in zip(result.outputs, evaluate(case.module, inputs), strict=True):
        scale = max(float(np.max(np.abs(want))), 1e-3)
        assert float(np.max(np.abs(found.astype(np.float64) - want))) / scale < 2e-3
    assert predict(module) == {link: size for link, size in result.links.items() if size}
    check_order(module)
    for interleaving in ("eager", "late", "random"):
        again = run(module, inputs, MachineOptions(interleaving=interleaving, seed=seed))  # type: ignore[arg-type]
        for found, first in zip(again.outputs, result.outputs, strict=True):
            np.testing.assert_array_equal(found, first)


@pytest.mark.parametrize("target", TARGETS)
@given(case=programs(), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=CHECKS)
def test_no_event_can_be_left_out(target: str, case: Case, data: st.DataObject) -> None:
    """I5: without the signals and waits of any one event number the order check reports a race or a lone end."""
    module = lowered(case, target)
    events = [op for op in module.walk() if isinstance(op, EventOp)]
    if not events:
        return
    chosen = events[data.draw(st.integers(0, len(events) - 1), label="event")]
    key = (chosen.event, chosen.from_engine, chosen.to_engine, chosen.parent_op())
    for op in events:
        if (op.event, op.from_engine, op.to_engine) == key[:3]:
            op.detach()
            op.erase()
    with pytest.raises(UserError):
        check_order(module)
