"""Random programs: place, bufferize and plan change no result, bit for bit (semantics 4.4)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, inputs_of, programs
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.target import load_target, set_target
from tilewright.lowering.bufferize import BufferizePass
from tilewright.lowering.costs import Costs
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.place import PlacePass
from tilewright.lowering.plan import PlanPass
from tilewright.lowering.tile import TilePass
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context

TARGETS = ("davinci", "unified{memory.scratchpad.bytes=8KiB}")


@pytest.mark.parametrize("target", TARGETS)
@given(case=programs(), seed=st.integers(0, 9), data=st.data())
@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_pass_keeps_every_bit(target: str, case: Case, seed: int, data: st.DataObject) -> None:
    module = case.module.clone()
    inputs = inputs_of(module, seed)
    set_target(module, target)
    FusePass(effort=12).apply(Context(), module)
    costs = Costs(load_target(target), "traffic", 12)
    for fused in [op for op in module.walk() if isinstance(op, FusedOp)]:
        choices = costs.choices(fused.body.block)
        choice = choices[data.draw(st.integers(0, len(choices) - 1), label="schedule")]
        fused.schedule = choice.schedule.to_attr()
    TilePass().apply(Context(), module)
    wanted = evaluate_tile(module, inputs)
    for step in (PlacePass(), BufferizePass(), PlanPass()):
        try:
            step.apply(Context(), module)
        except UserError as error:
            # A random schedule may be too big, or cut a tile where its memory's blocks do not allow it; nothing else.
            assert "needed at once" in error.message or "cuts the blocks" in error.message, error.message
            return
        module.verify()
        for found, want in zip(evaluate_tile(module, inputs), wanted, strict=True):
            np.testing.assert_array_equal(found, want, err_msg=step.name)
