"""Stages that run ahead of one another: the same results for any trip count and skew, and what is rejected."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from machine_programs import lines, local, loop, parsed, program, view
from random_programs import Case, inputs_of, programs
from tilewright.dialects import hardware, tile
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import set_target, target_of
from tilewright.ir.source import load_module, print_module
from tilewright.lowering import trials
from tilewright.lowering.ahead import AHEAD, crossing
from tilewright.lowering.costs import Costs
from tilewright.lowering.estimate import Estimate
from tilewright.lowering.fuse import FusePass
from tilewright.lowering.measure import LOWERING, Measured, measure, skews
from tilewright.lowering.outline import kernel_alone
from tilewright.lowering.pipeline import parse_pipeline, remaining, run_pipeline
from tilewright.lowering.plan_validate import validate_plan
from tilewright.lowering.schedule import SchedulePass
from tilewright.lowering.search import Choice
from tilewright.lowering.stages import StagesPass, proposals, staged_loops
from tilewright.lowering.state import Skewed
from tilewright.lowering.trials import Trials
from tilewright.runtime.machine import check_order, run
from xdsl.context import Context
from xdsl.dialects.builtin import AffineMapAttr, IntegerAttr, ModuleOp, i64
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineMap

TARGETS = ("davinci", "unified")
CHECKS = list(HealthCheck)
ROWS = 16


def attention(rows: int, online: bool = False) -> str:
    """Scores, softmax and the second product; columns are the long axis."""
    columns = 48 if online else 32
    return f"""
func.func @main(%q: tensor<{rows}x16xf16>, %k: tensor<{columns}x16xf16>, %v: tensor<{columns}x16xf16>)
    -> tensor<{rows}x16xf16> {{
  %s = graph.matmul %q, %k {{transpose_b}}
  %p = graph.softmax %s {{axis = -1 : i64}}
  %o = graph.matmul %p, %v
  func.return %o : tensor<{rows}x16xf16>
}}"""


@cache
def fused(text: str, target: str) -> FusedOp:
    module, _ = load_module(text)
    set_target(module, target)
    run_pipeline(module, parse_pipeline("canonicalize,decompose,fuse"))
    (found,) = (op for op in module.walk() if isinstance(op, FusedOp))
    return found


def schedule(rows: int, tile_rows: int = ROWS, skew: tuple[int, ...] = ()) -> Schedule:
    """Axes a (rows), b (columns of the result), c (the long axis), d (summed in the scores)."""
    return Schedule(
        axes="abcd",
        extents=(rows, 16, 32, 16),
        tiles=(tile_rows, 16, 32, 16),
        order="a" if tile_rows < rows else "",
        strategy="resident",
        hold=("a" if tile_rows < rows else "", "", ""),
        slots=(1, 1, 1),
        skew=skew,
    )


def lowered(group: FusedOp, chosen: Schedule, until: str = "sync") -> ModuleOp:
    module = kernel_alone(group)
    for op in module.walk():
        if isinstance(op, FusedOp):
            op.schedule = chosen.to_attr()
    set_target(module, target_of(group))
    names = [step.name for step in LOWERING]
    run_pipeline(module, LOWERING[: names.index(until) + 1])
    return module


def inputs(group: FusedOp, seed: int = 0) -> list[np.ndarray]:
    return inputs_of(kernel_alone(group), seed)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("trips", [2, 3, 5])
def test_any_trip_count_and_skew_gives_the_same_bits(trips: int, target: str) -> None:
    rows = trips * ROWS - 7  # the last tile is ragged
    group = fused(attention(rows), target)
    plain = lowered(group, schedule(rows))
    arrays = inputs(group)
    wanted = run(plain, arrays).outputs[0]
    for skew in ((1, 0, 0), (1, 1, 0), (2, 1, 0), (3, 1, 0), (3, 3, 1), (1, 1, 1)):
        module = lowered(group, schedule(rows, skew=skew))
        check_order(module)
        np.testing.assert_array_equal(run(module, arrays).outputs[0], wanted)


def test_a_loop_that_is_as_short_as_the_skew_becomes_its_steps() -> None:
    rows = 2 * ROWS
    module = lowered(fused(attention(rows), "unified"), schedule(rows, skew=(2, 1, 0)))
    assert not any(isinstance(op, hardware.ForOp) for op in module.walk())
    products = [op for op in module.walk() if isinstance(op, hardware.MatmulOp)]
    assert len(products) == 2 * 2


def test_prologue_steady_state_and_epilogue() -> None:
    rows = 5 * ROWS
    module = lowered(fused(attention(rows), "unified"), schedule(rows, skew=(2, 1, 0)))
    (loop,) = (op for op in module.walk() if isinstance(op, hardware.ForOp))
    assert loop.upper.data.eval([], []) == (3,)
    kernel = loop.parent_op()
    assert isinstance(kernel, hardware.KernelOp)
    order = list(kernel.body.block.ops)
    before, after = order[: order.index(loop)], order[order.index(loop) + 1 :]
    assert [sum(isinstance(op, hardware.MatmulOp) for op in part) for part in (before, after)] == [2, 2]
    assert not any(AHEAD in op.attributes for op in module.walk())


@pytest.mark.parametrize("target", TARGETS)
def test_stages_that_run_ahead_take_less_time(target: str) -> None:
    rows = 8 * ROWS
    group = fused(attention(rows), target)
    plain = measure(Context(), group, schedule(rows), target_of(group))
    ahead = measure(Context(), group, schedule(rows, skew=(2, 1, 0)), target_of(group))
    assert ahead.bytes == plain.bytes and ahead.cycles < plain.cycles


@pytest.mark.parametrize(
    ("skew", "message"),
    [
        ((1,), "for each of 3 stages, got 1 \\(loop 'a': matrix, vector, matrix\\)"),
        ((0, 1, 0), "runs 1 iterations ahead and uses what is made only 0 ahead"),
        ((-1, 0, 0), "skew is how many iterations"),
    ],
)
def test_skews_that_do_not_fit_are_rejected(skew: tuple[int, ...], message: str) -> None:
    group = fused(attention(3 * ROWS), "unified")
    with pytest.raises(UserError, match=message) as found:
        lowered(group, schedule(3 * ROWS, skew=skew))
    assert found.value.location is not None


def test_a_kernel_without_stages_takes_no_skew() -> None:
    group = fused(attention(ROWS), "unified")
    with pytest.raises(UserError, match="for each of 0 stages, got 3 \\(no loop has several\\)"):
        lowered(group, schedule(ROWS, skew=(2, 1, 0)))


def test_dumps_of_every_pass_go_on() -> None:
    """The marks are in the text: a dump continues to the same program."""
    group = fused(attention(4 * ROWS), "davinci")
    chosen = schedule(4 * ROWS, skew=(2, 1, 0))
    wanted = print_module(lowered(group, chosen))
    for until in ("bufferize", "stages", "plan", "emit", "skew"):
        module, _ = load_module(print_module(lowered(group, chosen, until)))
        run_pipeline(module, parse_pipeline(",".join(remaining(module))))
        assert print_module(module) == wanted, until


def test_the_stages_of_the_online_form() -> None:
    """What the softmax carries is all in the first vector stage, what the product adds to in the second."""
    group = fused(attention(40, online=True), "davinci")
    chosen = Schedule("abcd", (40, 16, 48, 16), (16, 16, 16, 16), "ac", "online", (), ("a", "c", "c"), (1, 1, 1))
    module = lowered(group, chosen, "bufferize")
    kernel = next(op for op in module.walk() if isinstance(op, tile.KernelOp))
    assert (2, 1, 1, 0) in proposals(kernel)
    assert [loop.kinds for loop in staged_loops(kernel)] == [("matrix", "vector", "matrix", "vector")]
    plain = lowered(group, chosen)
    arrays = inputs(group)
    for skew in proposals(kernel):
        found = run(lowered(group, chosen.with_(skew=skew)), arrays).outputs[0]
        np.testing.assert_array_equal(found, run(plain, arrays).outputs[0])


# --- mutations --------------------------------------------------------------------------------------------------------


def handed_on(module: ModuleOp) -> list[tile.AllocOp]:
    return [op for op in module.walk() if isinstance(op, tile.AllocOp) and crossing(op)]


def fewer_slots(alloc: tile.AllocOp) -> None:
    assert alloc.slots is not None
    alloc.slots = IntegerAttr(alloc.slots.value.data - 1, i64)


@pytest.mark.parametrize("known", [True, False])
def test_a_slot_too_few_is_seen_in_the_plan(known: bool) -> None:
    """Also where it is not known how many iterations a loop has."""
    module = lowered(fused(attention(5 * ROWS), "davinci"), schedule(5 * ROWS, skew=(3, 1, 0)), "plan")
    kernel = next(op for op in module.walk() if isinstance(op, tile.KernelOp))
    found = handed_on(module)
    if not known:
        (loop,) = (op for op in kernel.walk() if isinstance(op, tile.ForOp))
        end = AffineBinaryOpExpr(AffineBinaryOpKind.Add, AffineConstantExpr(2), AffineConstantExpr(3))
        loop.upper = AffineMapAttr(AffineMap(0, 0, (end,)))
    assert found
    for alloc in found:
        before = alloc.slots
        fewer_slots(alloc)
        with pytest.raises(UserError, match="more iterations hold something at a time"):
            validate_plan(kernel.body.block, target_of(module))
        alloc.slots = before
    validate_plan(kernel.body.block, target_of(module))


def test_a_slot_too_few_is_seen_in_the_instructions() -> None:
    chosen = schedule(5 * ROWS, skew=(2, 1, 0))
    group = fused(attention(5 * ROWS), "unified")
    count = len([op for op in lowered(group, chosen, "emit").walk() if isinstance(op, hardware.BufferOp) and op.slots])
    assert count
    for number in range(count):
        module = lowered(group, chosen, "emit")
        buffer = [op for op in module.walk() if isinstance(op, hardware.BufferOp) and op.slots][number]
        buffer.slots = None
        with pytest.raises(UserError, match="has to hold 2 iterations at a time"):
            run_pipeline(module, parse_pipeline("skew"))


def test_a_mark_too_far_ahead_is_seen() -> None:
    for distance in (2, 3):
        module = lowered(fused(attention(5 * ROWS), "unified"), schedule(5 * ROWS, skew=(2, 1, 0)), "emit")
        first = next(op for op in module.walk() if isinstance(op, hardware.VectorOp))
        for op in (first, *(value.owner for value in first.views)):
            op.attributes[AHEAD] = IntegerAttr(distance, i64)
        with pytest.raises(UserError, match=f"runs {distance} iterations ahead and uses what is made only"):
            run_pipeline(module, parse_pipeline("skew"))


def test_a_view_that_is_not_as_far_ahead_as_its_instruction_is_seen() -> None:
    """The instruction would do one iteration on the bytes of another."""
    module = lowered(fused(attention(5 * ROWS), "unified"), schedule(5 * ROWS, skew=(2, 1, 0)), "emit")
    first = next(op for op in module.walk() if isinstance(op, hardware.MatmulOp))
    del first.views[0].owner.attributes[AHEAD]
    with pytest.raises(UserError, match="runs 2 iterations ahead, its view 0"):
        run_pipeline(module, parse_pipeline("skew"))


def test_a_remainder_of_another_counter_gives_no_iteration_a_slot_of_its_own() -> None:
    """A place that moves on with the counter is changed by the next iteration, whatever turns another counter takes."""
    rows = (1, 64)
    body = lines(
        local("a", 0, rows, "f32", "ub", slots=4),
        loop("o", 2, loop("i", 6, lines(*exchange("(d0 mod 2) * 512 + d1 * 0")))),
    )
    with pytest.raises(UserError, match="that one iteration leaves for the next is used 1 and 0 iterations ahead"):
        run_pipeline(parsed(program(body, [((12, 64), "f32")], [((12, 64), "f32")])), parse_pipeline("skew"))
    body = body.replace("(d0 mod 2) * 512 + d1 * 0", "((d0 * 6 + d1) mod 4) * 256")
    run_pipeline(parsed(program(body, [((12, 64), "f32")], [((12, 64), "f32")])), parse_pipeline("skew"))


def exchange(slot: str, ahead: str = ", tilewright.ahead = 1 : i64}") -> list[str]:
    """Rows of x0 to rows of y0 by way of %a at `slot`; the load runs ahead."""
    at = {"memory": "ub", "shape": (1, 64), "element": "f32", "counters": ("o", "i")}
    far = {**at, "memory": "gm"}
    loaded = [view("s", "x0", offset="d0 * 1536 + d1 * 256", **far), view("l", "a", offset=slot, **at)]
    move = 'hardware.dma %s, %l {engine = "mte2", fresh}'
    return [
        *(re.sub(r"\} :", ahead + " :", line) for line in loaded),
        move.replace("}", ahead),
        view("r", "a", offset=slot, **at),
        view("t", "y0", offset="d0 * 1536 + d1 * 256", **far),
        'hardware.dma %r, %t {engine = "mte3"}',
    ]


@pytest.mark.parametrize("outer", [1, 2])
def test_loops_in_one_another_may_both_run_ahead(outer: int) -> None:
    """An inner loop with stages is one op of the outer loop, which runs ahead of what follows it."""
    inner = loop("i", 6, lines(*exchange("((d0 * 6 + d1) mod 4) * 256")))
    mark = f"{{tilewright.ahead = {outer} : i64}} {{\n"  # behind "to 6 "
    row = {"shape": (1, 64), "element": "f32", "counters": ("o",)}
    other = [
        view("s", "x0", offset="d0 * 1536", memory="gm", **row),
        view("l", "b", offset="0", memory="ub", **row),
        'hardware.dma %s, %l {engine = "mte2", fresh}',
        view("r", "b", offset="0", memory="ub", **row),
        view("t", "y1", offset="d0 * 256", memory="gm", **row),
        'hardware.dma %r, %t {engine = "mte3"}',
    ]
    body = lines(
        local("a", 0, (1, 64), "f32", "ub", slots=4),
        local("b", 1024, (1, 64), "f32", "ub"),
        loop("o", 4, lines(inner.replace("{\n", mark, 1), *other)),
    )
    text = program(body, [((24, 64), "f32")], [((24, 64), "f32"), ((4, 64), "f32")])
    module = parsed(text)
    run_pipeline(module, parse_pipeline("skew,sync"))
    assert AHEAD not in str(module)
    array = np.random.default_rng(0).standard_normal((24, 64)).astype(np.float32)
    found = run(module, [array]).outputs
    np.testing.assert_array_equal(found[0], array)
    np.testing.assert_array_equal(found[1], array[::6])


# --- trials -----------------------------------------------------------------------------------------------------------


def test_the_pattern_that_is_best_is_tried_though_two_patterns_are_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a loop with few stages several patterns give one skew; the best of another loop may be the last of them."""
    one, other, third = (schedule(2 * ROWS, skew=(n, 0, 0)) for n in (2, 1, 3))
    proposed = {"first": [one, other, third], "second": [one, other, one]}
    cycles = {one: 30, other: 20, third: 10}
    group = fused(attention(2 * ROWS), "unified")
    costs = Costs(target_of(group), "bytes", 8)
    found = Trials(Context(), group, costs, target_of(group))
    monkeypatch.setattr(trials, "measure", lambda _c, _g, chosen, _t: Measured(100, cycles[chosen]))
    for name in proposed:
        monkeypatch.setattr(trials, "skews", lambda *_, name=name: proposed[name])
        found.measure(Choice(one, Estimate(), skewed=1))
    assert found.patterns == {(one.strategy, 1, True): 2} and found.fitting == 2
    assert [chosen for _, chosen in found.found] == [one, other, third, one]


@pytest.mark.parametrize(("cycles", "measured"), [((100, 149), {1, 2}), ((100, 151), {1})])
def test_kinds_far_behind_by_estimate_are_not_measured(
    cycles: tuple[int, int], measured: set[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = fused(attention(2 * ROWS), "unified")
    found = Trials(Context(), group, Costs(target_of(group), "time", 8), target_of(group))
    monkeypatch.setattr(trials, "measure", lambda *_: Measured(100, 100))
    monkeypatch.setattr(trials, "skews", lambda _c, _g, choice, _t: [choice.schedule])
    skews: tuple[Skewed, ...] = (1, 2)
    choices = [
        Choice(schedule(2 * ROWS, skew=(n, 0, 0)), Estimate(cycles=c), n) for n, c in zip(skews, cycles, strict=True)
    ]
    SchedulePass().compare(found, choices)
    assert {choice.skewed for choice in found.tried} == measured


# --- random programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ("davinci", "unified{memory.scratchpad.bytes=16KiB}"))
@given(case=programs(), seed=st.integers(0, 9))
@settings(max_examples=12, deadline=None, suppress_health_check=CHECKS)
def test_random_programs_with_every_skew_worth_trying(target: str, case: Case, seed: int) -> None:
    module = case.module.clone()
    set_target(module, target)
    run_pipeline(module, [FusePass(effort=12), SchedulePass(effort=12, measured=1)])
    for group in [op for op in module.walk() if isinstance(op, FusedOp)]:
        assert group.schedule is not None
        chosen = Schedule.from_attr(group.schedule).with_(skew=())
        plain = lowered(group, chosen)
        arrays = inputs(group, seed)
        wanted = run(plain, arrays).outputs
        choice = Choice(chosen, None, skewed=1)  # type: ignore[arg-type]
        for tried in skews(Context(), group, choice, target_of(module)):
            try:
                changed = lowered(group, tried)
            except UserError as error:
                assert "needed at once" in error.message or "events" in error.message
                continue
            check_order(changed)
            for found, first in zip(run(changed, arrays).outputs, wanted, strict=True):
                np.testing.assert_array_equal(found, first)


def test_stages_is_a_pass_of_its_own() -> None:
    module = lowered(fused(attention(3 * ROWS), "unified"), schedule(3 * ROWS, skew=(1, 0, 0)), "stages")
    text = print_module(module)
    StagesPass().apply(Context(), module)
    assert print_module(module) == text
