"""Machines that are files alone: each runs every example, or says at which op and for want of what it does not."""

from __future__ import annotations

import re

import numpy as np
import pytest
from example_programs import EXAMPLES, Example
from tilewright.dialects.target import list_targets, load_target
from tilewright.ir.diagnostics import SourceError
from tilewright.lowering.traffic import predict

import tilewright
from tilewright import Module
from tilewright.tolerance import default_tolerance, relative_error

ELEMENT = {"trainium": "f16", "tpu_v5e": "bf16"}
"""The machines on which all examples run, in an element type that their matrix engines multiply."""
QUICK = (
    "canonicalize,decompose,fuse{effort=4},schedule{effort=4 measured=1},"
    "tile,place,bufferize,stages,plan,emit,cores,skew,sync"
)
"""Whether a machine can do something does not depend on how long schedules are searched for."""

PRODUCT = """func.func @main(%x: tensor<3x50x70xi8>, %w: tensor<70x90xi8>, %v: tensor<90x40xi8>)
    -> (tensor<3x50x90xi32>, tensor<40x90xi8>) {
  %p = graph.matmul %x, %w : tensor<3x50x90xi32>
  %t = graph.transpose %v {permutation = array<i64: 1, 0>} : tensor<40x90xi8>
  func.return %p, %t : tensor<3x50x90xi32>, tensor<40x90xi8>
}
"""


def small(example: Example, element: str) -> Module:
    """The example; the one with many long heads with fewer and shorter ones."""
    if example.file != "attention.mlir":
        return example.load(element)
    return tilewright.load(re.sub(r"\b512(?=x)|(?<=x)512\b|(?<=x)512(?=x)", "128", example.text(element)))


CASES = [pytest.param(example, target, id=f"{example}-{target}") for example in EXAMPLES for target in ELEMENT]


@pytest.mark.parametrize(("example", "target"), CASES)
def test_every_example_runs(example: Example, target: str) -> None:
    program = tilewright.compile(small(example, ELEMENT[target]), target, pipeline=QUICK)
    run = program.run(seed=1)
    wanted = program.reference(run.inputs)
    assert wanted is not None
    for found, array in zip(run.outputs.values(), wanted, strict=True):
        assert relative_error(found, array) <= default_tolerance(program.source.op)
    assert predict(program.module) == run.traffic.links
    program.check_order()


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_machine_of_products_alone_says_what_it_lacks(example: Example) -> None:
    with pytest.raises(
        SourceError, match=r"'gemmini'( has no vector engine, which '|.* does not multiply f16)"
    ) as error:
        tilewright.compile(example.load(), "gemmini", pipeline=QUICK)
    (diagnostic,) = error.value.diagnostics
    assert diagnostic.line and example.text().splitlines()[diagnostic.line - 1].lstrip().startswith("%")


@pytest.mark.parametrize("objective", ["time", "traffic"])
def test_a_machine_without_a_vector_engine_multiplies_and_copies(objective: str) -> None:
    program = tilewright.compile(PRODUCT, "gemmini", objective=objective)  # type: ignore[arg-type]
    run = program.run(seed=1)
    x, w, v = (array.astype(np.int64) for array in run.inputs)
    np.testing.assert_array_equal(run.outputs["p"], x @ w)
    np.testing.assert_array_equal(run.outputs["t"], v.T)
    assert predict(program.module) == run.traffic.links
    program.check_order()


def test_a_tile_that_no_engine_asks_for_lies_where_transfers_begin_and_end() -> None:
    assert {name: load_target(name).working_memory for name in list_targets()} == {
        "ascend910b": "ub", "davinci": "ub", "gemmini": "scratchpad", "tpu_v5e": "vmem", "trainium": "sbuf",
        "unified": "scratchpad",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("target", "kind", "tflops", "gigabytes"),
    [("tpu_v5e", "bf16", 197, 820), ("trainium", "f16", 92, 410), ("davinci", "f16", 13.5, 165)],
)
def test_published_peaks_follow_from_the_figures(target: str, kind: str, tflops: float, gigabytes: float) -> None:
    """Of one core: the rates per cycle times the clock."""
    machine = load_target(target)
    assert machine.matrix_engine is not None and machine.offchip_memory.core_rate is not None
    entry = machine.matrix_engine[1].type_of(kind)
    assert entry is not None
    operations = 2 * entry.rate * np.prod(entry.block) * machine.clock_hz
    assert operations / 1e12 == pytest.approx(tflops, rel=0.01)
    assert machine.offchip_memory.core_rate * machine.clock_hz / 1e9 == pytest.approx(gigabytes, rel=0.01)
