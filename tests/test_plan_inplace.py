# ruff: noqa: E501 (lines of IR)
"""Results of launches on the bytes of their operands: which kernels may, and what a wrong choice is told."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from test_plan import chain, load, offset, plan
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, matmul
from tilewright.dialects import tile
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import target_of
from tilewright.lowering.bufferize import BufferizePass
from tilewright.lowering.emit import EmitPass
from tilewright.lowering.place import PlacePass
from tilewright.lowering.plan import PlanPass
from tilewright.lowering.plan_inplace import overwrites
from tilewright.lowering.plan_names import WORKSPACE
from tilewright.lowering.plan_validate import validate_plan
from tilewright.lowering.sync import SyncPass
from tilewright.runtime import machine
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp

LOAD = '%t = "tile.load"(%x, %i, %j)'
MAP = "affine_map<(d0, d1, d2, d3) -> (d0 * 4 + d2, d1 * 4 + d3)>"
STORE = f'"tile.store"(%r, %o, %i, %j) <{{map = {MAP}'
CASES = {
    "two loads": RAGGED_MAP.replace(LOAD, LOAD.replace("%t", "%v") + RAGGED_MAP.split(LOAD)[1].split("\n")[0] + "\n" + LOAD),
    "other places": RAGGED_MAP.replace(STORE, STORE.replace("d0 * 4", "d0 * 4 + 1")),
    "tiles that overlap": RAGGED_MAP.replace("d0 * 4 + d2", "d0 * 3 + d2"),
    "what is stored comes from elsewhere": RAGGED_MAP.replace(
        '%r = "tile.map"(%d) <{fn = "max", immediates = [0 : index, 0.5 : f32]}> : (!tile.tile<4x4xf32>)',
        '%r = "tile.fill"(%i) <{value = 1.0 : f32, valid = affine_map<(d0) -> (4, 4)>}> : (index)',
    ),
    "a loop whose end is the least of several": RAGGED_MAP.replace("affine_map<() -> (3)>", "affine_map<() -> (3, 9)>"),
    "other elements of the tile": RAGGED_MAP.replace(f"{STORE}, valid = affine_map<(d0, d1) -> (d0 * -4 + 10,", f"{STORE}, valid = affine_map<(d0, d1) -> (d0 * -4 + 9,"),
    "a loop that repeats": RAGGED_MAP.replace('upper = affine_map<() -> (3)>', 'upper = affine_map<() -> (4)>')
    .replace("d0 * 4 + d2", "d2").replace("d0 * -4 + 10", "4"),
}  # fmt: skip


def buffers(text: str) -> ModuleOp:
    module = load(text, "davinci")
    for step in (PlacePass(), BufferizePass()):
        step.apply(Context(), module)
    return module


def kernel(module: ModuleOp) -> tile.KernelOp:
    return next(op for op in module.ops if isinstance(op, tile.KernelOp))


def function(module: ModuleOp) -> FuncOp:
    return next(op for op in module.ops if isinstance(op, FuncOp))


@pytest.mark.parametrize("text", [RAGGED_MAP, SOFTMAX_ROWS])
def test_kernels_that_may(text: str) -> None:
    assert overwrites(kernel(buffers(text))) == [(0, 1)]


@pytest.mark.parametrize("name", CASES)
def test_kernels_that_may_not(name: str) -> None:
    assert CASES[name] != RAGGED_MAP
    assert overwrites(kernel(buffers(CASES[name]))) == []


def test_a_product_may_not() -> None:
    assert overwrites(kernel(buffers(matmul(16, 16, 16, (16, 16, 8))))) == []


def test_a_chain_lies_on_one_buffer_and_keeps_its_result() -> None:
    module = plan(chain(6))
    held = {offset(op) for op in function(module).body.block.ops if isinstance(op, tile.AllocOp)}
    assert held == {576} and cast(IntegerAttr, function(module).attributes[WORKSPACE]).value.data == 288
    inputs = [np.random.default_rng(0).standard_normal((10, 7)).astype(np.float32)]
    (expected,) = evaluate_tile(load(chain(6), "davinci"), inputs)
    for step in (EmitPass(), SyncPass()):
        step.apply(Context(), module)
    (found,) = machine.run(module, inputs).outputs
    np.testing.assert_array_equal(found, expected)


def test_an_operand_that_is_used_again_keeps_its_bytes() -> None:
    calls = ['%a = "tile.launch"(%x)', '%b = "tile.launch"(%a)', '%c = "tile.launch"(%b)', '%d = "tile.launch"(%a)']
    kind = "<{callee = @k}> : (tensor<10x7xf32>) -> tensor<10x7xf32>"
    head = RAGGED_MAP.split("    %o = ", 1)[0].replace(
        "-> tensor<10x7xf32> {", "-> (tensor<10x7xf32>, tensor<10x7xf32>) {"
    )
    last = "    func.return %c, %d : tensor<10x7xf32>, tensor<10x7xf32>\n  }\n}"
    module = plan("\n".join([head, *(f"    {call} {kind}" for call in calls), last]))
    held = [offset(op) for op in function(module).body.block.ops if isinstance(op, tile.AllocOp)]
    assert len(held) == 2 and len(set(held)) == 2


@pytest.mark.parametrize("name", CASES)
def test_the_validator_finds_it_by_itself(name: str) -> None:
    text = CASES[name]
    launches = chain(3)[len(RAGGED_MAP.split("    %o = ", 1)[0]) :]
    module = plan(text.split("    %o = ", 1)[0] + launches)
    first, second = (op for op in function(module).body.block.ops if isinstance(op, tile.AllocOp))
    validate_plan(function(module).body.block, target_of(module))
    second.offset = first.offset
    with pytest.raises(UserError, match="overlaps buffer"):
        validate_plan(function(module).body.block, target_of(module))
    with pytest.raises(UserError, match="overlaps buffer"):
        PlanPass(keep=True).apply(Context(), module)
