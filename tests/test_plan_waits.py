# ruff: noqa: E501 (lines of IR)
"""Reused bytes that make engines wait: what is counted, against the events that `sync` needs, and what is chosen."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_kernels import RAGGED_MAP, SOFTMAX_ROWS, load, matmul
from tilewright.dialects import hardware, tile
from tilewright.dialects.target import target_of
from tilewright.lowering.bufferize import BufferizePass
from tilewright.lowering.emit import EmitPass
from tilewright.lowering.liveness import Lifetime, lifetimes
from tilewright.lowering.place import PlacePass
from tilewright.lowering.plan import PlanPass
from tilewright.lowering.plan_greedy import place_greedily
from tilewright.lowering.plan_interval import Interval, Placement
from tilewright.lowering.plan_waits import Engines, with_fewer_waits
from tilewright.lowering.sync import SyncPass
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation

from tilewright.plan_csv import Problem, check_offsets

PROGRAMS = {
    "ragged": RAGGED_MAP,
    "softmax": SOFTMAX_ROWS,
    "matmul": matmul(20, 24, 9, (16, 10, 8), "relu"),
}


def buffers(text: str, target: str) -> tuple[ModuleOp, tile.KernelOp, list[Lifetime]]:
    """A program in buffer form, each buffer in bytes of its own."""
    module = load(text, target)
    for step in (PlacePass(), BufferizePass(), PlanPass()):
        step.apply(Context(), module)
    kernel = next(op for op in module.ops if isinstance(op, tile.KernelOp))
    lives = lifetimes(kernel.body.block, target_of(module))
    for number, life in enumerate(lives):
        life.alloc.offset = IntegerAttr(number * 8192, i64)
    return module, kernel, lives


def events(module: ModuleOp) -> int:
    """How many waits `sync` needs for the offsets as they are."""
    copy = module.clone()
    for step in (EmitPass(), SyncPass()):
        step.apply(Context(), copy)
    return sum(isinstance(op, hardware.WaitOp) for op in copy.walk())


@pytest.mark.parametrize("target", ["davinci", "unified"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_what_costs_nothing_adds_no_event(name: str, target: str) -> None:
    module, kernel, lives = buffers(PROGRAMS[name], target)
    engines = Engines(kernel.body.block, target_of(module))
    apart = events(module)
    for one, other in combinations(lives, 2):
        if one.memory != other.memory or (one.start <= other.end and other.start <= one.end):
            continue
        before = other.alloc.offset
        other.alloc.offset = one.alloc.offset
        if not engines.waits(one.alloc, other.alloc):
            assert events(module) == apart
        other.alloc.offset = before


LOADED = """
module attributes {tilewright.target = "unified"} {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>}> ({
  ^bb0(%x: tensor<4x16xf32>, %y: tensor<4x16xf32>, %o: tensor<4x16xf32>):
    %a = "tile.load"(%x) <{map = affine_map<(p, q) -> (p, q)>, valid = affine_map<() -> (4, 16)>}> : (tensor<4x16xf32>) -> !tile.tile<4x16xf32>
    %b = "tile.reduce"(%a) <{monoid = "sum", axes = array<i64: 1>}> : (!tile.tile<4x16xf32>) -> !tile.tile<4x1xf32>
    %c = "tile.load"(%y) <{map = affine_map<(p, q) -> (p, q)>, valid = affine_map<() -> (4, 16)>}> : (tensor<4x16xf32>) -> !tile.tile<4x16xf32>
    %d = "tile.reduce"(%c) <{monoid = "sum", axes = array<i64: 1>}> : (!tile.tile<4x16xf32>) -> !tile.tile<4x1xf32>
    %e = "tile.map"(%b, %d) <{fn = "add"}> : (!tile.tile<4x1xf32>, !tile.tile<4x1xf32>) -> !tile.tile<4x1xf32>
    "tile.store"(%e, %o) <{map = affine_map<(p, q) -> (p, 0)>, valid = affine_map<() -> (4, 1)>}> : (!tile.tile<4x1xf32>, tensor<4x16xf32>) -> ()
  }) : () -> ()
}
"""


def made_by(op: Operation) -> tile.AllocOp:
    """The buffer that an op writes, which is all of one."""
    made = op.operands[-1].owner
    while isinstance(made, tile.SliceOp):
        made = made.tiles[0].owner
    assert isinstance(made, tile.AllocOp)
    return made


def test_a_load_waits_for_the_last_reader_and_arithmetic_for_nobody() -> None:
    module, kernel, _ = buffers(LOADED, "unified")
    first, second = (made_by(op) for op in kernel.walk() if isinstance(op, tile.LoadOp))
    *_, other = (made_by(op) for op in kernel.walk() if isinstance(op, tile.ReduceOp))
    engines = Engines(kernel.body.block, target_of(module))
    assert engines.waits(first, second) == 1  # its reader is the vector engine, which the second load does not know
    assert engines.waits(first, other) == 0  # one engine read it and writes that
    assert events(module) >= 1
    apart = events(module)
    second.offset = first.offset
    assert events(module) == apart + 1


def buffer(start: int, length: int, size: int) -> Interval:
    return Interval(start, start + length, 32 * size, None, 32)


intervals = st.builds(buffer, st.integers(0, 12), st.integers(1, 5), st.integers(1, 4))


@given(st.lists(intervals, min_size=1, max_size=12), st.integers(0, 1 << 30))
@settings(deadline=None, max_examples=80)
def test_the_peak_stays_and_the_cost_never_grows(given_: list[Interval], seed: int) -> None:
    rng = random.Random(seed)
    draw = {pair: rng.randint(0, 3) for pair in combinations(range(len(given_)), 2)}
    found = place_greedily(given_)
    better = with_fewer_waits(given_, found, lambda i, j: draw[min(i, j), max(i, j)])
    check_offsets(Problem(tuple(map(str, range(len(given_)))), tuple(given_)), better.offsets)
    assert all(at + one.size <= found.peak for at, one in zip(better.offsets, given_, strict=True))
    assert total(given_, better, draw) <= total(given_, found, draw)


def total(given_: list[Interval], plan: Placement, cost: dict[tuple[int, int], int]) -> int:
    at = plan.offsets
    return sum(
        price for (i, j), price in cost.items() if at[i] < at[j] + given_[j].size and at[j] < at[i] + given_[i].size
    )


def test_the_cheapest_of_all_plans_of_that_peak() -> None:
    """Four buffers of one size, two at a time: every pairing is tried beside what is chosen."""
    given_ = [Interval(0, 1, 32), Interval(0, 1, 32), Interval(1, 2, 32), Interval(1, 2, 32)]
    cost = {(0, 2): 3, (0, 3): 1, (1, 2): 1, (1, 3): 4, (0, 1): 0, (2, 3): 0}
    start = Placement((0, 32, 0, 64), 96, 64)
    found = with_fewer_waits(given_, start, lambda i, j: cost[min(i, j), max(i, j)])
    plans = [Placement(at, 96, 64) for at in product((0, 32, 64), repeat=4) if at[0] != at[1] and at[2] != at[3]]
    assert total(given_, found, cost) == min(total(given_, plan, cost) for plan in plans)


def test_pinned_buffers_stay() -> None:
    given_ = [Interval(0, 1, 32, 0), Interval(1, 2, 32, 0), Interval(0, 2, 32)]
    start = Placement((0, 0, 32), 96, 64)
    assert with_fewer_waits(given_, start, lambda i, j: 1) == start
