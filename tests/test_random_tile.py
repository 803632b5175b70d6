"""Random programs: the graph and its tile kernels compute the same (semantics 4.1, 4.2)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, inputs_of, programs
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.target import load_target, set_target
from tilewright.dialects.verify import verify_module
from tilewright.lowering.costs import Costs
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.tile import TilePass
from tilewright.runtime.reference import evaluate
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context

TARGETS = ("davinci", "unified{memory.scratchpad.bytes=8KiB}")


@pytest.mark.parametrize("target", TARGETS)
@given(case=programs(), seed=st.integers(0, 9), data=st.data())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_kernels_equal_their_logic(target: str, case: Case, seed: int, data: st.DataObject) -> None:
    module = case.module.clone()
    inputs = inputs_of(module, seed)
    wanted = evaluate(module, inputs)
    set_target(module, target)
    FusePass(effort=12).apply(Context(), module)
    verify_module(module)
    for found, want in zip(evaluate(module, inputs), wanted, strict=True):
        np.testing.assert_array_equal(found, want)  # fusing moves ops, it computes nothing else
    costs = Costs(load_target(target), "traffic", 12)
    for fused in [op for op in module.walk() if isinstance(op, FusedOp)]:
        choices = costs.choices(fused.body.block)
        choice = choices[data.draw(st.integers(0, len(choices) - 1), label="schedule")]
        fused.schedule = choice.schedule.to_attr()
    TilePass().apply(Context(), module)
    verify_module(module)
    for found, want in zip(evaluate_tile(module, inputs), wanted, strict=True):
        scale = max(float(np.max(np.abs(want))), 1e-3)
        error = float(np.max(np.abs(found.astype(np.float64) - want))) / scale
        assert error < 2e-3, module
