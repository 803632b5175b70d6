"""The tile evaluator: valid extents, poison, loads outside their source, loops, both forms (semantics 4.1, 4.2)."""

from __future__ import annotations

import numpy as np
import pytest
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects.errors import UserError
from tilewright.runtime.tile_eval import evaluate_tile


def test_ragged_map_chain_touches_only_valid_elements() -> None:
    x = np.random.default_rng(0).standard_normal((10, 7)).astype(np.float32)
    (found,) = evaluate_tile(load(RAGGED_MAP), [x])
    np.testing.assert_array_equal(found, np.maximum(x * np.float32(2), np.float32(0.5)))


def test_elements_are_rounded_to_the_tile_type() -> None:
    text = RAGGED_MAP.replace("!tile.tile<4x4xf32>", "!tile.tile<4x4xf16>").replace(
        "tensor<10x7xf32>", "tensor<10x7xf16>"
    )
    x = np.random.default_rng(0).standard_normal((10, 7)).astype(np.float16)
    (found,) = evaluate_tile(load(text), [x])
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found, np.maximum(x * np.float16(2), np.float16(0.5)))


def test_f64_keeps_every_digit() -> None:
    x = np.random.default_rng(0).standard_normal((10, 7))
    (found,) = evaluate_tile(load(RAGGED_MAP.replace("xf32", "xf16").replace(": f32", ": f16")), [x], "f64")
    np.testing.assert_array_equal(found, np.maximum(x.astype(np.float16).astype(np.float64) * 2, 0.5))


def test_products_accumulate_in_f32_over_the_k_loop() -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((20, 24)).astype(np.float16), rng.standard_normal((24, 9)).astype(np.float16)
    (found,) = evaluate_tile(load(matmul(20, 24, 9, (16, 10, 8))), [a, b])
    want = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_allclose(found.astype(np.float32), want, rtol=2e-3, atol=2e-3)


def test_reduction_ignores_what_is_not_valid() -> None:
    x = np.random.default_rng(2).standard_normal((5, 11)).astype(np.float32) - 10
    (found,) = evaluate_tile(load(SOFTMAX_ROWS), [x])
    want = np.exp(x - x.max(1, keepdims=True))
    np.testing.assert_allclose(found, want / want.sum(1, keepdims=True), rtol=1e-5)


def test_storing_poison_is_an_error() -> None:
    text = RAGGED_MAP.replace(
        "(d0 * -4 + 10, d1 * -4 + 7)", "(d0 * -4 + 9, d1 * -4 + 7)", 1
    )  # the load's, not the store's
    with pytest.raises(UserError, match="not defined"):
        evaluate_tile(load(text), [np.zeros((10, 7), np.float32)])


def test_integers_have_poison_too() -> None:
    text = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<4xi32>) -> tensor<4xi32>}> ({
  ^bb0(%x: tensor<4xi32>, %o: tensor<4xi32>):
    %e = "tile.empty"() <{valid = affine_map<() -> (4)>}> : () -> !tile.tile<4xi32>
    %m = "tile.map"(%e) <{fn = "neg"}> : (!tile.tile<4xi32>) -> !tile.tile<4xi32>
    "tile.store"(%m, %o) <{map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>}>
      : (!tile.tile<4xi32>, tensor<4xi32>) -> ()
  }) : () -> ()
  func.func @main(%x: tensor<4xi32>) -> tensor<4xi32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<4xi32>) -> tensor<4xi32>
    func.return %o : tensor<4xi32>
  }
}"""
    with pytest.raises(UserError, match="not defined"):
        evaluate_tile(load(text), [np.zeros(4, np.int32)])


def test_fill_stands_outside_the_source() -> None:
    text = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<4xf32>) -> tensor<6xf32>}> ({
  ^bb0(%x: tensor<4xf32>, %o: tensor<6xf32>):
    %t = "tile.load"(%x) <{map = affine_map<(d0) -> (d0 - 1)>, valid = affine_map<() -> (6)>, fill = 7.0 : f32}>
      : (tensor<4xf32>) -> !tile.tile<6xf32>
    "tile.store"(%t, %o) <{map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (6)>}>
      : (!tile.tile<6xf32>, tensor<6xf32>) -> ()
  }) : () -> ()
  func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<4xf32>) -> tensor<6xf32>
    func.return %o : tensor<6xf32>
  }
}"""
    (found,) = evaluate_tile(load(text), [np.arange(4, dtype=np.float32)])
    np.testing.assert_array_equal(found, [7, 0, 1, 2, 3, 7])
    with pytest.raises(UserError, match="not defined"):
        evaluate_tile(load(text.replace(", fill = 7.0 : f32", "")), [np.arange(4, dtype=np.float32)])


def test_inputs_must_fit() -> None:
    with pytest.raises(UserError, match=r"takes 1 inputs"):
        evaluate_tile(load(RAGGED_MAP), [])
    with pytest.raises(UserError, match=r"should be \[10, 7\]"):
        evaluate_tile(load(RAGGED_MAP), [np.zeros((7, 10), np.float32)])
