"""The plan pass: offsets, takeovers, slots, the off-chip arena, keep, and what does not fit (semantics 4.4)."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects import tile
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import target_of
from tilewright.lowering.bufferize import BufferizePass
from tilewright.lowering.liveness import lifetimes
from tilewright.lowering.place import PlacePass
from tilewright.lowering.plan import PlanPass
from tilewright.lowering.plan_names import ARGUMENTS, DROPPED, MEMORY, WORKSPACE
from tilewright.lowering.plan_slots import drop_slots, iterations
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, DictionaryAttr, IntegerAttr, ModuleOp, i64
from xdsl.dialects.func import FuncOp

NARROW = SOFTMAX_ROWS.replace(
    '"tile.store"(%p, %o, %i)',
    '%h = "tile.map"(%p) <{fn = "cast"}> : (!tile.tile<2x16xf32>) -> !tile.tile<2x16xf16>\n"tile.store"(%h, %o, %i)',
).replace("(!tile.tile<2x16xf32>, tensor<5x11xf32>, index)", "(!tile.tile<2x16xf16>, tensor<5x11xf16>, index)")
NARROW = NARROW.replace("-> tensor<5x11xf32>", "-> tensor<5x11xf16>").replace(
    "%o: tensor<5x11xf32>", "%o: tensor<5x11xf16>"
)
NARROW = NARROW.replace("func.return %o : tensor<5x11xf32>", "func.return %o : tensor<5x11xf16>")


def plan(text: str, target: str = "davinci", keep: bool = False) -> ModuleOp:
    module = load(text, target)
    for step in (PlacePass(), BufferizePass(), PlanPass(keep)):
        step.apply(Context(), module)
        module.verify()
    return module


def allocs(module: ModuleOp) -> list[tile.AllocOp]:
    return [op for op in module.walk() if isinstance(op, tile.AllocOp)]


def offset(op: tile.AllocOp) -> int:
    assert op.offset is not None
    return op.offset.value.data


def memory_report(module: ModuleOp) -> dict[str, list[int]]:
    kernel = next(op for op in module.ops if isinstance(op, tile.KernelOp))
    report = cast(DictionaryAttr, kernel.attributes[MEMORY]).data
    return {name: [cast(IntegerAttr, v).value.data for v in cast(ArrayAttr, pair)] for name, pair in report.items()}


@pytest.mark.parametrize("text", [RAGGED_MAP, SOFTMAX_ROWS, NARROW, matmul(20, 24, 9, (16, 10, 8), "relu")])
@pytest.mark.parametrize("target", ["davinci", "unified"])
def test_plans_reach_the_lower_bound_and_keep_results(text: str, target: str) -> None:
    module = load(text, target)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    rng = np.random.default_rng(0)
    inputs = [rng.standard_normal(kind.get_shape()) for kind in func.function_type.inputs]  # pyright: ignore
    before = evaluate_tile(module, inputs)
    module = plan(text, target)
    for one, other in zip(before, evaluate_tile(module, inputs), strict=True):
        np.testing.assert_array_equal(one, other)
    assert all(peak == bound for peak, bound in memory_report(module).values())


def test_narrower_result_takes_over_its_dying_operand() -> None:
    wide, _, _, narrow = allocs(plan(NARROW))
    assert "f16" in str(narrow.res[0].type) and offset(narrow) == offset(wide)


def test_slots_multiply_the_size() -> None:
    first, second = allocs(plan(RAGGED_MAP))
    assert sorted((offset(first), offset(second))) == [0, 128]  # 64 bytes, twice


def test_function_has_addresses() -> None:
    func = next(op for op in plan(RAGGED_MAP).ops if isinstance(op, FuncOp))
    assert list(cast(DenseArrayBase, func.attributes[ARGUMENTS]).get_values()) == [0, 288]  # 280 bytes, up to 32
    assert cast(IntegerAttr, func.attributes[WORKSPACE]).value.data == 0


def chain(count: int) -> str:
    """A function that launches the ragged kernel `count` times in a row."""
    calls = ['%v0 = "tile.launch"(%x) <{callee = @k}> : (tensor<10x7xf32>) -> tensor<10x7xf32>']
    calls += [
        f'%v{i} = "tile.launch"(%v{i - 1}) <{{callee = @k}}> : (tensor<10x7xf32>) -> tensor<10x7xf32>'
        for i in range(1, count)
    ]
    head, _ = RAGGED_MAP.split("    %o = ", 1)
    return head + "\n".join(calls) + f"\n    func.return %v{count - 1} : tensor<10x7xf32>\n  }}\n}}"


def test_intermediates_share_an_arena() -> None:
    # A second load, that of a kernel that reads a tile again later, keeps results off the bytes of operands.
    again = '%u = "tile.load"' + chain(6).split('%t = "tile.load"')[1].split("\n")[0]
    text = chain(6).replace('"tile.store"(%r', again + '\n        "tile.store"(%r')
    module = plan(text)
    func = next(op for op in module.ops if isinstance(op, FuncOp))
    held = [offset(op) for op in func.body.block.ops if isinstance(op, tile.AllocOp)]
    assert len(held) == 5 and set(held) == {576, 864}  # two buffers in turn, behind input and output
    assert cast(IntegerAttr, func.attributes[WORKSPACE]).value.data == 576


def test_too_big_names_the_buffers_alive_at_the_peak() -> None:
    with pytest.raises(UserError, match=r"memory 'ub' has 32 bytes, 64 are needed at once by 1 buffer: ") as caught:
        plan(RAGGED_MAP, "davinci{memory.ub.bytes=32}")
    assert "4x4xf32 64" in caught.value.message and len(caught.value.notes) == 1
    with pytest.raises(UserError, match=r"memory 'ub' has 64 bytes, (\d+) are needed at once by 2 buffers: ") as caught:
        plan(SOFTMAX_ROWS, "davinci{memory.ub.bytes=64}")
    sizes = [int(note[0].split(" takes ")[1].split()[0]) for note in caught.value.notes]
    assert len(sizes) == 2 and f"{sum(sizes)} are needed at once" in caught.value.message


@pytest.mark.parametrize(("room", "slots", "lost"), [(256, [2, 2], 0), (192, [1, 2], 1), (128, [1, 1], 2)])
def test_slots_are_dropped_where_nothing_fits_otherwise(room: int, slots: list[int], lost: int) -> None:
    module = plan(RAGGED_MAP, f"davinci{{memory.ub.bytes={room}}}")
    found = [1 if op.slots is None else op.slots.value.data for op in allocs(module)]
    assert sorted(found) == slots
    kernel = next(op for op in module.ops if isinstance(op, tile.KernelOp))
    assert (DROPPED in kernel.attributes) == (lost > 0)
    if lost:
        assert str(lost) in str(kernel.attributes[DROPPED])
    inputs = [np.random.default_rng(0).standard_normal((10, 7))]
    (one,), (other,) = evaluate_tile(module, inputs), evaluate_tile(load(RAGGED_MAP, "davinci"), inputs)
    np.testing.assert_array_equal(one, other)


def test_a_slot_is_dropped_where_the_fewest_bytes_run_ahead() -> None:
    module = load(matmul(20, 24, 9, (16, 10, 8), "relu"), "davinci")
    for step in (PlacePass(), BufferizePass()):
        step.apply(Context(), module)
    for op in allocs(module):
        op.slots = IntegerAttr(2, i64)
    kernel = next(op for op in module.ops if isinstance(op, tile.KernelOp))
    lives = [life for life in lifetimes(kernel.body.block, target_of(module)) if life.memory == "l1"]
    gains = {life.alloc: life.size // 2 * iterations(life.alloc) for life in lives}
    assert len(set(gains.values())) > 1
    fitting = sum(life.size for life in lives) - 1
    assert drop_slots(lives, fitting) == 1
    assert [life.alloc for life in lives if life.alloc.slots is None] == [min(gains, key=lambda op: gains[op])]


def edited(change: int) -> ModuleOp:
    module = plan(RAGGED_MAP)
    first = allocs(module)[0]
    first.offset = IntegerAttr(offset(first) + change, i64)
    return module


def test_offsets_are_recomputed_unless_kept() -> None:
    module = edited(4096)
    PlanPass().apply(Context(), module)
    assert sorted(offset(op) for op in allocs(module)) == [0, 128]
    module = edited(4096)
    PlanPass(keep=True).apply(Context(), module)
    assert offset(allocs(module)[0]) >= 4096
    once = str(module)
    PlanPass(keep=True).apply(Context(), module)
    assert str(module) == once


def test_kept_offsets_that_are_stale_are_rejected() -> None:
    module = plan(RAGGED_MAP)
    first, second = allocs(module)
    first.offset = second.offset
    with pytest.raises(UserError, match=r"stale offset: buffer .* overlaps buffer .* while both are in use"):
        PlanPass(keep=True).apply(Context(), module)
    first.offset = IntegerAttr(16, i64)
    with pytest.raises(UserError, match=r"stale offset: .* not aligned to 32"):
        PlanPass(keep=True).apply(Context(), module)
    first.offset = IntegerAttr(248 * 1024 - 32, i64)
    with pytest.raises(UserError, match="has 253952"):
        PlanPass(keep=True).apply(Context(), module)


def test_kept_offsets_leave_room_for_new_buffers() -> None:
    module = plan(SOFTMAX_ROWS)
    first, second, third = allocs(module)
    second.offset = None
    first.offset = IntegerAttr(512, i64)
    PlanPass(keep=True).apply(Context(), module)
    assert offset(first) == 512 and offset(second) != offset(third)
