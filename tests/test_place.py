# ruff: noqa: E501 (lines of IR)
"""The place pass: memories, moves, stores, and what it rejects (semantics 4.4)."""

from __future__ import annotations

import numpy as np
import pytest
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects import tile
from tilewright.dialects.errors import UserError
from tilewright.dialects.tile_types import TileType
from tilewright.lowering.place import PlacePass, memory_of, verify_placed
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter


def place(text: str, target: str = "davinci") -> ModuleOp:
    module = load(text, target)
    PlacePass().apply(Context(), module)
    module.verify()
    return module


def moves(module: ModuleOp) -> list[str]:
    return [f"{memory_of(op.tiles[0])}->{memory_of(op.target)}" for op in module.walk() if isinstance(op, tile.MoveOp)]


def memories(module: ModuleOp) -> dict[str, str]:
    """Memory of the result of each kind of op."""
    return {
        op.name.removeprefix("tile."): memory_of(op.results[0])
        for op in module.walk()
        if op.results and isinstance(op.results[0].type, TileType)
    }


def test_vector_kernel_lives_in_the_vector_memory() -> None:
    module = place(RAGGED_MAP)
    assert memories(module) == {"load": "ub", "map": "ub"} and moves(module) == []


def test_contraction_goes_through_l1_and_stays_in_l0c() -> None:
    module = place(matmul(20, 24, 9, (16, 10, 8)))
    assert memories(module) == {"empty": "l0c", "load": "l1", "move": "l0b", "contract": "l0c", "for": "l0c"}
    assert moves(module) == ["l1->l0a", "l1->l0b"]  # and the store leaves from L0C, casting


def test_epilogue_is_moved_to_the_vector_memory_once_after_the_loop() -> None:
    module = place(matmul(20, 24, 9, (16, 10, 8), "relu"))
    assert moves(module) == ["l1->l0a", "l1->l0b", "l0c->ub"]
    move = [op for op in module.walk() if isinstance(op, tile.MoveOp)][-1]
    assert isinstance(move.prev_op, tile.ForOp) and move.prev_op.kind is not None
    assert move.prev_op.kind.data == "stream"
    cast = [op for op in module.walk() if isinstance(op, tile.MapOp) and op.fn.data == "cast"]
    assert len(cast) == 1  # UB → GM cannot cast, so the vector engine does


def test_unified_memory_needs_no_moves() -> None:
    module = place(matmul(20, 24, 9, (16, 10, 8), "relu"), "unified")
    assert set(memories(module).values()) == {"scratchpad"} and moves(module) == []


@pytest.mark.parametrize("text", [RAGGED_MAP, SOFTMAX_ROWS, matmul(20, 24, 9, (16, 10, 8), "relu")])
def test_results_are_the_same(text: str) -> None:
    module = load(text)
    rng = np.random.default_rng(0)
    shapes = [arg.type.get_shape() for arg in list(module.ops)[-1].regions[0].block.args]  # pyright: ignore
    inputs = [rng.standard_normal(shape) for shape in shapes]
    before = evaluate_tile(module, inputs)
    PlacePass().apply(Context(), module)
    for one, other in zip(before, evaluate_tile(module, inputs), strict=True):
        np.testing.assert_array_equal(one, other)


def test_placing_twice_changes_nothing() -> None:
    module = place(matmul(20, 24, 9, (16, 10, 8), "relu"))
    once = str(module)
    PlacePass().apply(Context(), module)
    assert str(module) == once


def test_missing_path_is_named_with_the_op() -> None:
    with pytest.raises(UserError, match=r"'tile.map' needs in memory 'ub' what lies in 'l0c'.*l0c to ub"):
        place(matmul(20, 24, 9, (16, 10, 8), "relu"), "ascend910b")


def test_unsupported_element_types_are_rejected() -> None:
    with pytest.raises(UserError, match=r"engine 'vector' of target 'davinci' does not compute with f64"):
        place(RAGGED_MAP.replace("xf32", "xf64").replace(": f32", ": f64"))
    with pytest.raises(UserError, match=r"does not multiply f16 by f16 into f16"):
        place(matmul(20, 24, 9, (16, 10, 8)).replace("xf32>", "xf16>"))


def two_products(second: str) -> str:
    """(A · B) · C, the product of the first cast to f16 and used as `second` says."""
    t16, t32 = "!tile.tile<16x16xf16>", "!tile.tile<16x16xf32>"
    x = "tensor<16x16xf16>"
    maps = "map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (16, 16)>"
    return f"""
builtin.module {{
  "tile.kernel"() <{{sym_name = "k", function_type = ({x}, {x}, {x}) -> {x}}}> ({{
  ^bb0(%x: {x}, %y: {x}, %w: {x}, %o: {x}):
    %a = "tile.load"(%x) <{{{maps}}}> : ({x}) -> {t16}
    %b = "tile.load"(%y) <{{{maps}}}> : ({x}) -> {t16}
    %c = "tile.load"(%w) <{{{maps}}}> : ({x}) -> {t16}
    %p = "tile.contract"(%a, %b) <{{spec = "mk,kn->mn"}}> : ({t16}, {t16}) -> {t32}
    %h = "tile.map"(%p) <{{fn = "cast"}}> : ({t32}) -> {t16}
    {second}
    "tile.store"(%q, %o) <{{{maps}}}> : ({t32}, {x}) -> ()
  }}) : () -> ()
  func.func @main(%x: {x}, %y: {x}, %w: {x}) -> {x} {{
    %o = "tile.launch"(%x, %y, %w) <{{callee = @k}}> : ({x}, {x}, {x}) -> {x}
    func.return %o : {x}
  }}
}}"""


CONTRACT = """%q = "tile.contract"(%h, %c) <{spec = "mk,kn->mn"}> : (!tile.tile<16x16xf16>, !tile.tile<16x16xf16>) -> !tile.tile<16x16xf32>"""
ADD = """%q = "tile.map"(%p, %c) <{fn = "add"}> : (!tile.tile<16x16xf32>, !tile.tile<16x16xf16>) -> !tile.tile<16x16xf32>"""


def test_cast_between_products_becomes_part_of_the_move() -> None:
    module = place(two_products(CONTRACT))
    assert "l0c->l1" in moves(module) and "l0c->ub" not in moves(module)
    assert not any(isinstance(op, tile.MapOp) for op in module.walk())
    x = [np.random.default_rng(0).standard_normal((16, 16)).astype(np.float16) for _ in range(3)]
    (found,) = evaluate_tile(module, x)
    (want,) = evaluate_tile(load(two_products(CONTRACT)), x)
    np.testing.assert_array_equal(found, want)


def test_cast_stays_with_the_vector_engine_where_moves_cannot_cast() -> None:
    module = place(two_products(CONTRACT), "davinci{move.l0c.l1.cast=false}")
    assert moves(module).count("l0c->ub") == 1 and "ub->l1" in moves(module)


def test_a_source_read_by_both_engines_is_loaded_twice() -> None:
    text = two_products(ADD.replace("%c)", "%a)"))
    module = place(text)
    loads = [memory_of(op.target) for op in module.walk() if isinstance(op, tile.LoadOp)]
    assert sorted(loads[:2]) == ["l1", "ub"]


def test_verifier_names_a_wrong_memory() -> None:
    module = place(RAGGED_MAP)
    value = next(op for op in module.walk() if isinstance(op, tile.MapOp)).res[0]
    Rewriter.replace_value_with_new_type(value, TileType((4, 4), tile.element_of(value), "l1"))
    with pytest.raises(UserError, match=r"reads operand 0 in 'l1'; its engine reads 'ub'"):
        verify_placed(module)
