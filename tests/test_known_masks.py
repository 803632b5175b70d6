"""Masks that are constant tensors: what is left out, that the numbers stay, and what may not be left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from online_cases import OneKernel, error
from random_programs import inputs_of
from tilewright.dialects.dtypes import dense
from tilewright.dialects.schedule import Schedule
from tilewright.dialects.target import set_target, target_of
from tilewright.lowering import cut_sections
from tilewright.lowering.cut_sections import EMPTY, FULL, MASKED, sections_of
from tilewright.lowering.cuts import Cut
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.pipeline import parse_pipeline, run_pipeline
from tilewright.lowering.tile_sizes import granularity, known_tiles
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import MachineOptions, analyze, check_order, run
from tilewright.runtime.tile_eval import evaluate_tile

import tilewright

FEW = settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
TABLES = settings(max_examples=60, deadline=None)
INF = -np.inf


def constant(array: Any) -> str:
    """A constant as text."""
    return f"graph.constant {dense(np.asarray(array))}"


def attention(lines: list[str], rows: int, keys: int, depth: int = 8, kind: str = "f32") -> str:
    """softmax(%u)·v, where `lines` make %u of the scores %s = q·kᵀ."""
    q, k = f"tensor<{rows}x{depth}x{kind}>", f"tensor<{keys}x{depth}x{kind}>"
    body = ["%s = graph.matmul %q, %k {transpose_b}", *lines, "%p = graph.softmax %u", "%y = graph.matmul %p, %v"]
    inside = "\n".join(f"  {line}" for line in body)
    return f"func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{\n{inside}\n  func.return %y : {q}\n}}\n"


def chosen(keep: str, kind: str = "f32") -> list[str]:
    bits = {"f32": "0xFF800000", "f16": "0xFC00"}[kind]
    return [f"%inf = graph.constant dense<{bits}> : tensor<{kind}>", f"%u = graph.where {keep}, %s, %inf"]


def of_table(mask: Any, kind: str = "f32") -> list[str]:
    """A table of truth values."""
    return [f"%t = {constant(mask)}", *chosen("%t", kind)]


def of_bias(mask: Any, kind: str = "f32") -> list[str]:
    """A table of 0 and −∞ that is added."""
    return [f"%t = {constant(np.where(mask, 0, INF).astype({'f32': np.float32, 'f16': np.float16}[kind]))}",
            "%u = graph.add %s, %t"]  # fmt: skip


def of_blocks(table: Any, rows: int, keys: int, kind: str = "f32") -> list[str]:
    """A table of blocks, each repeated for its rows × keys positions."""
    high, wide = table.shape
    return [
        f"%c = {constant(table)}",
        f"%c4 = graph.reshape %c : tensor<{high}x1x{wide}x1xi1>",
        f"%e4 = graph.expand %c4 : tensor<{high}x{rows}x{wide}x{keys}xi1>",
        f"%t = graph.reshape %e4 : tensor<{high * rows}x{wide * keys}xi1>",
        *chosen("%t", kind),
    ]


def of_documents(rows: Any, keys: Any) -> list[str]:
    return [
        f"%i = {constant(rows[:, None])}",
        f"%j = {constant(keys[None, :])}",
        "%t = graph.eq %i, %j",
        *chosen("%t"),
    ]


def softmax_oracle(mask: Any, inputs: list[Any]) -> Any:
    q, k, v = (np.asarray(x, np.float64) for x in inputs)
    scores = np.where(mask, q @ k.T, INF)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ v


def placed(case: OneKernel, step: int, rows: int) -> tuple[Schedule, Cut | None]:
    schedule = case.schedule("online", step, rows)
    nest = place_nest(case.group(), schedule)
    found = list(nest.cuts.values())
    assert len(found) <= 1
    return schedule.with_(strategy=nest.strategy), found[0] if found else None


def live_tiles(mask: Any, rows: int, step: int) -> Any:
    high, wide = -(-mask.shape[0] // rows), -(-mask.shape[1] // step)
    return np.array(
        [[mask[r * rows : (r + 1) * rows, c * step : (c + 1) * step].any() for c in range(wide)] for r in range(high)]
    )


# --- the same numbers ---------------------------------------------------------------------------------------------


@st.composite
def masks(draw: st.DrawFn) -> Any:
    """Blocks that are live, dead or neither; rows without any among them."""
    high, wide = draw(st.integers(1, 6)), draw(st.integers(2, 14))
    rows, keys = draw(st.integers(1, 6)), draw(st.integers(1, 5))
    kinds = np.array(draw(st.lists(st.integers(0, 3), min_size=high * wide, max_size=high * wide)))
    density = np.array([0.0, 0.0, 1.0, 0.5])[kinds].reshape(high, wide)
    random = np.random.default_rng(draw(st.integers(0, 99)))
    return random.random((high * rows, wide * keys)) < np.kron(density, np.ones((rows, keys)))


@given(mask=masks(), tiles=st.tuples(st.integers(3, 8), st.integers(2, 8)), bias=st.booleans())
@FEW
def test_any_table(mask: Any, tiles: tuple[int, int], bias: bool) -> None:
    """Rows that are masked throughout are NaN, as the formula says; every tile that is live is walked once."""
    case = OneKernel.of(attention((of_bias if bias else of_table)(mask), *mask.shape))
    schedule, cut = placed(case, tiles[1], tiles[0])
    inputs = inputs_of(case.module, 1)[:3]
    found = evaluate_tile(case.kernel(schedule), inputs, "f64")[0]
    assert error(found, softmax_oracle(mask, inputs)) <= 1e-12
    if cut is not None and len(cut.outer) == 1:
        rows, step = min(tiles[0], mask.shape[0]), min(tiles[1], mask.shape[1])
        assert (cut.walked[0] == live_tiles(mask, rows, step)).all()


@given(
    rows=st.lists(st.integers(0, 4), min_size=4, max_size=40).map(sorted),
    keys=st.lists(st.integers(0, 4), min_size=4, max_size=40),
    tiles=st.tuples(st.integers(1, 8), st.integers(1, 8)),
    ordered=st.booleans(),
)
@FEW
def test_any_documents(rows: list[int], keys: list[int], tiles: tuple[int, int], ordered: bool) -> None:
    left, right = (np.array(each, np.int32) for each in (rows, sorted(keys) if ordered else keys))
    case = OneKernel.of(attention(of_documents(left, right), len(left), len(right)))
    schedule, _ = placed(case, tiles[1], tiles[0])
    inputs = inputs_of(case.module, 1)[:3]
    found = evaluate_tile(case.kernel(schedule), inputs, "f64")[0]
    assert error(found, softmax_oracle(left[:, None] == right[None], inputs)) <= 1e-12


@pytest.mark.parametrize("target", ["davinci", "unified{memory.scratchpad.bytes=64KiB}"])
@pytest.mark.parametrize("form", [of_table, of_bias])
def test_the_machine_walks_blocks_in_rounds(target: str, form: Any) -> None:
    """Estimate, prediction and execution agree to the byte, without a race, where stretches need many rounds."""
    random = np.random.default_rng(3)
    table = random.random((4, 16)) < 0.5
    table[1] = False
    mask = np.kron(table, np.ones((16, 16), np.bool_))
    case = OneKernel.of(attention(form(mask, "f16"), *mask.shape, depth=16, kind="f16"))
    set_target(case.module, target)
    schedule, cut = placed(case, 16, 16)
    assert cut is not None and cut.rounds.max() > 1
    assert (cut.walked[0] == table).all() and not cut.walked[1].any()  # all of it without masks
    module = case.kernel(schedule)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    assert predict(module) == analyze(module).links
    check_order(module)
    inputs = inputs_of(case.module, 1)
    found = run(module, inputs, MachineOptions(seed=1)).outputs[0]
    assert error(np.asarray(found, np.float64), softmax_oracle(mask, inputs[:3])) <= 4e-3
    assert tilewright.load(str(module)) is not None


def test_two_masks_of_one_form_are_two_kernels() -> None:
    """What is remembered of a group says what its constants hold."""
    both = [np.kron(np.eye(4)[order], np.ones((16, 16))) > 0 for order in ([0, 1, 2, 3], [3, 2, 1, 0])]
    parts = [
        attention(of_table(mask), 64, 64).replace("func.func @main", f"func.func private @f{n}")
        for n, mask in enumerate(both)
    ]
    q = "tensor<64x8xf32>"
    main = (
        f"func.func @main(%q: {q}, %k: {q}, %v: {q}) -> ({q}, {q}) {{\n  %a = call %q, %k, %v {{callee = @f0}} : {q}\n"
        f"  %b = call %q, %k, %v {{callee = @f1}} : {q}\n  func.return %a, %b\n}}\n"
    )
    module = tilewright.load("".join([*parts, main])).op
    set_target(module, "unified")
    passes = "canonicalize,decompose,canonicalize,fuse{effort=2},schedule{effort=2 measured=1 skew=false},tile"
    run_pipeline(module, parse_pipeline(passes))
    inputs = inputs_of(module, 0)
    for found, mask in zip(evaluate_tile(module, inputs, "f64"), both, strict=True):
        assert error(found, softmax_oracle(mask, inputs)) <= 1e-12


# --- how much is left out -----------------------------------------------------------------------------------------


def test_a_table_of_blocks_too_large_to_fold() -> None:
    """What is repeated is not written out: the loops are over blocks and positions in them."""
    table = np.random.default_rng(1).random((16, 16)) < 0.3
    case = OneKernel.of(attention(of_blocks(table, 17, 17), 272, 272))
    group = case.group()
    assert sorted(len(load.present) for load in group.loads if load.table is not None) == [2]
    tiles = tuple(1 if axis.extent == 16 else axis.extent for axis in group.axes)
    looped = "".join(name for axis, name in group.names.items() if axis.extent == 16)
    base = case.schedule("online", 1, 1)
    schedule = base.with_(tiles=tiles, order=looped, hold=tuple(
        "".join(n for a, n in group.names.items() if a in load.present and n in looped) for load in group.loads
    ))  # fmt: skip
    nest = place_nest(group, schedule)
    (cut,) = nest.cuts.values()
    assert (cut.walked[0] == table).all() and not cut.walked[1].any()
    inputs = inputs_of(case.module, 1)[:3]
    found = evaluate_tile(case.kernel(schedule), inputs, "f64")[0]
    assert error(found, softmax_oracle(np.kron(table, np.ones((17, 17))) > 0, inputs)) <= 1e-12


@given(
    kinds=st.integers(1, 5).flatmap(
        lambda wide: st.lists(
            st.lists(st.sampled_from([EMPTY, MASKED, FULL]), min_size=5 * wide, max_size=5 * wide),
            min_size=1, max_size=6,
        )
    ),
    most=st.sampled_from([1, 4]),
)  # fmt: skip
@TABLES
def test_sections_walk_what_is_not_empty_once_and_in_order(kinds: list[list[int]], most: int) -> None:
    table = np.array(kinds)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cut_sections, "MOST", most)
        found = sections_of(table)
    for number, row in enumerate(table):
        walk = [
            (tile, section.full)
            for turn in range(found[0].lower.shape[-1] if found else 0)
            for section in found
            for tile in range(section.lower[number, turn], section.upper[number, turn])
        ]
        assert [tile for tile, _ in walk] == np.flatnonzero(row != EMPTY).tolist()
        assert all(row[tile] == FULL for tile, full in walk if full)


def test_too_many_stretches_are_joined(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cut_sections, "BOUNDS", 8)
    kinds = np.tile([FULL, EMPTY], (3, 6))
    found = sections_of(kinds)
    assert len(found) <= cut_sections.MOST
    assert all(section.lower.shape == (3, 1) for section in found)
    walked = sum(section.trips.sum() for section in found)
    assert 3 * 6 < walked < kinds.size  # some that are empty, not all


@pytest.mark.parametrize(("steps", "sizes"), [((6, 4), (6, 4)), ((1, 5), (1, 5)), ((7, 9), (1, 9))])
def test_the_search_starts_from_tiles_in_which_nothing_changes(steps: tuple[int, int], sizes: tuple[int, int]) -> None:
    """Blocks of 7 rows have no size of their own among those that are tried: then a divisor of it."""
    rows, keys = steps
    mask = np.kron(np.eye(6)[:, [0, 1, 2, 3, 4, 5, 0]], np.ones((rows, keys))) > 0
    group = OneKernel.of(attention(of_table(mask), *mask.shape)).group()
    (table,) = (load.table for load in group.loads if load.table is not None)
    tried = [[n for n in range(1, axis.extent + 1) if n != 7] for axis in group.axes]
    found = dict(zip(group.axes, known_tiles(group, [axis.extent for axis in group.axes], tried), strict=True))
    assert tuple(found[axis] for axis in table.axes) == sizes
    assert [table.step(axis) for axis in table.axes] == list(steps)
    assert all(found[axis] == axis.extent for axis in group.axes if axis not in table.axes)


def test_blocks_need_not_be_a_multiple_of_the_engines_rows() -> None:
    """The positions in a block are, so that one block of the mask can be one tile."""
    table = np.random.default_rng(1).random((6, 6)) < 0.3
    case = OneKernel.of(attention(of_blocks(table, 64, 64, "f16"), 384, 384, 16, "f16"))
    set_target(case.module, "davinci")
    group, target = case.group(), target_of(case.module)
    assert [granularity(group, axis, target) for axis in group.axes if axis.extent == 6] == [1, 1]
    assert [granularity(group, axis, target) for axis in group.axes if axis.extent == 64] == [16, 16]


# --- what must not be left out ------------------------------------------------------------------------------------


def test_an_argument_tells_nothing() -> None:
    text = attention(["%u = graph.add %s, %b"], 32, 32).replace("%v:", "%b: tensor<32x32xf32>, %v:")
    assert placed(OneKernel.of(text), 8, 8)[1] is None


@pytest.mark.parametrize(
    ("rest", "value", "walks"),
    [(1.0, 0.0, 4), (1.0, np.inf, 7), (1.0, np.nan, 7), (0.5, 0.0, 4), (0.5, np.inf, 16), (0.5, np.nan, 16)],
)
def test_a_constant_that_is_not_finite_forbids_it(rest: float, value: float, walks: int) -> None:
    """0·v is not 0 of a value v that is infinite or none; of keys whose values are all 1 it is."""
    v = np.full((32, 8), rest, np.float32)
    v[3, 3] = value
    lines = of_table(np.kron(np.eye(4), np.ones((8, 8))) > 0)
    text = attention([f"%w = {constant(v)}", *lines], 32, 32).replace("%p, %v", "%p, %w")
    case = OneKernel.of(text)
    _, cut = placed(case, 8, 8)
    assert cut is not None and cut.walked[0].sum() == walks
    # Of what is data it is assumed, whoever gives it; of what is known to be finite nothing has to be.
    assert len(cut.assumed) == (3 if (rest, value) == (0.5, 0.0) else 0 if walks == 16 else 2)


def test_a_number_that_is_none_is_walked() -> None:
    """Of a row with a NaN in the bias the result is NaN, though all else of that tile is masked."""
    bias = np.where(np.kron(np.eye(4), np.ones((8, 8))) > 0, 0, INF).astype(np.float32)
    bias[1, 20] = np.nan
    case = OneKernel.of(attention([f"%t = {constant(bias)}", "%u = graph.add %s, %t"], 32, 32))
    schedule, _ = placed(case, 8, 8)
    inputs = inputs_of(case.module, 1)[:3]
    found = evaluate_tile(case.kernel(schedule), inputs, "f64")[0]
    assert np.isnan(found[1]).all() and np.isfinite(found[[0, *range(2, 32)]]).all()


def test_integers_that_are_not_exact_as_floats_are_not_compared() -> None:
    far = np.full(32, 2**53, np.int64)
    case = OneKernel.of(attention(of_documents(far, far + np.arange(32) % 2), 32, 32))
    schedule, _ = placed(case, 8, 8)
    inputs = inputs_of(case.module, 1)[:3]
    found = evaluate_tile(case.kernel(schedule), inputs, "f64")[0]
    assert error(found, softmax_oracle(np.arange(32)[None] % 2 == np.zeros((32, 1)), inputs)) <= 1e-12


def test_other_numbers_are_data() -> None:
    """A constant vector of weights does not make groups differ."""
    scale = np.linspace(1, 2, 32, dtype=np.float32)
    case = OneKernel.of(attention([f"%t = {constant(scale)}", "%u = graph.mul %s, %t"], 32, 32))
    assert all(load.table is None for load in case.group().loads)
