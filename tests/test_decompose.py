"""Decomposition keeps the meaning: evaluate(before) = evaluate(after), for every named op."""

from __future__ import annotations

import numpy as np
import pytest
from graph_build import context, one_op, parse, run, sample, sample_all
from graph_cases import CASES, Case, case_id
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph import NAMED, PRIMITIVES
from tilewright.lowering.decompose import DecomposePass
from tilewright.lowering.decompose_rules import RULES
from tilewright.runtime.reference import evaluate
from xdsl.dialects.builtin import CallSiteLoc, FileLineColLoc, IntAttr, ModuleOp, StringAttr


def decomposed(module: ModuleOp) -> ModuleOp:
    result = module.clone()
    DecomposePass().apply(context(), result)
    result.verify()
    for op in result.walk():
        assert not op.name.startswith("graph.") or isinstance(op, PRIMITIVES), op.name
    return result


def same(module: ModuleOp, inputs: list[np.ndarray], tolerance: float = 1e-12) -> None:
    before, after = run(module, *inputs), run(decomposed(module), *inputs)
    assert before.dtype == after.dtype and before.shape == after.shape
    if before.dtype.kind == "f":
        assert np.array_equal(np.isnan(before), np.isnan(after))
        np.testing.assert_allclose(after, before, rtol=tolerance, atol=tolerance)
    else:
        assert np.array_equal(before, after)


def test_every_named_op_has_a_rule_and_a_case() -> None:
    names = {op.name for op in NAMED}
    assert names == set(RULES)
    assert names - {"graph.leaky_relu"} == {f"graph.{case[0]}" for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_same_values(case: Case) -> None:
    name, types, result, values = case
    module = one_op(name, types, result, **values)
    same(module, sample_all(types))


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_same_values_as_a_framework_would_round(case: Case) -> None:
    name, types, result, values = case
    module = one_op(name, types, result, **values)
    inputs = sample_all(types, seed=1)
    before, after = run(module, *inputs, precision="native"), run(decomposed(module), *inputs, precision="native")
    assert before.dtype == after.dtype
    np.testing.assert_allclose(after.astype(np.float64), before.astype(np.float64), rtol=1e-2, atol=2e-2)


EXTENT = st.sampled_from([1, 2, 3, 5, 7, 8, 13])


@settings(max_examples=25, deadline=None)
@given(st.lists(EXTENT, min_size=2, max_size=4), st.integers(0, 1 << 30), st.booleans())
def test_norms_on_random_shapes(shape: list[int], seed: int, zero: bool) -> None:
    rng = np.random.default_rng(seed)
    text = "x".join(map(str, shape)) + "xf32"
    axis = int(rng.integers(-len(shape), len(shape)))
    x = sample(rng, text)
    masked = np.where(rng.random(shape) < 0.6, np.float32(-np.inf), x)
    same(one_op("softmax", [text], axis=axis, masked_rows="zero" if zero else "nan"), [masked])
    same(one_op("log_softmax", [text], axis=axis), [masked])
    same(one_op("layer_norm", [text, text, text], axis=axis), [x, x[::-1], x], 1e-11)
    same(one_op("rms_norm", [text], axis=axis), [x])


@settings(max_examples=25, deadline=None)
@given(st.lists(EXTENT, min_size=0, max_size=2), EXTENT, EXTENT, EXTENT, st.integers(0, 1 << 30))
def test_products_on_random_shapes(batch: list[int], m: int, k: int, n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    left, right = ([b if rng.random() < 0.7 else 1 for b in batch] for _ in range(2))
    ta, tb = rng.random(2) < 0.5
    a = [*left, k, m] if ta else [*left, m, k]
    b = [*right[int(rng.integers(0, len(right) + 1)) :], *([n, k] if tb else [k, n])]
    types = ["x".join(map(str, s)) + "xf64" for s in (a, b)]
    flags = {name: True for name, flag in (("transpose_a", ta), ("transpose_b", tb)) if flag}
    same(one_op("matmul", types, **flags), [sample(rng, t) for t in types])


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1 << 30))
def test_convolutions_on_random_shapes(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups, inner, per_group, r, s = (int(v) for v in rng.integers(1, 4, 5))
    strides, dilations = rng.integers(1, 4, 2).tolist(), rng.integers(1, 3, 2).tolist()
    pads = rng.integers(0, 3, 4).tolist()
    height, width = ((t - 1) * d + 1 + int(rng.integers(0, 6)) for t, d in zip((r, s), dilations, strict=True))
    outputs = groups * per_group
    types = [f"2x{groups * inner}x{height}x{width}xf32", f"{outputs}x{inner}x{r}x{s}xf32", f"{outputs}xf32"]
    types = types[: int(rng.integers(2, 4))]
    module = one_op("conv", types, strides=strides, dilations=dilations, pads=pads, groups=groups)
    same(module, [sample(rng, t) for t in types])


@settings(max_examples=40, deadline=None)
@given(st.lists(EXTENT, min_size=1, max_size=3), st.integers(0, 1 << 30))
def test_movement_on_random_shapes(shape: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    text = "x".join(map(str, shape)) + "xf32"
    x = sample(rng, text)
    rank = len(shape)
    factors = [p for size in shape for p in ([2] * 3 if size == 8 else [size])]
    rng.shuffle(factors)
    cut = int(rng.integers(0, len(factors) + 1))
    other = [int(np.prod(factors[:cut])), int(np.prod(factors[cut:]))]
    same(one_op("reshape", [text], f"{other[0]}x{other[1]}xf32"), [x])
    same(one_op("transpose", [text], permutation=rng.permutation(rank).tolist()), [x])
    low, high = rng.integers(0, 3, rank).tolist(), rng.integers(0, 3, rank).tolist()
    same(one_op("pad", [text], low=low, high=high, value=2.5), [x])
    same(one_op("concat", [text, text], axis=int(rng.integers(-rank, rank))), [x, -x])
    starts = [int(rng.integers(0, size)) for size in shape]
    steps = [int(rng.choice([-2, -1, 1, 3])) for _ in shape]
    room = [(size - 1 - s) // p if p > 0 else s // -p for size, s, p in zip(shape, starts, steps, strict=True)]
    sizes = [int(rng.integers(1, r + 2)) for r in room]
    same(one_op("slice", [text], starts=starts, sizes=sizes, steps=steps), [x])


def test_origin_and_location_come_from_the_named_op() -> None:
    module = one_op("softmax", ["3x7xf16"])
    (softmax,) = [op for op in module.walk() if op.name == "graph.softmax"]
    softmax.location = FileLineColLoc(StringAttr("a.mlir"), IntAttr(3), IntAttr(5))
    result = decomposed(module)
    made = [op for op in result.walk() if isinstance(op, PRIMITIVES)]
    assert len(made) == 5
    assert {str(op.attributes["tilewright.origin"]) for op in made} == {"0 : i64"}
    assert {op.location for op in made} == {softmax.location}
    assert [str(op.results[0].type) for op in made] == ["tensor<3x1xf32>", "tensor<3x7xf32>", "tensor<3x7xf32>",
                                                        "tensor<3x1xf32>", "tensor<3x7xf16>"]  # fmt: skip


CALLS = """
func.func private @twice(%a: tensor<3xf32>) -> tensor<3xf32> {
  %r = "graph.add"(%a, %a) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  func.return %r : tensor<3xf32>
}
func.func @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {
  %y = func.call @twice(%x) : (tensor<3xf32>) -> tensor<3xf32>
  %z = func.call @twice(%y) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %z, %x : tensor<3xf32>, tensor<3xf32>
}
"""


def test_calls_are_inlined_and_numbered_in_the_caller() -> None:
    module = parse(CALLS)
    x = np.array([1, 2, 3], np.float32)
    expected = evaluate(module, [x])
    result = decomposed(module)
    assert [op.name for op in result.ops] == ["func.func"]
    assert all(np.array_equal(a, b) for a, b in zip(expected, evaluate(result, [x]), strict=True))
    made = [op for op in result.walk() if isinstance(op, PRIMITIVES)]
    assert [str(op.attributes["tilewright.origin"]) for op in made] == ["0 : i64", "1 : i64"]
    assert all(isinstance(op.location, CallSiteLoc) for op in made)


ADD = '"graph.add"(%a, %a) : (tensor<3xf32>, tensor<3xf32>)'


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("@twice(%y)", "@absent(%y)", "no function @absent"),
        (ADD, "func.call @twice(%a) : (tensor<3xf32>)", "calls itself"),
    ],
)
def test_calls_that_cannot_be_inlined_are_refused(before: str, after: str, message: str) -> None:
    module = parse(CALLS.replace(before, after), verify=False)
    with pytest.raises(UserError, match=message):
        DecomposePass().apply(context(), module)


def test_symbolic_dimensions_are_refused_at_the_op() -> None:
    module = one_op("exp", ["seqx2xf32"])
    op = next(op for op in module.walk() if op.name == "graph.exp")
    op.location = FileLineColLoc(StringAttr("f.mlir"), IntAttr(2), IntAttr(8))
    with pytest.raises(UserError, match="'seq'") as caught:
        DecomposePass().apply(context(), module)
    assert caught.value.location == op.location
