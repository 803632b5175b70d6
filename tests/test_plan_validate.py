"""The independent validator catches every plan that is wrong by a byte."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_plan import NARROW, allocs, chain, offset, plan
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, matmul
from tilewright.dialects import tile
from tilewright.dialects.dtypes import byte_width
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import load_target, target_of
from tilewright.dialects.tile_types import BufferType
from tilewright.lowering.emit import EmitPass
from tilewright.lowering.liveness import lifetimes
from tilewright.lowering.plan import PlanPass
from tilewright.lowering.plan_names import ARGUMENTS, OFFSET
from tilewright.lowering.plan_validate import validate_plan
from tilewright.lowering.plan_validate_function import validate_function
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp

import tilewright

# With an alignment of 1 an overlap of one byte is a plan like any other.
TARGET = "davinci{memory.ub.align=1 memory.l1.align=1 memory.l0a.align=1 memory.l0b.align=1 memory.l0c.align=1}"


def kernel_of(module: ModuleOp) -> tile.KernelOp:
    return next(op for op in module.ops if isinstance(op, tile.KernelOp))


@pytest.mark.parametrize("text", [RAGGED_MAP, SOFTMAX_ROWS, NARROW, matmul(20, 24, 9, (16, 10, 8), "relu")])
def test_an_overlap_of_one_byte_is_caught(text: str) -> None:
    module, target = plan(text, TARGET), load_target(TARGET)
    block = kernel_of(module).body.block
    lives = lifetimes(block, target)
    mutated = 0
    for one in lives:
        for other in lives:
            together = one.start <= other.end and other.start <= one.end
            if one is other or one.memory != other.memory or not together or offset(one.alloc) == offset(other.alloc):
                continue
            kept = one.alloc.offset
            for at in (offset(other.alloc) + other.size - 1, offset(other.alloc) - one.size + 1):
                if at < 0:
                    continue
                one.alloc.offset = IntegerAttr(at, i64)
                with pytest.raises(UserError, match="stale offset"):
                    validate_plan(block, target)
                mutated += 1
            one.alloc.offset = kept
    validate_plan(block, target)
    assert mutated >= 2


def test_a_takeover_must_start_at_the_same_byte() -> None:
    module, target = plan(NARROW, TARGET), load_target(TARGET)
    block = kernel_of(module).body.block
    wide, narrow = allocs(module)[0], allocs(module)[-1]
    assert offset(wide) == offset(narrow)
    narrow.offset = IntegerAttr(offset(narrow) + 4, i64)
    with pytest.raises(UserError, match="stale offset"):
        validate_plan(block, target)


def test_a_takeover_must_not_widen() -> None:
    kinds = [op.res[0].type for op in allocs(plan(NARROW))]
    widths = [byte_width(kind.element_type) for kind in kinds if isinstance(kind, BufferType)]
    assert widths == [4, 4, 4, 2]


def test_what_comes_from_outside_a_loop_lives_through_it() -> None:
    module, target = plan(matmul(20, 24, 9, (16, 10, 8), "relu"), TARGET), load_target(TARGET)
    block = kernel_of(module).body.block
    inside = [life for life in lifetimes(block, target) if life.memory == "l1"]
    # The left operand dies before the right one is loaded only within an iteration, not across two.
    inside[1].alloc.offset = IntegerAttr(offset(inside[0].alloc), i64)
    with pytest.raises(UserError, match="while both are in use"):
        validate_plan(block, target)


def test_missing_offset_is_named() -> None:
    module, target = plan(RAGGED_MAP), load_target("davinci")
    allocs(module)[0].offset = None
    with pytest.raises(UserError, match="has no offset"):
        validate_plan(kernel_of(module).body.block, target)


def test_what_lies_among_arguments_and_constants_is_rejected() -> None:
    module = plan(chain(2))
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    validate_function(function, target_of(module))
    held = next(op for op in function.body.block.ops if isinstance(op, tile.AllocOp))
    before = held.offset
    held.offset = IntegerAttr(544, i64)  # the last 32 bytes of what the output may have
    with pytest.raises(UserError, match=r"an intermediate '%v0' at \[544, 824\) of 'gm' overlaps argument '%v1'"):
        validate_function(function, target_of(module))
    with pytest.raises(UserError, match="stale offset"):
        EmitPass().apply(Context(), module.clone())
    with pytest.raises(UserError, match="stale offset"):
        PlanPass(keep=True).apply(Context(), module.clone())
    held.offset = before
    for addresses in ([0, 256], [0, -32], [0, 1 << 60]):
        function.attributes[ARGUMENTS] = DenseArrayBase.from_list(i64, addresses)
        with pytest.raises(UserError, match="stale offset: argument"):
            validate_function(function, target_of(module))


CONSTANT = """
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = graph.constant {value = dense<[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]> : tensor<8xf32>} : tensor<8xf32>
  %y = graph.add %x, %c : tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}
"""


def test_a_constant_has_bytes_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "constant.mlir"
    file.write_text(CONSTANT)
    module = tilewright.compile(file, to="plan").snapshot(after="plan").module
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    constant = next(op for op in function.body.block.ops if OFFSET in op.attributes)
    validate_function(function, target_of(module))
    constant.attributes[OFFSET] = IntegerAttr(32, i64)
    with pytest.raises(UserError, match=r"a constant.* at \[32, 64\) of 'gm' overlaps argument '%x' at \[0, 128\)"):
        validate_function(function, target_of(module))
