"""Sums as products with ones: which sums can be, that results stay right, and that the vector engine has less to do."""

from __future__ import annotations

import numpy as np
import pytest
from online_cases import OneKernel
from random_programs import inputs_of
from test_pins import ATTENTION, attention_schedule
from tilewright.dialects import tile
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import load_target
from tilewright.lowering.matrix_sums import by_products, summed_by_products
from tilewright.lowering.measure import LOWERING, alone
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.place import PlacePass
from tilewright.lowering.tile import TilePass
from tilewright.runtime.machine import MachineResult, run
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

SHARED = """
func.func @main(%x: tensor<40x48xf16>, %v: tensor<48x16xf16>) -> (tensor<40x16xf16>, tensor<40x1xf16>) {
  %p = graph.exp %x
  %l = graph.reduce %p {monoid = "sum", axes = array<i64: 1>}
  %o = graph.matmul %p, %v
  return %o, %l : tensor<40x16xf16>, tensor<40x1xf16>
}
"""
"""The product reads what is summed, and nothing waits for anything."""

SWAPPED = SHARED.replace("48x16xf16", "16x40xf16").replace("40x16xf16", "16x48xf16").replace("%p, %v", "%v, %p")
"""What is summed is the right operand, and the product sums over the other axis."""

SHARED_SCHEDULE = Schedule("abc", (40, 16, 48), (16, 16, 16), "ac", "online", hold=("ac", "c"), slots=(1, 1))


def placed(text: str, schedule: Schedule, target: str) -> ModuleOp:
    module = alone(OneKernel.of(text).fused, schedule, load_target(target))
    for step in (TilePass(), PlacePass()):
        step.apply(Context(), module)
    return module


def executed(text: str, schedule: Schedule, target: str) -> tuple[MachineResult, list[np.ndarray]]:
    module = alone(OneKernel.of(text).fused, schedule, load_target(target))
    arrays = inputs_of(module, 1)
    for step in LOWERING:
        step.apply(Context(), module)
    return run(module, arrays), [np.asarray(array, np.float64) for array in arrays]


def softmax_product(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    scores = np.einsum("hqe,hke->hqk", q, k)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hqk,hkc->hqc", weights / weights.sum(-1, keepdims=True), v)


@pytest.mark.parametrize("keys", [16, 32, 48])
@pytest.mark.parametrize("target", ["davinci", "unified"])
def test_softmax_times_values(target: str, keys: int) -> None:
    """72 keys in whole and in ragged tiles: ones beyond the last key are not added."""
    schedule = attention_schedule(tiles=(1, 16, 16, keys, 16))
    plain, arrays = executed(ATTENTION, schedule, target)
    found, _ = executed(ATTENTION, schedule.with_(sums="matrix"), target)
    wanted = softmax_product(*arrays)
    np.testing.assert_allclose(found.outputs[0].astype(np.float64), wanted, atol=4e-3, rtol=4e-3)
    vector = next(name for name in ("vector", "core") if name in plain.engine_busy)
    assert target != "davinci" or found.engine_busy[vector] < plain.engine_busy[vector]


@pytest.mark.parametrize("target", ["davinci", "unified"])
def test_where_nothing_is_online(target: str) -> None:
    found, (x, v) = executed(SHARED, SHARED_SCHEDULE.with_(sums="matrix"), target)
    weights = np.exp(x)
    np.testing.assert_allclose(found.outputs[0].astype(np.float64), weights @ v, rtol=4e-3, atol=2e-2)
    np.testing.assert_allclose(found.outputs[1].astype(np.float64), weights.sum(-1, keepdims=True), rtol=2e-3)
    sums = [op for op in placed(SHARED, SHARED_SCHEDULE, target).walk() if isinstance(op, tile.ReduceOp)]
    assert sums
    products = placed(SHARED, SHARED_SCHEDULE.with_(sums="matrix"), target)
    assert not any(isinstance(op, tile.ReduceOp) for op in products.walk())


def test_the_product_reads_one_copy_of_what_is_summed() -> None:
    """Both products take the operand from one move; the ones are made once, before the loops."""
    module = placed(SHARED, SHARED_SCHEDULE.with_(sums="matrix"), "davinci")
    products = [op for op in module.walk() if isinstance(op, tile.ContractOp)]
    assert len(products) == 2 and products[0].tiles[0] is products[1].tiles[0]
    (ones,) = (op for op in module.walk() if isinstance(op, tile.FillOp) and str(op.value).startswith("1."))
    assert isinstance(ones.parent_op(), tile.KernelOp)


def test_which_sums_can_be_products() -> None:
    shared = OneKernel.of(SHARED).group()
    assert list(summed_by_products(shared.reductions).values()) == [0]
    assert not any(node.kind == "reduce" for node in by_products(shared).nodes)
    swapped = OneKernel.of(SWAPPED).group()
    assert not summed_by_products(swapped.reductions) and by_products(swapped) is swapped
    maximum = OneKernel.of(SHARED.replace('"sum"', '"max"')).group()
    assert by_products(maximum) is maximum
    attention = OneKernel.of(ATTENTION).group()  # the sum reads f32, the product f16 of something else
    assert by_products(attention) is attention
    online = place_nest(attention, attention_schedule(sums="matrix")).group
    assert sum(node.kind == "contract" for node in online.nodes) == 3


@pytest.mark.parametrize(("columns", "width", "steps"), [(72, 32, 2), (64, 32, 2), (70, 32, 1)])
def test_ragged_rows_are_reduced_in_whole_pieces(columns: int, width: int, steps: int) -> None:
    """Two steps where the last tile ends between pieces; one where it ends inside a piece."""
    text = f"""
func.func @main(%x: tensor<24x{columns}xf32>) -> tensor<24x1xf32> {{
  %y = graph.reduce %x {{monoid = "sum", axes = array<i64: 1>}}
  return %y : tensor<24x1xf32>
}}
"""
    schedule = Schedule("ab", (24, columns), (24, width), "b", "online", hold=("b",), slots=(1,))
    module = placed(text, schedule, "davinci")
    assert sum(isinstance(op, tile.ReduceOp) for op in module.walk()) == steps
    found, (x,) = executed(text, schedule, "davinci")
    np.testing.assert_allclose(found.outputs[0].astype(np.float64), x.sum(-1, keepdims=True), rtol=1e-5, atol=1e-5)
