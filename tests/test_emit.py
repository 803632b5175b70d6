# ruff: noqa: E501 (lines of IR)
"""The emit pass: planned buffers to instructions that compute the same (semantics 5.1, 5.2)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects import hardware
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import set_target
from tilewright.ir.source import load_module
from tilewright.lowering.pipeline import parse_pipeline, run_pipeline
from tilewright.runtime.machine import Interleaving, MachineOptions, run
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

TARGETS = ["davinci", "unified"]
INTERLEAVINGS: tuple[Interleaving, ...] = ("program", "eager", "late", "random")


def arrays(module: ModuleOp, seed: int = 0) -> list[npt.NDArray[np.float64]]:
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(kind.get_shape()) for kind in function.function_type.inputs]  # pyright: ignore


def emitted(module: ModuleOp) -> ModuleOp:
    """Runs a tile-level kernel in value form down to instructions; checks every result on every interleaving."""
    given = arrays(module)
    wanted = evaluate_tile(module, given)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    for interleaving in INTERLEAVINGS:
        found = run(module, given, MachineOptions(interleaving=interleaving, seed=1)).outputs
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, other)
    return module


def instructions(module: ModuleOp) -> list[hardware.InstructionOp]:
    return [op for op in module.walk() if isinstance(op, hardware.InstructionOp)]


def engines(module: ModuleOp) -> list[str]:
    return [f"{op.name.split('.')[1]} {op.engine.data}" for op in instructions(module)]


def planned(text: str, target: str = "davinci") -> ModuleOp:
    module = load(text, target)
    run_pipeline(module, parse_pipeline("place,bufferize,plan"))
    return module


def emit(module: ModuleOp) -> ModuleOp:
    run_pipeline(module, parse_pipeline("emit"))
    return module


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize(
    "text", [RAGGED_MAP, SOFTMAX_ROWS, matmul(50, 70, 40, (16, 32, 16), "relu"), matmul(32, 32, 32, (32, 16, 32))]
)
def test_kernels_by_hand(text: str, target: str) -> None:
    emitted(load(text, target))


def test_a_ragged_map_takes_turns_in_its_slots() -> None:
    module = emitted(load(RAGGED_MAP))
    assert engines(module) == ["dma mte2", "vector vector", "vector vector", "dma mte3"]
    view = instructions(module)[0].output.owner
    assert isinstance(view, hardware.ViewOp)
    assert str(view.offset) == "affine_map<(d0, d1) -> (((((d0 * 2) + d1) mod 2) * 64))>"
    assert str(view.valid) == "affine_map<(d0, d1) -> (((d0 * -4) + 10), ((d1 * -4) + 7))>"


def test_the_first_write_of_a_slot_poisons_it_and_work_in_place_does_not() -> None:
    load_, first, second, store = instructions(emitted(load(RAGGED_MAP)))
    assert [op.fresh is not None for op in (load_, first, second, store)] == [True, True, False, False]


def test_what_is_always_valid_is_not_said() -> None:
    for op in instructions(emitted(load(matmul(32, 32, 32, (16, 16, 16))))):
        for value in op.views:
            assert isinstance(value.owner, hardware.ViewOp)
            assert value.owner.valid is None and value.owner.start is None


def test_matmul_starts_from_zero_where_init_is_zero() -> None:
    module = emitted(load(matmul(50, 70, 40, (16, 32, 16))))
    product = next(op for op in module.walk() if isinstance(op, hardware.MatmulOp))
    assert product.overwrite is None and str(product.init) == "affine_map<(d0) -> (d0)>"


GRAPHS = {
    "pad": (
        (5, 7),
        "%y = graph.view %x {maps = [affine_map<(d0, d1) -> (d0 - 2, d1 - 1)>], lower = [array<i64: 2, 1>], upper = [array<i64: 7, 8>], fill = 0.5 : f32} : tensor<9x11xf32>",
    ),
    "transpose": (
        (2, 3, 2, 3, 2, 3),
        "%y = graph.view %x {maps = [affine_map<(d0, d1, d2, d3, d4, d5) -> (d5, d1, d3, d2, d4, d0)>]} : tensor<3x3x3x2x2x2xf32>",
    ),
    "broadcast": ((1, 7), "%y = graph.view %x {maps = [affine_map<(d0, d1) -> (0, d1)>]} : tensor<5x7xf32>"),
    "strided": ((40,), "%y = graph.view %x {maps = [affine_map<(d0, d1) -> (d0 * 3 + d1 * 2)>]} : tensor<9x5xf32>"),
    "reduce": (
        (4, 8),
        '%r = graph.reduce %x {monoid = "max", axes = array<i64: 0>} : tensor<1x8xf32>\n %y = graph.map %r {fn = "exp"} : tensor<1x8xf32>',
    ),
}


@pytest.mark.parametrize("target", [*TARGETS, "davinci{max_dma_dims=2}"])
@pytest.mark.parametrize("name", GRAPHS)
def test_views(name: str, target: str) -> None:
    shape, body = GRAPHS[name]
    kind = "x".join(map(str, shape)) + "xf32"
    result = body.rsplit(": ", 1)[1]
    text = f"func.func @main(%x: tensor<{kind}>) -> {result} {{\n {body}\n func.return %y : {result}\n}}"
    module, _ = load_module(text)
    set_target(module, target)
    run_pipeline(module, parse_pipeline("fuse,schedule,tile"))
    emitted(module)


def test_a_padded_load_is_a_fill_and_the_inside() -> None:
    shape, body = GRAPHS["pad"]
    text = f"func.func @main(%x: tensor<{'x'.join(map(str, shape))}xf32>) -> tensor<9x11xf32> {{\n {body}\n func.return %y : tensor<9x11xf32>\n}}"
    module, _ = load_module(text)
    set_target(module, "davinci")
    run_pipeline(module, parse_pipeline("fuse,schedule,tile"))
    found = instructions(emitted(module))
    fill = next(op for op in found if isinstance(op, hardware.FillOp))
    inside = found[found.index(fill) + 1]
    assert fill.fresh is not None and isinstance(inside, hardware.DmaOp) and inside.fresh is None
    assert isinstance(inside.output.owner, hardware.ViewOp) and isinstance(inside.inputs[0].owner, hardware.ViewOp)
    assert inside.output.owner.start is not None or inside.inputs[0].owner.start is not None


def test_a_transfer_of_too_many_dimensions_becomes_a_loop() -> None:
    shape, body = GRAPHS["transpose"]
    kind = "x".join(map(str, shape)) + "xf32"
    result = body.rsplit(": ", 1)[1]
    text = f"func.func @main(%x: tensor<{kind}>) -> {result} {{\n {body}\n func.return %y : {result}\n}}"
    loops: list[int] = []
    for dims in (6, 3, 2):
        module, _ = load_module(text)
        set_target(module, f"davinci{{max_dma_dims={dims}}}")
        run_pipeline(module, parse_pipeline("fuse,schedule,tile"))
        loops.append(sum(isinstance(op, hardware.ForOp) for op in emitted(module).walk()))
    assert loops[0] < loops[1] < loops[2]


def test_a_product_by_hand_that_one_instruction_does_not_take() -> None:
    limit = "davinci{{engine.matrix.types.f16.max_shape=[32,32,{n}]}}"
    emit(planned(matmul(40, 40, 40, (32, 32, 32)), limit.format(n=32)))
    with pytest.raises(UserError, match=r"a product of 32 × 32 × 32 .* exceeds, in n, .*; take smaller tiles"):
        emit(planned(matmul(40, 40, 40, (32, 32, 32)), limit.format(n=16)))


def test_loops_whose_bounds_depend_on_counters() -> None:
    text = RAGGED_MAP.replace(
        '"tile.for"() <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (2)>, operandSegmentSizes = array<i32: 0, 0, 0>',
        '"tile.for"(%i) <{lower = affine_map<() -> (0)>, upper = affine_map<(d0) -> (d0 * -1 + 2)>, operandSegmentSizes = array<i32: 0, 1, 0>',
    ).replace("}) : () -> ()", "}) : (index) -> ()", 1)
    assert text != RAGGED_MAP
    module = load(text)
    given = arrays(module)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    (found,) = run(module, given, MachineOptions(check_poison=False)).outputs  # the last tiles are not written
    wanted = np.maximum(given[0].astype(np.float32) * 2, np.float32(0.5))
    np.testing.assert_array_equal(found[:4], wanted[:4])
    np.testing.assert_array_equal(found[4:8, :4], wanted[4:8, :4])


def test_locations_are_kept() -> None:
    module, _ = load_module(str(load(RAGGED_MAP)))
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    for op in module.walk():
        if isinstance(op, hardware.InstructionOp | hardware.EventOp | hardware.ForOp | hardware.KernelOp):
            assert "FileLineColLoc" in type(op.location).__name__, op.name


def test_the_program_holds_buffers_and_launches() -> None:
    module = emit(planned(RAGGED_MAP))
    program = next(op for op in module.ops if isinstance(op, hardware.ProgramOp))
    buffers = [op for op in program.body.block.ops if isinstance(op, hardware.BufferOp)]
    assert [(op.role.data, op.index.value.data if op.index is not None else None) for op in buffers] == [
        ("input", 0),
        ("output", 0),
    ]
    assert not any(isinstance(op, FuncOp) for op in module.ops)


@pytest.mark.parametrize(
    ("passes", "message"),
    [
        ("place,bufferize", "has no offset|plan first"),
        ("place", "not in buffer form"),
        ("place,plan", "not in buffer form"),
    ],
)
def test_what_is_not_planned_is_refused(passes: str, message: str) -> None:
    module = load(RAGGED_MAP)
    run_pipeline(module, parse_pipeline(passes))
    with pytest.raises(UserError, match=message):
        emit(module)


def test_a_move_that_the_target_has_not_is_refused() -> None:
    module = planned(RAGGED_MAP)
    set_target(module, "davinci{memory.ub.align=512}")
    with pytest.raises(UserError, match="stale offset"):
        emit(module)
    text = str(planned(RAGGED_MAP, "unified"))
    other, _ = load_module(text.replace('"unified"', '"davinci"').replace('"scratchpad"', '"l0c"'))
    with pytest.raises(UserError, match="target 'davinci' has no move from 'gm' to 'l0c'") as caught:
        emit(other)
    assert caught.value.location is not None


def test_taps_along_rows_are_loads_of_their_own() -> None:
    text = "func.func @main(%x: tensor<64x24xf32>) -> tensor<64x22x3xf32> {\n %y = graph.view %x {maps = [affine_map<(d0, d1, d2) -> (d0, d1 + d2)>]} : tensor<64x22x3xf32>\n func.return %y : tensor<64x22x3xf32>\n}"
    module, _ = load_module(text)
    set_target(module, "davinci")
    run_pipeline(module, parse_pipeline("fuse,schedule,tile"))
    emitted(module)


def test_a_part_that_breaks_the_alignment_is_refused() -> None:
    text = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<4x32xf32>) -> tensor<4x16xf32>}> ({
  ^bb0(%x: tensor<4x32xf32>, %o: tensor<4x16xf32>):
    %t = "tile.load"(%x) <{map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (4, 32)>}> : (tensor<4x32xf32>) -> !tile.tile<4x32xf32>
    %e = "tile.map"(%t) <{fn = "exp"}> : (!tile.tile<4x32xf32>) -> !tile.tile<4x32xf32>
    %s = "tile.slice"(%e) <{map = affine_map<(d0, d1) -> (d0, d1 + 3)>, valid = affine_map<() -> (4, 16)>}> : (!tile.tile<4x32xf32>) -> !tile.tile<4x16xf32>
    "tile.store"(%s, %o) <{map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (4, 16)>}> : (!tile.tile<4x16xf32>, tensor<4x16xf32>) -> ()
  }) : () -> ()
  func.func @main(%x: tensor<4x32xf32>) -> tensor<4x16xf32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<4x32xf32>) -> tensor<4x16xf32>
    func.return %o : tensor<4x16xf32>
  }
}
"""
    emit(planned(text.replace("d1 + 3", "d1 + 8")))
    with pytest.raises(UserError, match="in memory 'ub' that does not start at a multiple of 32 bytes"):
        emit(planned(text))
