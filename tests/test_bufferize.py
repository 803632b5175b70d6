# ruff: noqa: E501 (lines of IR)
"""The bufferize pass: which values share a buffer, where copies are made, functions in buffer form (semantics 4.4)."""

from __future__ import annotations

import numpy as np
import pytest
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects import tile
from tilewright.dialects.dtypes import by_name
from tilewright.dialects.errors import UserError
from tilewright.dialects.layout import LayoutAttr
from tilewright.dialects.target import load_target
from tilewright.dialects.tile_types import BufferType, TileType
from tilewright.lowering.bufferize import BufferizePass
from tilewright.lowering.bufferize_layout import slot_bytes, tile_layout
from tilewright.lowering.place import PlacePass
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp


def bufferize(text: str, target: str = "davinci", inputs: int = 0) -> ModuleOp:
    """Places and bufferizes; checks that the results on random inputs stay the same, bit for bit."""
    module = load(text, target)
    rng = np.random.default_rng(0)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    given = [rng.standard_normal(kind.get_shape()) for kind in func.function_type.inputs]  # pyright: ignore
    before = evaluate_tile(module, given)
    for step in (PlacePass(), BufferizePass()):
        step.apply(Context(), module)
        module.verify()
        for one, other in zip(before, evaluate_tile(module, given), strict=True):
            np.testing.assert_array_equal(one, other)
    assert not any(isinstance(value.type, TileType) for op in module.walk() for value in op.results)
    return module


def allocs(module: ModuleOp) -> list[tuple[str, tuple[int, ...], int]]:
    found: list[tuple[str, tuple[int, ...], int]] = []
    for op in module.walk():
        if isinstance(op, tile.AllocOp) and isinstance(op.res[0].type, BufferType):
            kind = op.res[0].type
            found.append((kind.memory.data, kind.shape, 1 if op.slots is None else op.slots.value.data))
    return found


def copies(module: ModuleOp) -> int:
    return sum(isinstance(op, tile.MapOp) and op.fn.data == "identity" for op in module.walk())


def test_map_chain_has_a_load_buffer_and_a_result_buffer() -> None:
    module = bufferize(RAGGED_MAP)
    assert allocs(module) == [("ub", (4, 4), 2), ("ub", (4, 4), 2)]  # the second map writes over the first


def test_softmax_works_in_place() -> None:
    module = bufferize(SOFTMAX_ROWS)
    assert allocs(module) == [("ub", (2, 16), 1), ("ub", (2, 1), 1), ("ub", (2, 1), 1)]


def test_accumulator_is_one_buffer_outside_its_loop() -> None:
    module = bufferize(matmul(20, 24, 9, (16, 10, 8)))
    assert allocs(module) == [
        ("l0c", (16, 8), 1), ("l1", (16, 10), 2), ("l1", (10, 8), 2), ("l0a", (16, 10), 1), ("l0b", (10, 8), 1),
    ]  # fmt: skip
    loop = next(op for op in module.walk() if isinstance(op, tile.ForOp) and op.kind and op.kind.data == "stream")
    assert not loop.inits and not loop.res and copies(module) == 0
    stated = loop.prev_op
    assert isinstance(stated, tile.SliceOp)  # states what of the accumulator is valid
    assert any(op.args[-1] is stated.res[0] for op in module.walk() if isinstance(op, tile.ContractOp))


def test_function_is_given_its_outputs() -> None:
    module = bufferize(RAGGED_MAP)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    assert len(func.function_type.inputs) == 2 and not func.function_type.outputs
    assert str(func.attributes["tilewright.outputs"]) == "1 : i64"


CARRIED = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<24xf32>) -> tensor<8xf32>}> ({
  ^bb0(%x: tensor<24xf32>, %o: tensor<8xf32>):
    %z = "tile.fill"() <{value = 0.0 : f32, valid = affine_map<() -> (8)>}> : () -> !tile.tile<8xf32>
    INIT
    %r:2 = "tile.for"(%z, %y) <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (3)>, operandSegmentSizes = array<i32: 0, 0, 2>, axis = "k", kind = "stream"}> ({
    ^bb1(%i: index, %a: !tile.tile<8xf32>, %b: !tile.tile<8xf32>):
      %t = "tile.load"(%x, %i) <{map = affine_map<(d0, d1) -> (d0 * 8 + d1)>, valid = affine_map<(d0) -> (8)>}> : (tensor<24xf32>, index) -> !tile.tile<8xf32>
      BODY
    }) : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> (!tile.tile<8xf32>, !tile.tile<8xf32>)
    %s = "tile.map"(%r#0, %r#1) <{fn = "sub"}> : (!tile.tile<8xf32>, !tile.tile<8xf32>) -> !tile.tile<8xf32>
    "tile.store"(%s, %o) <{map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (8)>}> : (!tile.tile<8xf32>, tensor<8xf32>) -> ()
  }) : () -> ()
  func.func @main(%x: tensor<24xf32>) -> tensor<8xf32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<24xf32>) -> tensor<8xf32>
    func.return %o : tensor<8xf32>
  }
}
"""
T = "!tile.tile<8xf32>"
SECOND = f"""%y = "tile.fill"() <{{value = 1.0 : f32, valid = affine_map<() -> (8)>}}> : () -> {T}"""


def binary(name: str, fn: str, one: str, other: str) -> str:
    return f"""%{name} = "tile.map"(%{one}, %{other}) <{{fn = "{fn}"}}> : ({T}, {T}) -> {T}\n"""


def yields(one: str, other: str) -> str:
    return f""""tile.yield"(%{one}, %{other}) : ({T}, {T}) -> ()"""


@pytest.mark.parametrize(
    ("init", "body", "expected"),
    [
        pytest.param(SECOND, binary("n", "add", "a", "t") + binary("m", "max", "b", "t") + yields("n", "m"), 0,
                     id="both-in-place"),
        pytest.param(SECOND, binary("n", "max", "a", "t") + binary("d", "sub", "a", "n") + binary("m", "add", "b", "d")
                     + yields("n", "m"), 1, id="old-read-after-new"),
        pytest.param(SECOND, binary("n", "add", "a", "t") + yields("b", "n"), 2, id="rotated"),
        pytest.param(SECOND, yields("b", "a"), 3, id="swapped"),
        pytest.param(SECOND, binary("n", "add", "a", "b") + yields("n", "n"), 1, id="one-value-yielded-twice"),
        pytest.param(SECOND, yields("t", "a"), 2, id="loaded-value-carried"),
    ],
)  # fmt: skip
def test_carried_values_are_copied_only_where_old_and_new_are_alive(init: str, body: str, expected: int) -> None:
    module = bufferize(CARRIED.replace("INIT", init).replace("BODY", body))
    assert copies(module) == expected


def test_initial_value_that_is_used_again_is_copied() -> None:
    body = binary("n", "add", "a", "t") + binary("m", "max", "b", "t") + yields("n", "m")
    text = CARRIED.replace("INIT", "").replace("%z, %y", "%z, %z").replace("BODY", body)
    assert copies(bufferize(text)) == 2
    text = CARRIED.replace("INIT", SECOND).replace("BODY", body).replace("(%r#0, %r#1)", "(%r#0, %z)")
    assert copies(bufferize(text)) == 1


def test_initial_value_from_outside_another_loop_is_kept() -> None:
    inner = f"""%q = "tile.for"(%b) <{{lower = affine_map<() -> (0)>, upper = affine_map<() -> (2)>, operandSegmentSizes = array<i32: 0, 0, 1>, axis = "l", kind = "stream"}}> ({{
      ^bb2(%j: index, %c: {T}):
        {binary("e", "add", "c", "t")}
        "tile.yield"(%e) : ({T}) -> ()
      }}) : ({T}) -> {T}
      """
    body = (
        binary("n", "add", "a", "t") + inner.replace("(%b)", "(%y)") + binary("m", "max", "b", "q") + yields("n", "m")
    )
    text = CARRIED.replace("INIT", SECOND).replace("BODY", body)
    assert copies(bufferize(text)) >= 1
    bufferize(CARRIED.replace("INIT", SECOND).replace("BODY", binary("n", "add", "a", "t") + inner + yields("n", "q")))


def test_matrix_accumulator_that_would_need_a_copy_is_rejected() -> None:
    text = matmul(20, 24, 9, (16, 10, 8)).replace('"tile.store"(%c,', '"tile.store"(%z,')
    with pytest.raises(UserError, match=r"needs a copy of a tile in memory 'l0c'"):
        module = load(text)
        PlacePass().apply(Context(), module)
        BufferizePass().apply(Context(), module)


def test_results_without_a_kernel_are_copied() -> None:
    text = RAGGED_MAP.replace("-> tensor<10x7xf32> {", "-> (tensor<10x7xf32>, tensor<10x7xf32>, tensor<10x7xf32>) {")
    text = text.replace(
        "func.return %o : tensor<10x7xf32>",
        "func.return %o, %x, %o : tensor<10x7xf32>, tensor<10x7xf32>, tensor<10x7xf32>",
    )
    module = bufferize(text)
    assert sum(isinstance(op, tile.LaunchOp) for op in module.walk()) == 3


def test_returned_alias_is_written_in_the_shape_of_the_kernel() -> None:
    text = RAGGED_MAP.replace("-> tensor<10x7xf32> {", "-> tensor<70xf32> {").replace(
        "func.return %o : tensor<10x7xf32>",
        '%f = "tile.alias"(%o) : (tensor<10x7xf32>) -> tensor<70xf32>\n    func.return %f : tensor<70xf32>',
    )
    module = bufferize(text)
    assert sum(isinstance(op, tile.AliasOp) for op in module.walk()) == 1


def test_layouts_of_memories() -> None:
    target = load_target("davinci")
    ub, l1 = target.memories["ub"], target.memories["l1"]
    assert tile_layout(ub, (3, 5), 4).dims == (((3, 32),), ((5, 4),))  # rows start at multiples of 32 bytes
    assert tile_layout(ub, (5, 1), 4).dims == (((5, 4),), ((1, 4),))  # a column is dense
    assert tile_layout(l1, (17, 40), 2).dims == (((17, 32),), ((3, 1024), (16, 2)))
    assert tile_layout(l1, (2, 1, 20, 16), 2).dims == (((2, 640),), ((1, 2),), ((20, 32),), ((16, 2),))
    kind = BufferType((3, 5), by_name("f32").attribute, "ub", _layout((3, 5)))
    assert slot_bytes(kind, ub) == 96


def _layout(shape: tuple[int, ...]) -> LayoutAttr:
    return LayoutAttr.from_layout(tile_layout(load_target("davinci").memories["ub"], shape, 4))
