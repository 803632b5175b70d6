"""Reductions in parts that a second kernel merges: the same numbers, whatever waits for what, and more cores."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from online_cases import STRUCTURES, Arrays, OneKernel
from random_cascades import cascades
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.verify import verify_module
from tilewright.lowering.axes import NotFusable
from tilewright.lowering.pipeline import PIPELINE
from tilewright.lowering.split import divide
from tilewright.runtime.reference import evaluate
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

import tilewright

CASES = list(HealthCheck)


def random_inputs(module: ModuleOp, seed: int = 0) -> Arrays:
    rng = np.random.default_rng(seed)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return [rng.standard_normal(arg.type.get_shape()) for arg in function.body.block.args]  # type: ignore[attr-defined]


def in_parts(text: str) -> list[tuple[str, int, OneKernel]]:
    """A program of one group with every reduced axis in few, and in as many parts as it can be divided in."""
    found: list[tuple[str, int, OneKernel]] = []
    whole = OneKernel.of(text)
    group = whole.group()
    for place, axis in enumerate(group.axes):
        divisors = [n for n in range(2, axis.extent + 1) if axis.extent % n == 0]
        for parts in dict.fromkeys((*divisors[:2], *divisors[-1:])) if axis in group.reduced - group.taps else ():
            case = OneKernel(whole.module.clone())
            try:
                divide(case.fused, place, parts)
            except NotFusable:
                continue
            found.append((group.names[axis], parts, case))
    return found


def agree(text: str, inputs: Arrays | None = None) -> int:
    whole = OneKernel.of(text)
    inputs = random_inputs(whole.module) if inputs is None else inputs
    want = whole.reference(inputs)
    cases = in_parts(text)
    for axis, parts, case in cases:
        verify_module(case.module)
        assert sum(isinstance(op, FusedOp) for op in case.module.walk()) == 2
        for got, ref in zip(evaluate(case.module, inputs), want, strict=True):
            scale = np.max(np.abs(ref), initial=1e-30, where=np.isfinite(ref))
            np.testing.assert_allclose(got / scale, ref / scale, rtol=0, atol=1e-9, err_msg=f"{axis} in {parts}")
    return len(cases)


SPLIT = ["attention_plain", "attention_causal", "attention_bias", "attention_decode", "attention_exp2", "loss_entropy",
         "attention_logsumexp", "statistics_variance", "statistics_covariance", "attention_linear",
         "attention_sigmoid", "quantised_matmul"]  # fmt: skip


@pytest.mark.parametrize("name", SPLIT)
def test_structures_in_parts(name: str) -> None:
    """In f64, so that nothing is rounded differently."""
    assert agree(re.sub(r"(?<=[x<{ ])f(16|32)\b", "f64", (STRUCTURES / f"{name}.mlir").read_text()))


@given(text=cascades())
@settings(max_examples=15, deadline=None, suppress_health_check=CASES)
def test_random_cascades_in_parts(text: str) -> None:
    agree(text)


@pytest.mark.slow
@given(text=cascades())
@settings(max_examples=40, deadline=None, suppress_health_check=CASES)
def test_many_random_cascades_in_parts(text: str) -> None:
    agree(text)


SOFTMAX = """
func.func @main(%x: tensor<4x24xf32>, %v: tensor<24x8xf32>) -> tensor<4x8xf32> {
  %p = graph.softmax %x
  %o = graph.matmul %p, %v
  func.return %o : tensor<4x8xf32>
}
"""


def logits(*rows: list[float]) -> Arrays:
    return [np.array([(row * 24)[:24] for row in rows]), np.random.default_rng(1).standard_normal((24, 8))]


@pytest.mark.parametrize("late", [-100.0, 100.0, -1e4])
def test_parts_that_are_masked_throughout(late: float) -> None:
    """Only the last position is live: every other part has −∞ as its maximum."""
    x, v = logits([-np.inf], [-np.inf], [0.0], [1.0, -np.inf])
    x[0, -1] = x[1, 3] = late
    assert agree(SOFTMAX, [x, v])


def test_specials_spoil_their_own_row_only() -> None:
    x, v = logits([1.0, 2.0], [np.nan, 0.0], [np.inf, 0.0], [-np.inf])
    want = OneKernel.of(SOFTMAX).reference([x, v])[0]
    cases = in_parts(SOFTMAX)
    assert cases
    for _, _, case in cases:
        np.testing.assert_allclose(evaluate(case.module, [x, v])[0], want, atol=1e-9)


@pytest.mark.parametrize(
    "text",
    [
        # softmax itself: the result varies along the axis
        """func.func @main(%x: tensor<4x24xf32>) -> tensor<4x24xf32> {
          %y = graph.softmax %x
          return %y : tensor<4x24xf32>
        }""",
        # a second walk that no rule of the online form joins to the first
        """func.func @main(%x: tensor<4x24xf32>) -> tensor<4x1xf32> {
          %s = graph.reduce_sum %x {axes = [-1], keepdims}
          %d = graph.sub %x, %s
          %t = graph.tanh %d
          %y = graph.reduce_sum %t {axes = [-1], keepdims}
          return %y : tensor<4x1xf32>
        }""",
    ],
)
def test_what_cannot_be_merged_stays_whole(text: str) -> None:
    assert not in_parts(text)


WINDOWS = """
func.func @main(%x: tensor<1x8x6x6xf32>, %w: tensor<4x8x3x3xf32>) -> tensor<1x4x4x4xf32> {
  %y = graph.conv %x, %w
  return %y : tensor<1x4x4x4xf32>
}
"""


@pytest.mark.parametrize(
    ("text", "parts", "why"),
    [(SOFTMAX, 5, "an axis of 24 has no 5 equal parts"), (WINDOWS, 2, "an input that is read in windows")],
)
def test_refusals_say_why(text: str, parts: int, why: str) -> None:
    case = OneKernel.of(text)
    group = case.group()
    place = next(n for n, a in enumerate(group.axes) if a in group.reduced - group.taps and a.extent in (8, 24))
    with pytest.raises(NotFusable, match=why):
        divide(case.fused, place, parts)


LONG_SUM = """
func.func @main(%x: tensor<262144xf32>) -> tensor<1xf32> {
  %y = graph.reduce_sum %x {axes = [0], keepdims}
  return %y : tensor<1xf32>
}
"""
DECODE = """
func.func @main(%q: tensor<1x64xf16>, %k: tensor<16384x64xf16>, %v: tensor<16384x64xf16>) -> tensor<1x64xf16> {
  %s = graph.contract %q, %k {spec = "qd,kd->qk"}
  %p = graph.softmax %s
  %o = graph.matmul %p, %v
  return %o : tensor<1x64xf16>
}
"""
DEEP = """
func.func @main(%a: tensor<16x32768xf16>, %b: tensor<32768x16xf16>) -> tensor<16x16xf32> {
  %y = graph.contract %a, %b {spec = "mk,kn->mn"} : tensor<16x16xf32>
  return %y : tensor<16x16xf32>
}
"""


@pytest.mark.parametrize("text", [LONG_SUM, DEEP])
def test_few_results_use_many_cores(text: str) -> None:
    target = "davinci{cores=32}"
    program = tilewright.compile(text, target=target)
    first, _ = (launch.kernel for launch in program.snapshot("hardware").machine.program.launches)
    assert first.cores >= 16
    result = program.run(seed=0)
    assert max(error for error in result.errors().values() if error is not None) < 4e-3
    rest = ",".join(PIPELINE[PIPELINE.index("split") + 1 :])
    whole = tilewright.compile(text, target=target, pipeline=f"canonicalize,decompose,canonicalize,fuse,{rest}")
    assert result.cycles < 0.7 * whole.analyze().cycles


def test_one_query_against_many_keys_spreads() -> None:
    program = tilewright.compile(DECODE, target="davinci{cores=32}")
    result = program.run(seed=0)
    assert max(error for error in result.errors().values() if error is not None) < 4e-3
    assert result.cycles < 0.5 * tilewright.compile(DECODE, target="davinci").analyze().cycles


def test_the_options_are_checked() -> None:
    with pytest.raises(tilewright.SourceError, match="options of split are at least 1"):
        tilewright.compile(LONG_SUM, pipeline="canonicalize,decompose,fuse,split{effort=0}")


def test_one_core_and_objective_traffic_keep_one_kernel() -> None:
    for target, objective in (("davinci", "time"), ("davinci{cores=32}", "traffic")):
        program = tilewright.compile(LONG_SUM, target=target, objective=objective)  # type: ignore[arg-type]
        assert len(program.analyze().kernels) == 1
