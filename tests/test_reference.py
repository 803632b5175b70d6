"""The reference of each named op against independent implementations: onnx.reference, and loops."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from graph_build import one_op, parse, run, sample_all
from hypothesis import given, settings
from hypothesis import strategies as st
from tilewright.dialects.dtypes import BY_NAME
from tilewright.dialects.errors import UserError
from tilewright.runtime.reference import evaluate
from tilewright.runtime.reference_primitives import einsum


def by_onnx(kind: str, *inputs: np.ndarray, **attributes: object) -> np.ndarray:
    """One ONNX node of opset 21 on `inputs`, by ONNX's own NumPy evaluator."""
    helper = pytest.importorskip("onnx").helper
    from onnx.reference import ReferenceEvaluator

    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(kind, names, ["y"], **attributes)
    types = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
    ]
    output = helper.make_tensor_value_info("y", types[0].type.tensor_type.elem_type, None)
    graph = helper.make_graph([node], "g", types, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    return ReferenceEvaluator(model).run(None, dict(zip(names, inputs, strict=True)))[0]


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


ONNX = [
    ("softmax", ["3x7x5xf64"], {"axis": 1}, "Softmax", {"axis": 1}, ()),
    ("log_softmax", ["3x7x5xf64"], {"axis": -1}, "LogSoftmax", {"axis": -1}, ()),
    ("layer_norm", ["3x7x5xf32", "7x5xf32", "7x5xf32"], {"axis": 1, "epsilon": 0.01}, "LayerNormalization",
     {"axis": 1, "epsilon": 0.01}, ()),
    ("gelu", ["3x7xf64"], {}, "Gelu", {}, ()),
    ("gelu", ["3x7xf64"], {"approximate": "tanh"}, "Gelu", {"approximate": "tanh"}, ()),
    ("matmul", ["2x1x5x3xf64", "4x3x7xf64"], {}, "MatMul", {}, ()),
    ("conv", ["2x4x9x7xf32", "6x2x3x2xf32", "6xf32"],
     {"groups": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [2, 1]},
     "Conv", {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1], "dilations": [2, 1]}, ()),
    ("reduce_sum", ["3x7x5xf64"], {"axes": [0, 2]}, "ReduceSum", {"keepdims": 0}, (i64(0, 2),)),
    ("reduce_mean", ["3x7x5xf64"], {"axes": [1], "keepdims": True}, "ReduceMean", {"keepdims": 1}, (i64(1),)),
    ("reduce_max", ["3x7x5xf64"], {"axes": [1]}, "ReduceMax", {"keepdims": 0}, (i64(1),)),
    ("reduce_min", ["3x7x5xf64"], {}, "ReduceMin", {"keepdims": 0}, ()),
    ("reduce_prod", ["3x7x5xf64"], {"axes": [-1]}, "ReduceProd", {"keepdims": 0}, (i64(-1),)),
    ("transpose", ["3x7x5xf64"], {"permutation": [2, 0, 1]}, "Transpose", {"perm": [2, 0, 1]}, ()),
    ("concat", ["3x7xf64", "2x7xf64"], {"axis": 0}, "Concat", {"axis": 0}, ()),
    ("pad", ["3x7xf64"], {"low": [1, 0], "high": [2, 3], "value": 1.5}, "Pad", {}, (i64(1, 0, 2, 3), np.array(1.5))),
    ("slice", ["9x7xf64"], {"starts": [8, 1], "sizes": [3, 2], "steps": [-3, 4]}, "Slice", {},
     (i64(8, 1), i64(1, 7), i64(0, 1), i64(-3, 4))),
    ("clip", ["3x7xf64"], {"low": -0.5, "high": 1.0}, "Clip", {}, (np.array(-0.5), np.array(1.0))),
    ("where", ["3x1xi1", "3x7xf64", "7xf64"], {}, "Where", {}, ()),
    ("mod", ["3x7xi32", "7xi32"], {}, "Mod", {}, ()),
    ("div", ["3x7xf64", "7xf64"], {}, "Div", {}, ()),
    ("erf", ["3x7xf64"], {}, "Erf", {}, ()),
    ("sigmoid", ["3x7xf64"], {}, "Sigmoid", {}, ()),
    ("round", ["3x7xf64"], {}, "Round", {}, ()),
    ("sign", ["3x7xf64"], {}, "Sign", {}, ()),
    ("reciprocal", ["3x7xf64"], {}, "Reciprocal", {}, ()),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "types", "values", "kind", "attributes", "extra"),
    ONNX,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(ONNX)],
)
def test_named_ops_agree_with_onnx(name, types, values, kind, attributes, extra) -> None:
    inputs = sample_all(types, seed=3)
    ours = run(one_op(name, types, **values), *inputs)
    wide = [x.astype(np.float64) if x.dtype == np.float32 else x for x in inputs]
    theirs = by_onnx(kind, *wide, *extra, **attributes)
    assert ours.shape == theirs.shape
    np.testing.assert_allclose(ours, theirs, rtol=2e-6, atol=2e-6)


def test_rms_norm_and_silu_from_their_formulas() -> None:
    x, scale = sample_all(["3x7xf32", "7xf32"])
    ours = run(one_op("rms_norm", ["3x7xf32", "7xf32"], epsilon=0.5), x, scale)
    for row, wanted in zip(x.astype(float), ours, strict=True):
        root = math.sqrt(sum(v * v for v in row) / 7 + 0.5)
        np.testing.assert_allclose(wanted, [v / root * s for v, s in zip(row, scale, strict=True)], rtol=1e-12)
    silu = run(one_op("silu", ["3x7xf32"]), x)
    np.testing.assert_allclose(silu, [[v / (1 + math.exp(-v)) for v in row] for row in x.astype(float)], rtol=1e-12)


def test_a_fully_masked_row_of_softmax() -> None:
    x = np.array([[-np.inf, -np.inf], [0, -np.inf]], np.float32)
    assert np.isnan(run(one_op("softmax", ["2x2xf32"]), x)[0]).all()
    zero = run(one_op("softmax", ["2x2xf32"], masked_rows="zero"), x)
    assert np.array_equal(zero, [[0, 0], [1, 0]])


def test_integer_matmul_is_exact() -> None:
    a, b = sample_all(["5x30xi8", "30x4xi8"])
    ours = run(one_op("matmul", ["5x30xi8", "30x4xi8"]), a, b)
    assert ours.dtype == np.int32
    assert np.array_equal(ours, a.astype(object) @ b.astype(object))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 30))
def test_contract_is_einsum(seed: int) -> None:
    rng = np.random.default_rng(seed)
    letters = "abcdef"[: int(rng.integers(1, 7))]
    size = {c: int(rng.choice([1, 2, 3, 5])) for c in letters}
    roles = {c: int(rng.integers(0, 4)) for c in letters}  # batch, summed, rows, columns
    left = [c for c in letters if roles[c] != 3]
    right = [c for c in letters if roles[c] != 2]
    out = [c for c in letters if roles[c] != 1]
    for part in (left, right, out):
        rng.shuffle(part)
    spec = f"{''.join(left)},{''.join(right)}->{''.join(out)}"
    a, b = rng.standard_normal([size[c] for c in left]), rng.standard_normal([size[c] for c in right])
    np.testing.assert_allclose(einsum(spec, a, b), np.einsum(spec, a, b), rtol=1e-12, atol=1e-12)


VIEW = """
func.func @main(%x: tensor<3xf16>, %y: tensor<2xf16>) -> tensor<3x4xf16> {
  %r = "graph.view"(%x, %y) <{maps = [affine_map<(d0, d1) -> (d0 floordiv 2 + d1 mod 2)>,
    affine_map<(d0, d1) -> (d1 - 2)>],
    lower = [array<i64: 0, 0>, array<i64: 1, 2>], upper = [array<i64: 3, 2>, array<i64: 3, 4>], fill = 9.0 : f16}>
    : (tensor<3xf16>, tensor<2xf16>) -> tensor<3x4xf16>
  func.return %r : tensor<3x4xf16>
}
"""


def test_a_piecewise_view_by_a_loop() -> None:
    x, y = np.array([1, 2, 3], np.float16), np.array([4, 5], np.float16)
    expected = np.full((3, 4), 9.0)
    for i, j in itertools.product(range(3), range(2)):
        expected[i, j] = x[i // 2 + j % 2]
    for i, j in itertools.product(range(1, 3), range(2, 4)):
        expected[i, j] = y[j - 2]
    for precision in ("f64", "native"):
        (result,) = evaluate(parse(VIEW), [x, y], precision)
        assert np.array_equal(result, expected)


def test_iota_constant_weight_and_a_fused_region() -> None:
    module = parse("""
    func.func @main(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
      %i = "graph.iota"() <{dim = 1 : i64}> : () -> tensor<2x3xf32>
      %w = "graph.weight"() <{file = "w.safetensors", key = "a"}> : () -> tensor<3xf32>
      %r = "graph.fused"(%x, %i, %w) ({
      ^bb0(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<3xf32>):
        %s = "graph.map"(%a, %b) <{fn = "add"}> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
        %t = "graph.map"(%s, %c) <{fn = "mul"}> : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
        "graph.yield"(%t) : (tensor<2x3xf32>) -> ()
      }) : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
      func.return %r : tensor<2x3xf32>
    }""")
    (x,) = sample_all(["2x3xf32"])
    weight = np.array([2, 3, 5], np.float32)
    (result,) = evaluate(
        module, [x], loader=lambda file, key: weight if (file, key) == ("w.safetensors", "a") else None
    )
    np.testing.assert_allclose(result, (x + np.arange(3)) * weight, rtol=1e-12)
    with pytest.raises(UserError, match="cannot be read"):
        evaluate(module, [x])
    with pytest.raises(UserError, match="shape"):
        evaluate(module, [x], loader=lambda file, key: weight[:2])


# --- rounding ---------------------------------------------------------------------------------------------------------


def test_f64_rounds_only_at_casts() -> None:
    module = parse("""
    func.func @main(%x: tensor<f16>) -> (tensor<f16>, tensor<f16>) {
      %t = "graph.constant"() <{value = dense<3.0> : tensor<f16>}> : () -> tensor<f16>
      %q = "graph.div"(%x, %t) : (tensor<f16>, tensor<f16>) -> tensor<f16>
      %w = "graph.cast"(%q) : (tensor<f16>) -> tensor<f32>
      %r = "graph.cast"(%w) : (tensor<f32>) -> tensor<f16>
      func.return %q, %r : tensor<f16>, tensor<f16>
    }""")
    one = np.array(1, np.float16)
    kept, rounded = evaluate(module, [one])
    assert kept.dtype == rounded.dtype == np.float64
    assert kept == 1 / 3 and rounded == float(np.float16(np.float32(1 / 3)))
    native = evaluate(module, [one], "native")
    assert [a.dtype for a in native] == [np.float16, np.float16]
    assert native[0] == np.float16(1 / 3)


def test_native_computes_f16_in_f32() -> None:
    ones = np.ones(4096, np.float16)
    assert run(one_op("reduce_sum", ["4096xf16"]), ones, precision="native") == 4096
    big = np.array([300.0], np.float16)
    product = one_op("mul", ["1xf16", "1xf16"])
    assert run(product, big, big, precision="native") == np.inf
    assert run(product, big, big) == 90000


def test_inputs_are_rounded_to_their_type() -> None:
    assert run(one_op("neg", ["1xf16"]), np.array([0.1])) == -float(np.float16(0.1))


@pytest.mark.parametrize(
    ("source", "target", "values", "expected"),
    [
        ("f32", "i8", [2.9, -2.9, 300, -300, np.nan, np.inf], [2, -2, 127, -128, 0, 127]),
        ("f32", "i64", [1e30, -1e30], [2**63 - 1, -(2**63)]),
        ("f32", "ui8", [-1.5, 255.9, 256], [0, 255, 255]),
        ("i32", "i8", [300, -129, 5], [44, 127, 5]),
        ("f32", "i1", [0.0, -0.0, 0.5, np.nan], [False, False, True, True]),
        ("i1", "f16", [True, False], [1.0, 0.0]),
        ("f64", "bf16", [1.00390625, 1.01171875], [1.0, 1.015625]),
    ],
)
def test_casts(source: str, target: str, values: list, expected: list) -> None:
    array = np.array(values, BY_NAME[source].numpy)
    n = len(values)
    for precision in ("f64", "native"):
        result = run(one_op("cast", [f"{n}x{source}"], f"{n}x{target}"), array, precision=precision)
        assert result.astype(np.float64).tolist() == np.array(expected, np.float64).tolist()


# --- reject paths -----------------------------------------------------------------------------------------------------


def test_wrong_inputs_are_named() -> None:
    module = one_op("exp", ["2x3xf32"])
    with pytest.raises(UserError, match="takes 1 inputs, got 0"):
        evaluate(module, [])
    with pytest.raises(UserError, match=r"input 0 has shape \[3\]"):
        evaluate(module, [np.zeros(3)])
    with pytest.raises(UserError, match="'seq'"):
        evaluate(one_op("exp", ["seqx3xf32"]), [np.zeros((2, 3))])


def test_other_dialects_need_a_handler() -> None:
    text = """
    func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
      %r = "builtin.unrealized_conversion_cast"(%x) : (tensor<2xf32>) -> tensor<2xf32>
      func.return %r : tensor<2xf32>
    }"""
    x = np.array([1, 2], np.float32)
    with pytest.raises(UserError, match="no meaning"):
        evaluate(parse(text), [x])
    (result,) = evaluate(
        parse(text), [x], handlers={"builtin.unrealized_conversion_cast": lambda op, args, numbers: args}
    )
    assert np.array_equal(result, x)
