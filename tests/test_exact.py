"""Branch and bound against brute force: every tile size, loop order, level, form and number of pinned tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product

import pytest
from online_cases import OneKernel
from tilewright.dialects.errors import UserError
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import Target, load_target
from tilewright.lowering.axes import Axis
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.group import Group
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.search import Search
from tilewright.lowering.tile_sizes import all_sizes, granularity

MATMUL = """
func.func @main(%x: tensor<48x32xf16>, %w: tensor<32x64xf16>) -> tensor<48x64xf16> {
  %p = graph.matmul %x, %w
  return %p : tensor<48x64xf16>
}"""
BIAS = """
func.func @main(%x: tensor<32x40xf16>, %w: tensor<40x32xf16>, %b: tensor<32xf16>) -> tensor<32x32xf16> {
  %p = graph.matmul %x, %w
  %y = graph.add %p, %b
  return %y : tensor<32x32xf16>
}"""
SOFTMAX = """
func.func @main(%x: tensor<5x12xf32>) -> tensor<5x12xf32> {
  %y = graph.softmax %x {axis = -1 : i64}
  return %y : tensor<5x12xf32>
}"""
OUTER = """
func.func @main(%x: tensor<7xf32>, %y: tensor<5xf32>, %z: tensor<7x5xf32>) -> tensor<5x7xf32> {
  %a = graph.mul %z, %y
  %b = graph.transpose %a {permutation = array<i64: 1, 0>}
  %c = graph.add %b, %x
  return %c : tensor<5x7xf32>
}"""
CASES = [MATMUL, BIAS, SOFTMAX, OUTER]


def every_schedule(group: Group, target: Target) -> Iterator[Schedule]:
    """All tile sizes that are multiples of the matrix engine's block; buffers once."""
    names, axes = group.names, group.axes
    blocks = [granularity(group, axis, target) for axis in axes]
    sizes = [sorted({*range(b, a.extent, b), a.extent}) for a, b in zip(axes, blocks, strict=True)]
    for tiles in product(*sizes):
        looped = [axis for axis, tile in zip(axes, tiles, strict=True) if tile < axis.extent]
        walked = [axis for axis in looped if axis in group.reduced]
        outer = [axis for axis in looped if axis not in group.reduced]
        for order in ((*a, *b) for a in permutations(outer) for b in permutations(walked)):
            for hold in product(*(subsets([a for a in looped if a in load.present]) for load in group.loads)):
                for online, steps in product((False, True) if walked else (False,), (1, 2)):
                    yield Schedule(
                        "".join(names.values()),
                        tuple(axis.extent for axis in axes),
                        tiles,
                        "".join(names[axis] for axis in order),
                        "online" if online else "multipass",
                        hold=tuple("".join(names[a] for a in axes if a in held) for held in hold),
                        slots=(1,) * len(hold),
                        row_steps=steps,
                    )


def subsets(axes: list[Axis]) -> list[tuple[Axis, ...]]:
    return [chosen for count in range(len(axes) + 1) for chosen in combinations(axes, count)]


def with_pins(schedule: Schedule) -> Iterator[Schedule]:
    """The schedule, and with every number of pinned tiles of one load."""
    yield schedule
    trips = max((-(-e // t) for e, t in zip(schedule.extents, schedule.tiles, strict=True)), default=1)
    loads = range(len(schedule.hold))
    yield from (schedule.with_(pins=tuple(n * (i == at) for i in loads)) for at in loads for n in range(1, trips))


def costs(group: Group, target: Target) -> dict[int, int]:
    """Bytes on chip that a schedule needs → the fewest off-chip bytes with as many."""
    found: dict[int, int] = {}
    for schedule in every_schedule(group, target):
        for each in with_pins(schedule):
            try:
                cost = estimate(nest := place_nest(group, each), Facts(nest.group, target))
            except UserError:
                if each is schedule:
                    break  # no order for these loops; with pins: as many are too many
                continue
            needed = cost.peaks["scratchpad"]
            found[needed] = min(cost.bytes, found.get(needed, cost.bytes))
    return found


@pytest.mark.parametrize("text", CASES, ids=["matmul", "bias", "softmax", "outer"])
def test_no_schedule_moves_fewer_bytes(text: str) -> None:
    group = OneKernel.of(text).group()
    known = costs(group, load_target("unified"))
    needs = sorted(known)
    for size in {needs[len(needs) * n // 7] for n in range(7)} | {needs[-1]}:
        search = Search(group, load_target(f"unified{{memory.scratchpad.bytes={size}}}"), "traffic", 400)
        found = search.run()
        assert found[0].estimate.bytes == min(moved for need, moved in known.items() if need <= size), size
        assert search.proved


@pytest.mark.parametrize(("extent", "block"), [(1, 1), (100, 16), (16, 16), (97, 1), (4096, 16)])
def test_the_smallest_size_of_every_number_of_tiles(extent: int, block: int) -> None:
    found = all_sizes(Axis(extent, 0), block)
    multiples = [*range(block, extent, block), extent]
    assert found == sorted(set(found)) and set(found) <= set(multiples)
    counts = {-(-extent // size): size for size in reversed(multiples)}
    assert {-(-extent // size): size for size in found} == counts
