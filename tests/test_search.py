"""The search of schedules: what it must find in small memories, and how pieces of matrix operands are cut."""

from __future__ import annotations

from itertools import product

import pytest
from example_programs import EXAMPLES, TARGETS, Example
from lowering_cases import MATMUL, fused_in, group_of
from tilewright.dialects import hardware
from tilewright.dialects.engine_limits import product_sizes
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import load_target, target_of
from tilewright.lowering.axes import Linear, NotFusable
from tilewright.lowering.costs import Costs
from tilewright.lowering.group import Group
from tilewright.lowering.measure import measure
from tilewright.lowering.roles import Roles
from tilewright.lowering.search import Objective, search
from tilewright.lowering.tile_sizes import inner_tiles
from xdsl.context import Context

import tilewright

TWO_PRODUCTS = """
func.func @main(%x: tensor<8x16x2xf32>, %u: tensor<8x2x2xf32>, %v: tensor<8x2x2xf32>) -> tensor<8x16x2xf32> {
  %p = graph.contract %x, %u {spec = "bmk,bkn->bmn"}
  %y = graph.contract %p, %v {spec = "bmk,bkn->bmn"}
  func.return %y : tensor<8x16x2xf32>
}
"""
PADDED_WINDOW = """
func.func @main(%x: tensor<5xf32>) -> tensor<4x2xf32> {
  %p = graph.view %x {maps = [affine_map<(d0) -> (d0 - 1)>], fill = 0.5 : f32,
      lower = [array<i64: 1>], upper = [array<i64: 6>]} : tensor<8xf32>
  %w = graph.view %p {maps = [affine_map<(d0, d1) -> (d0 * 2 + d1)>]} : tensor<4x2xf32>
  %y = graph.map %w {fn = "exp"}
  func.return %y : tensor<4x2xf32>
}
"""


def test_slices_at_a_counter_are_no_renaming() -> None:
    """Rows of a tile at a loop's counter, in tiles of a wide convolution."""
    text = """
func.func @main(%x: tensor<1x64x56x56xf16>, %w: tensor<64x64x3x3xf16>, %b: tensor<64xf16>) -> tensor<1x64x56x56xf16> {
  %c = graph.conv %x, %w, %b {pads = [1, 1, 1, 1]}
  %y = graph.relu %c
  return %y : tensor<1x64x56x56xf16>
}"""
    program = tilewright.compile(text, target="davinci", objective="traffic")
    assert sum(k.read_bytes + k.write_bytes for k in program.analyze().kernels) == 876_672


def test_below_the_matrix_block_where_nothing_coarser_fits() -> None:
    """8 × 16 rows of 8 bytes, padded to 32, twice: too much for 8 KiB, so an axis is tiled below the block of 16."""
    target = load_target("unified{memory.scratchpad.bytes=8KiB}")
    found = search(group_of(TWO_PRODUCTS), target, "traffic", 12)
    assert found and all(choice.estimate.peaks["scratchpad"] <= 8192 for choice in found)


PRODUCT = """
func.func @main(%x: tensor<2x96x80xf16>, %w: tensor<80x112xf16>, %b: tensor<112xf16>) -> tensor<2x96x112xf16> {
  %r = graph.matmul %x, %w : tensor<2x96x112xf16>
  %y = graph.add %r, %b : tensor<2x96x112xf16>
  func.return %y : tensor<2x96x112xf16>
}
"""


@pytest.mark.parametrize("most", [(32, 16, 48), (16, 80, 16)])
@pytest.mark.parametrize("target", ["davinci", "unified"])
def test_one_instruction_takes_every_piece(target: str, most: tuple[int, int, int]) -> None:
    limit = f"engine.matrix.types.f16.max_shape={list(most)}".replace(" ", "")
    program = tilewright.compile(PRODUCT, target=f"{target}{{{limit}}}", objective="traffic")
    products = [op for op in program.module.walk() if isinstance(op, hardware.MatmulOp)]
    assert products
    for op in products:
        extents: dict[str, int] = {}
        for letters, view in zip(op.letters(), op.views, strict=True):
            extents.update(zip(letters, op.shape(view), strict=True))
        sizes = product_sizes(op.letters(), extents)
        assert all(size <= limit for size, limit in zip(sizes, most, strict=True)), sizes
    assert tilewright.validate(program, seed=0)


def test_nothing_fits_in_next_to_nothing() -> None:
    assert search(group_of(TWO_PRODUCTS), load_target("unified{memory.scratchpad.bytes=64}"), "traffic", 12) == []


@pytest.mark.parametrize("order", ["traffic", "time"])
def test_the_best_come_first(order: str) -> None:
    found = search(group_of(MATMUL), load_target("davinci"), order, 60)  # type: ignore[arg-type]
    keys = [c.estimate.bytes if order == "traffic" else c.estimate.cycles for c in found]
    assert keys == sorted(keys) and len({(c.schedule, c.skewed) for c in found}) == len(found)


def test_pieces_are_cut_at_the_blocks_of_every_matrix_memory() -> None:
    target = load_target("davinci{memory.l0a.bytes=2KiB memory.l0b.bytes=2KiB}")
    group = group_of(MATMUL)
    inner = inner_tiles(group, {axis: axis.extent for axis in group.axes}, target, Roles.of(target))
    assert any(inner[axis] < axis.extent for axis in group.axes)
    for axis in group.axes:  # 16 f16 or 8 f32 columns, 16 rows
        assert inner[axis] == axis.extent or inner[axis] % 16 == 0


def padded() -> Group:
    return group_of(PADDED_WINDOW)


def test_a_padded_split_dimension_is_read_as_one_stretch() -> None:
    (load,) = padded().loads
    (window,) = load.windows
    assert window is not None and [window.base.extent, *(tap.extent for tap in window.taps)] == [4, 2]


def test_a_condition_covers_a_whole_window_or_is_refused() -> None:
    (load,) = padded().loads
    (index,) = load.index
    factor, rest = Linear({axis: 3 * c for axis, c in index.terms.items()}, 7).multiple_of(index)
    assert (factor, dict(rest.terms), rest.offset) == (3, {}, 7)
    half = next(iter(index.terms))
    with pytest.raises(NotFusable, match="a part of a windowed dimension"):
        Linear({half: index.terms[half]}).multiple_of(index)


LONG = {("split_heads_attention", "unified", "traffic")}
"""Two minutes, for what other cases say too; and so does another attention in whole tiles."""
MEASURED = [
    (example, target, objective)
    for example, target, objective in product(EXAMPLES, TARGETS, ("time", "traffic"))
    if (str(example), target, objective) not in LONG and str(example) != "attention_any-128"
]


@pytest.mark.parametrize(("example", "target", "objective"), MEASURED, ids=lambda value: str(value))
def test_estimated_bytes_are_those_that_move(example: Example, target: str, objective: Objective) -> None:
    """I6 from the schedule alone: the nest's bytes, before anything is lowered, against the machine's count."""
    module = tilewright.compile(example.load(), target=target, objective=objective, to="fuse").module
    compared = 0
    for fused in fused_in(module):
        costs = Costs(target_of(module), objective, 100)
        for choice in costs.choices(fused.body.block)[:8]:
            try:
                counted = measure(Context(), fused, choice.schedule, costs.target)
            except UserError:
                continue  # does not fit after all
            assert choice.estimate.bytes == counted.bytes, choice.schedule
            compared += 1
    assert compared
