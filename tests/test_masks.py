"""Masks as predicates over positions: what is left out, what is the same without it, what must not be left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mask_programs import (
    CAUSAL,
    Both,
    Comparison,
    Predicate,
    attention,
    linear,
    mask_of,
    predicates,
    softmax_oracle,
    window,
)
from online_cases import OneKernel, error
from random_programs import inputs_of
from tilewright.dialects import tile
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import set_target, target_of
from tilewright.lowering import cuts
from tilewright.lowering.cut_sections import Section
from tilewright.lowering.cut_text import mask_lines
from tilewright.lowering.cuts import Cut
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.nest import Nest
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.pipeline import parse_pipeline, run_pipeline
from tilewright.lowering.static_values import Grid, constants, frontier
from tilewright.lowering.sync_clip import Clip
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineError, MachineOptions, analyze, check_order, run
from tilewright.runtime.tile_eval import evaluate_tile
from xdsl.dialects.builtin import ModuleOp

import tilewright

QUICK = settings(max_examples=14, deadline=None, suppress_health_check=list(HealthCheck))
SLOW = settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))


def nest_of(case: OneKernel, schedule: Schedule) -> Nest:
    return place_nest(case.group(), schedule)


def only_cut(nest: Nest) -> Cut | None:
    found = list(nest.cuts.values())
    assert len(found) <= 1
    return found[0] if found else None


def tiles_of(mask: Any, rows: int, step: int) -> Any:
    """Per tile of rows × step positions: how many hold, and how many there are."""
    high, wide = -(-mask.shape[0] // rows), -(-mask.shape[1] // step)
    blocks = [[mask[r * rows : (r + 1) * rows, c * step : (c + 1) * step] for c in range(wide)] for r in range(high)]
    return np.array([[block.sum() for block in row] for row in blocks]), np.array([[b.size for b in r] for r in blocks])


def f64(case: OneKernel, schedule: Schedule, inputs: list[Any]) -> Any:
    return evaluate_tile(case.kernel(schedule), inputs, "f64")[0]


# --- the same numbers ---------------------------------------------------------------------------------------------


@given(
    predicate=predicates(),
    rows=st.integers(2, 40),
    keys=st.integers(2, 40),
    tiles=st.tuples(st.integers(1, 16), st.integers(1, 16)),
    additive=st.booleans(),
)
@QUICK
def test_softmax_under_any_mask(
    predicate: Predicate, rows: int, keys: int, tiles: tuple[int, int], additive: bool
) -> None:
    """Rows that are masked throughout included: they are NaN, as the formula says."""
    case = OneKernel.of(attention(predicate, rows, keys, additive=additive))
    schedule = case.schedule("online", tiles[1], tiles[0])
    nest = nest_of(case, schedule)
    case.fused.schedule = schedule.with_(strategy=nest.strategy).to_attr()
    inputs = inputs_of(case.module, 1)
    found = f64(case, schedule.with_(strategy=nest.strategy), inputs)
    wanted = softmax_oracle(predicate, *(np.asarray(x, np.float64) for x in inputs))
    assert error(found, wanted) <= 1e-12
    check_cut(only_cut(nest), mask_of(predicate, rows, keys), min(tiles[0], rows), min(tiles[1], keys))


def check_cut(cut: Cut | None, mask: Any, rows: int, step: int) -> None:
    """No tile with a live position is left out, none with a masked one is walked without its mask."""
    if cut is None:
        return
    live, size = tiles_of(mask, rows, step)
    everything, masked = cut.walked
    if not cut.outer:
        live, size = live.sum(axis=0), size.sum(axis=0)
    assert (everything[live > 0] == 1).all() and (everything <= 1).all()
    assert (masked[(live < size) & (everything > 0)] == 1).all()


@given(
    predicate=predicates(1),
    rows=st.integers(2, 40),
    keys=st.integers(2, 40),
    tiles=st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
@QUICK
def test_products_under_any_mask(predicate: Predicate, rows: int, keys: int, tiles: tuple[int, int]) -> None:
    """A product starts from zero in its first step, wherever that is."""
    case = OneKernel.of(linear(predicate, rows, keys))
    schedule = case.schedule("online", tiles[1], tiles[0])
    schedule = schedule.with_(strategy=nest_of(case, schedule).strategy)
    inputs = inputs_of(case.module, 1)
    q, k, v = (np.asarray(x, np.float64) for x in inputs)
    wanted = np.where(mask_of(predicate, rows, keys), q @ k.swapaxes(1, 2), 0) @ v
    assert error(f64(case, schedule, inputs), wanted) <= 1e-12


@pytest.mark.parametrize("target", ["davinci", "unified{memory.scratchpad.bytes=64KiB}"])
@given(
    predicate=predicates(1),
    sizes=st.tuples(st.integers(20, 70), st.integers(20, 70)),
    tiles=st.tuples(st.sampled_from([16, 32]), st.sampled_from([16, 32])),
    product=st.booleans(),
    slots=st.integers(1, 2),
)
@SLOW
def test_the_machine_moves_what_is_predicted(
    target: str, predicate: Predicate, sizes: tuple[int, int], tiles: tuple[int, int], product: bool, slots: int
) -> None:
    """Estimate = prediction from the program = execution, byte for byte; no races; the same numbers."""
    text = (linear if product else attention)(predicate, *sizes, heads=2, depth=16, kind="f16")
    case = OneKernel.of(text.replace("0xFF800000", "0xFC00"))
    set_target(case.module, target)
    schedule = case.schedule("online", tiles[1], tiles[0])
    schedule = schedule.with_(slots=(slots,) * len(schedule.slots))
    nest = nest_of(case, schedule)
    schedule = schedule.with_(strategy=nest.strategy)
    module = lowered(case, schedule)
    machine = target_of(module)
    moved = analyze(module)
    assert predict(module) == moved.links
    found = estimate(nest := nest_of(case, schedule), Facts(nest.group, machine))
    assert found.read_bytes == sum(kernel.read_bytes for kernel in moved.kernels)
    check_order(module)
    inputs = inputs_of(case.module, 1)
    result = run(module, inputs, MachineOptions(seed=1)).outputs[0]
    assert error(np.asarray(result, np.float64), np.asarray(case.reference(inputs)[0], np.float64)) <= 4e-3


def lowered(case: OneKernel, schedule: Schedule) -> ModuleOp:
    module = case.kernel(schedule)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    return module


@pytest.mark.parametrize("target", ["davinci", "unified"])
@pytest.mark.parametrize("predicate", [CAUSAL, window(40), Both("or", CAUSAL, Comparison(0, 1, -48, "lt"))])
def test_no_race_in_many_tiles(target: str, predicate: Predicate) -> None:
    """Events are chosen on a trace that leaves iterations out; the order of all of them is checked here."""
    module = many_tiles(target, predicate)
    check_order(module)
    assert predict(module) == analyze(module).links


def test_too_short_a_trace_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clip, "until_seen", lambda self, loop, inner: 2)
    with pytest.raises(MachineError, match="race"):
        check_order(many_tiles("davinci", CAUSAL))


def many_tiles(target: str, predicate: Predicate) -> ModuleOp:
    case = OneKernel.of(attention(predicate, 240, 240, depth=16, kind="f16").replace("0xFF800000", "0xFC00"))
    set_target(case.module, target)
    schedule = case.schedule("online", 16, 16)
    return lowered(case, schedule.with_(slots=(1, 2, 2)))


# --- how much is left out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("predicate", "walked", "unmasked"),
    [
        (CAUSAL, 8 * 9 // 2, 8 * 7 // 2),
        (window(8), 2 * 8 - 1, 0),  # a band of two tiles, each crossed by an edge
        (window(24), 4 * 8 - 6, 2 * 8 - 3),
        (Both("or", CAUSAL, Comparison(0, 1, -16, "lt")), 36 + 1, 28 + 3),  # a prefix of two tiles
        (Comparison(-1, 1, 0, "ge"), 8 * 9 // 2, 8 * 7 // 2),
        (Comparison(1, 0, -32, "ge"), 4 * 8, 4 * 8),  # rows that see nothing
    ],
)
def test_tiles_that_are_walked(predicate: Predicate, walked: int, unmasked: int) -> None:
    case = OneKernel.of(attention(predicate, 64, 64))
    cut = only_cut(nest_of(case, case.schedule("online", 8, 8)))
    assert cut is not None
    everything, masked = (int(table.sum()) for table in cut.walked)
    assert (everything, everything - masked) == (walked, unmasked)


def test_a_triangle_is_a_loop_with_an_affine_bound() -> None:
    case = OneKernel.of(attention(CAUSAL, 64, 64))
    module = case.kernel(case.schedule("online", 8, 16))
    bounds = [str(op.upper.data) for op in module.walk() if isinstance(op, tile.ForOp) and op.upper_operands]
    assert bounds == ["(d0) -> ((d0 * 2))", "(d0) -> (((d0 * 2) + 2))"]
    assert tilewright.load(str(module)) is not None


def test_a_band_begins_no_earlier_than_the_axis() -> None:
    case = OneKernel.of(attention(window(24), 64, 64))
    module = case.kernel(case.schedule("online", 8, 8))
    lower = [str(op.lower.data) for op in module.walk() if isinstance(op, tile.ForOp) and op.lower_operands]
    assert lower[0] == "(d0) -> ((d0 + -3), 0)"


# --- what must not be left out ------------------------------------------------------------------------------------


def test_the_lowest_number_is_not_nothing() -> None:
    """Of a row that is masked throughout with the lowest finite number, softmax is uniform."""
    nobody = Comparison(1, 0, -20, "ge")  # the first 20 rows see nothing
    case = OneKernel.of(attention(nobody, 40, 24, masked="-3.4028234663852886e+38"))
    schedule = case.schedule("online", 8, 8)
    nest = nest_of(case, schedule)
    cut = only_cut(nest)
    assert cut is not None and cut.walked[0].all()  # masks are left out, tiles are not
    assert "the max over" in mask_lines(nest, "qkv")[0]
    inputs = inputs_of(case.module, 1)
    found = f64(case, schedule, inputs)
    np.testing.assert_allclose(found[0, 0], np.asarray(inputs[2][0], np.float64).mean(axis=0), rtol=1e-6)


def test_the_assumption_is_said() -> None:
    case = OneKernel.of(attention(CAUSAL, 32, 32))
    lines = mask_lines(nest_of(case, case.schedule("online", 8, 8)), "qkv")
    assert len(lines) == 1
    assert "10 of 16 tiles walked, 6 of them without masks; assumes that q, k, v are finite" in lines[0]


def test_a_value_that_may_be_infinite_forbids_it() -> None:
    """exp(v) can overflow of finite v: 0·exp(v) is then no zero."""
    text = (
        attention(CAUSAL, 32, 32)
        .replace("graph.matmul %w, %v", "graph.matmul %w, %g")
        .replace("  %s = graph.matmul", "  %g = graph.exp %v\n  %s = graph.matmul")
    )
    case = OneKernel.of(text)
    cut = only_cut(nest_of(case, case.schedule("online", 8, 8)))
    assert cut is not None and cut.walked[0].all()


@pytest.mark.parametrize(("end", "by"), [("upper", -1), ("lower", 1)])
def test_an_interval_that_is_off_by_a_tile_is_noticed(end: str, by: int, monkeypatch: pytest.MonkeyPatch) -> None:
    real = cuts.sections_of

    def wrong(kinds: Any) -> list[Section]:
        found = real(kinds)
        last = found[-1]
        ends = {"lower": last.lower, "upper": last.upper}
        ends[end] = ends[end] + by
        return [*found[:-1], Section(last.full, **ends)]

    case = OneKernel.of(attention(CAUSAL, 32, 32))
    schedule = case.schedule("online", 8, 8)
    inputs = inputs_of(case.module, 1)
    wanted = softmax_oracle(CAUSAL, *(np.asarray(x, np.float64) for x in inputs))
    assert error(f64(case, schedule, inputs), wanted) <= 1e-12
    monkeypatch.setattr(cuts, "sections_of", wrong)
    found = f64(case, schedule, inputs)
    assert not np.allclose(found, wanted, rtol=1e-6, equal_nan=True)


def test_a_mask_that_is_taken_for_full_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    case = OneKernel.of(attention(CAUSAL, 32, 32))
    schedule = case.schedule("online", 8, 8)
    inputs = inputs_of(case.module, 1)
    wanted = softmax_oracle(CAUSAL, *(np.asarray(x, np.float64) for x in inputs))
    real = cuts.sections_of
    monkeypatch.setattr(cuts, "sections_of", lambda kinds: [Section(True, s.lower, s.upper) for s in real(kinds)])
    assert error(f64(case, schedule, inputs), wanted) > 1e-3


@given(
    predicate=predicates(),
    rows=st.integers(1, 40),
    keys=st.integers(1, 40),
    tiles=st.tuples(st.integers(1, 16), st.integers(1, 16)),
)
@settings(max_examples=14, deadline=None, suppress_health_check=list(HealthCheck))
def test_what_intervals_say_holds_at_every_position(
    predicate: Predicate, rows: int, keys: int, tiles: tuple[int, int]
) -> None:
    group = OneKernel.of(linear(predicate, rows, keys)).group()
    mask, known = mask_of(predicate, rows, keys), frontier(group)
    i, j = (next((a for a in group.axes if any(a in n.present for n in known) and a.extent == e), None)
            for e in (rows, keys))  # fmt: skip
    if i is None or j is None or i is j:
        return
    table = constants(known, Grid((i, j), {i: min(tiles[0], rows), j: min(tiles[1], keys)}))
    live, size = tiles_of(mask, min(tiles[0], rows), min(tiles[1], keys))
    for node in known:
        assert (live[table[node] == 0] == 0).all() and (live == size)[table[node] == 1].all()
