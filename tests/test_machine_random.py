"""Random graphs through the whole pipeline onto the machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from random_programs import Case, inputs_of, programs
from tilewright.ir.source import print_module
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineOptions, analyze, run
from tilewright.runtime.reference import evaluate

import tilewright
from tilewright.tolerance import default_tolerance, relative_error


@pytest.mark.parametrize("target", ["davinci", "unified"])
def test_random_programs(target: str) -> None:
    @settings(
        max_examples=8,
        deadline=None,
        database=None,
        phases=(
            Phase.generate,
        ),  # a failing graph is printed as it is: to shrink it means to compile it again and again
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(programs())
    def check(case: Case) -> None:
        source = tilewright.load(print_module(case.module))
        module = tilewright.compile(source, target).module
        arrays = inputs_of(case.module, 1)
        result = run(module, arrays)
        for found, wanted in zip(result.outputs, evaluate(source.op, arrays, "f64", None), strict=True):
            assert relative_error(found, wanted) <= default_tolerance(source.op)
        assert predict(module) == result.links
        analysis = analyze(module)
        assert (analysis.links, analysis.cycles) == (result.links, result.cycles)
        for options in (MachineOptions(False, interleaving="random", seed=3), MachineOptions(interleaving="late")):
            for again, before in zip(run(module, arrays, options).outputs, result.outputs, strict=True):
                np.testing.assert_array_equal(again, before)

    check()
