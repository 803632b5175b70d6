"""The online form: one walk for reductions that wait for one another (semantics 6.4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from online_cases import OneKernel, error, stream, structure, structure_names
from random_cascades import cascades
from random_programs import inputs_of
from tilewright.dialects.errors import UserError
from tilewright.dialects.target import set_target
from tilewright.lowering.nest import Item, Loop
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.online_state import States
from tilewright.lowering.online_text import rules
from tilewright.runtime.tile_eval import evaluate_tile

import tilewright

TILES = ((16, 8), (7, 5))
"""Positions of a streamed axis and of a row axis in a tile: with and without a ragged end."""
DERIVED = [name for name in structure_names() if structure(name).derived().cascades]
CONVOLUTIONS = [name for name in structure_names() if name.startswith("conv")]


def walks(items: list[Item]) -> int:
    """Loops that carry a reduction and stand in no other one that does."""
    return sum(1 if item.carried else walks(item.body) for item in items if isinstance(item, Loop))


@pytest.mark.parametrize("name", [n for n in structure_names() if n not in CONVOLUTIONS])
def test_every_structure_has_one_walk_and_the_same_numbers(name: str) -> None:
    case = structure(name, "f32")
    derived = case.derived()
    assert not derived.refusals
    inputs = inputs_of(case.module, 1)
    wanted = case.reference(inputs)
    for step, rows in TILES:
        schedule = case.schedule("online", step, rows)
        nest = place_nest(case.group(), schedule)
        assert nest.strategy == "online" and nest.passes == 1
        for found, want in zip(case.run(schedule, inputs), wanted, strict=True):
            assert error(found, want) <= (1e-4 if "covariance" in name else 2e-6)


def test_what_is_derived_took_several_walks() -> None:
    assert len(DERIVED) >= 25
    for name in DERIVED:
        case = structure(name)
        assert place_nest(case.group(), case.schedule("multipass", 8, 8)).passes > 1


@pytest.mark.parametrize("target", ["davinci", "unified"])
@pytest.mark.parametrize("name", ["attention_causal", "loss_entropy", "norm_layer_matmul", "statistics_covariance"])
def test_the_machine_agrees(name: str, target: str) -> None:
    case = structure(name)
    set_target(case.module, target)
    case.fused.schedule = case.schedule("online", 16, 16).to_attr()
    inputs = inputs_of(case.module, 1)
    run = tilewright.compile(tilewright.load(str(case.module))).run(inputs)
    for found, want in zip(run.outputs.values(), case.reference(inputs), strict=True):
        assert error(found, want) <= (2e-3 if found.dtype == np.float16 else 1e-5)


@pytest.mark.parametrize("name", ["attention_exp2", "attention_logsumexp", "attention_two_steps"])
def test_respellings_load_the_same_and_loop_the_same(name: str) -> None:
    plain, other = structure("attention_scaled"), structure(name)
    nests = [place_nest(case.group(), case.schedule("online", 16, 8)) for case in (plain, other)]
    assert loops(nests[0].items) == loops(nests[1].items)


def loops(items: list[Item]) -> list[object]:
    """Loops, loads and stores of a nest, in order."""
    kept = [item for item in items if type(item).__name__ in ("Loop", "Load", "Store")]
    return [(i.axis.extent, loops(i.body)) if isinstance(i, Loop) else type(i).__name__ for i in kept]


def test_rounded_weights_are_summed_rounded() -> None:
    """The P that the matrix engine reads is the P that is summed."""
    derived = structure("attention_scaled").derived()
    product = next(n for n in derived.group.nodes if n.kind == "contract" and n.cascade)
    total = next(n for n in derived.group.nodes if n.kind == "reduce" and n.carry is not None)
    assert total.inputs[0] is product.inputs[0] and str(total.inputs[0].element) == "f16"


ROWS = "%x: tensor<4x40xf32>"
REFUSED = {
    "{v} = graph.sub %x, %m\n{w} = graph.relu {v}": "'relu' mixes a streamed value with",
    "{v} = graph.sub %x, %m\n{w} = graph.abs {v}": "'abs' mixes a streamed value with",
    "{v} = graph.div %x, %m\n{w} = graph.exp {v}": "'exp' of a product with",
    "{v} = graph.sub %x, %m\n{w} = graph.div %x, {v}": "a division by a streamed value",
    "{v} = graph.sub %x, %m\n{h} = graph.cast {v} : tensor<4x40xf16>\n{w} = graph.cast {h} : tensor<4x40xf32>":
        "rounding is not moved through a sum",
    "{v} = graph.sub %x, %m\n{w} = graph.max {v}, %x": "'max' mixes a streamed value with",
    "{c} = graph.lt %x, %m\n{w} = graph.where {c}, %x, %m": "gives no number",
}  # fmt: skip


@pytest.mark.parametrize("body", REFUSED)
def test_what_has_no_online_form_says_why_and_takes_another_walk(body: str) -> None:
    names = {"v": "%v", "w": "%w", "h": "%h", "c": "%c"}
    text = f"""func.func @main({ROWS}) -> tensor<4x1xf32> {{
      %m = graph.reduce_mean %x {{axes = [-1], keepdims}}
      {body.format(**names)}
      %y = graph.reduce_sum %w {{axes = [-1], keepdims}}
      func.return %y : tensor<4x1xf32>
    }}"""
    case = OneKernel.of(text)
    (reason,) = case.derived().refusals.values()
    assert REFUSED[body] in reason
    inputs = [np.random.default_rng(1).uniform(1, 2, size=(4, 40)).astype(np.float32)]
    schedule = case.schedule("multipass", 16, 2)
    assert place_nest(case.group(), schedule).passes == 2
    assert error(case.run(schedule, inputs)[0], case.reference(inputs)[0]) < 1e-3
    with pytest.raises(UserError, match="make it 'multipass'"):
        case.run(schedule.with_(strategy="online"), inputs)


def test_a_product_of_reductions_is_refused() -> None:
    text = f"""func.func @main({ROWS}) -> tensor<4x1xf32> {{
      %m = graph.reduce_max %x {{axes = [-1], keepdims}}
      %d = graph.sub %x, %m
      %y = graph.reduce_prod %d {{axes = [-1], keepdims}}
      func.return %y : tensor<4x1xf32>
    }}"""
    assert "by 'prod'" in next(iter(OneKernel.of(text).derived().refusals.values()))


@given(text=cascades())
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_cascades(text: str) -> None:
    check_cascade(text)


@pytest.mark.slow
@given(text=cascades())
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_many_random_cascades(text: str) -> None:
    check_cascade(text)


def check_cascade(text: str) -> None:
    """In float64 the derived loops are the program, to rounding: what is left is the algebra."""
    case = OneKernel.of(text)
    inputs = inputs_of(case.module, 3)
    wanted = case.reference(inputs)
    for step, rows in ((16, 4), (3, 9)):
        schedule = case.schedule("online", step, rows)
        strategy = place_nest(case.group(), schedule).strategy
        lowered = case.kernel(schedule.with_(strategy=strategy))
        for found, want in zip(evaluate_tile(lowered, inputs, "f64"), wanted, strict=True):
            assert error(found, want, least=1.0) < 1e-7  # a difference of equal values is 0 only to rounding


# --- numerical traps --------------------------------------------------------------------------------------------------


def softmax_rows(x: np.ndarray) -> list[np.ndarray]:
    """The sums of exp(x − max x) of rows and softmax(x)·v, online in steps of 8, checked against float64."""
    text = """func.func @main(%x: tensor<4x40xf32>, %v: tensor<40x3xf32>) -> (tensor<4x1xf32>, tensor<4x3xf32>) {
      %m = graph.reduce_max %x {axes = [-1], keepdims}
      %d = graph.sub %x, %m
      %e = graph.exp %d
      %l = graph.reduce_sum %e {axes = [-1], keepdims}
      %p = graph.div %e, %l
      %y = graph.matmul %p, %v
      func.return %l, %y : tensor<4x1xf32>, tensor<4x3xf32>
    }"""
    case = OneKernel.of(text)
    values = np.linspace(0.5, 1.5, 120, dtype=np.float32).reshape(40, 3)
    inputs = [x.astype(np.float32), values]
    found = case.run(case.schedule("online", 8, 4), inputs)
    for one, want in zip(found, case.reference(inputs), strict=True):
        assert (np.isnan(one) == np.isnan(want)).all()
        assert error(one, want) < 2e-6
    return found


@pytest.mark.parametrize("late", [-100.0, 0.0, 100.0, -1e4])
def test_the_first_live_logit_comes_late(late: float) -> None:
    x = np.full((4, 40), -np.inf)
    x[:, 33] = late
    x[1:, 38] = late + 1
    softmax_rows(x)


def test_a_row_without_a_live_logit_is_what_the_formula_says() -> None:
    x = np.zeros((4, 40))
    x[2] = -np.inf
    found = softmax_rows(x)
    assert np.isnan(found[0][2]).all() and np.isfinite(found[0][[0, 1, 3]]).all()


@pytest.mark.parametrize("special", [np.nan, np.inf])
@pytest.mark.parametrize("place", [0, 20, 39])
def test_specials_spoil_their_own_row_only(special: float, place: int) -> None:
    x = np.random.default_rng(0).normal(size=(4, 40))
    x[1, place] = special
    found = softmax_rows(x)
    assert np.isnan(found[0][1]).all() and np.isfinite(found[0][[0, 2, 3]]).all()


@pytest.mark.parametrize("scale", [1e-40, 1.0, 1e4, 3e38])
def test_logits_of_every_size(scale: float) -> None:
    x = np.random.default_rng(1).uniform(-1, 1, size=(4, 40)) * scale
    x[3] = -3.4028234663852886e38  # the mask value of many programs: a row of it is uniform
    softmax_rows(x)


def test_the_variance_of_a_row_far_from_zero() -> None:
    case = structure("statistics_variance", "f32")
    x = np.random.default_rng(2).normal(1e4, 1.0, size=(12, 40)).astype(np.float32)
    for step in (1, 8, 40):
        found = case.run(case.schedule("online" if step < 40 else "resident", step, 4), [x])
        assert error(found[0], case.reference([x])[0]) < 1e-5


def test_a_walk_of_single_positions() -> None:
    for name in ("attention_scaled", "norm_layer_matmul"):
        case = structure(name, "f32")
        inputs = inputs_of(case.module, 5)
        assert error(case.run(case.schedule("online", 1, 3), inputs)[0], case.reference(inputs)[0]) < 2e-5


# --- guards -----------------------------------------------------------------------------------------------------------


def test_bases_that_are_not_kept_finite_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(States, "finite", lambda self, node, low=True, high=True: node)
    with pytest.raises(AssertionError):
        test_the_first_live_logit_comes_late(-100.0)


def test_sums_that_are_not_moved_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(States, "step", lambda self, move, factor=False: self.maker.constant(0.0, move[0][0].true))
    with pytest.raises(AssertionError):
        test_every_structure_has_one_walk_and_the_same_numbers("attention_scaled")


def test_means_estimated_without_their_count_lose_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(States, "estimate", lambda self, member, kind, members: self.maker.state(kind, member))
    with pytest.raises(AssertionError):
        test_the_variance_of_a_row_far_from_zero()


def test_the_examples_are_all_there() -> None:
    assert len(structure_names()) >= 30
    for path in (Path(__file__).parent.parent / "examples" / "structures").iterdir():
        assert path.suffix == ".mlir"
        assert stream(structure(path.stem).group()) or "conv" in path.stem


# --- what is said -----------------------------------------------------------------------------------------------------


def test_rules_read_as_mathematics() -> None:
    assert rules(structure("attention_scaled").derived(), ["q", "k", "v"]) == [
        "r1′ = max(r1, max_d((Σ_e q·k)·0.125))",
        "r2′ = r2·exp(r1 − r1′) + Σ_d exp((Σ_e q·k)·0.125 − r1′)·v",
        "r3′ = r3·exp(r1 − r1′) + Σ_d exp((Σ_e q·k)·0.125 − r1′)",
    ]


LONG_ROWS = """func.func @main(%x: tensor<2x6000xf32>) -> tensor<2x1xf32> {{
  %m = graph.reduce_max %x {{axes = [-1], keepdims}}
  %d = graph.sub %x, %m
  %e = graph.{fn} %d
  %y = graph.reduce_sum %e {{axes = [-1], keepdims}}
  func.return %y : tensor<2x1xf32>
}}"""


@pytest.mark.parametrize(
    ("fn", "said"),
    [("exp", "r2′ = r2·exp(r1 − r1′) + Σ_b exp(x − r1′)"), ("relu", "'relu' mixes a streamed value with a reduction")],
)
def test_a_scheduled_group_says_its_rules_or_why_it_has_none(fn: str, said: str) -> None:
    target = "unified{memory.scratchpad.bytes=8KiB}"
    module = tilewright.load(LONG_ROWS.format(fn=fn))
    program = tilewright.compile(module, target=target, objective="traffic", to="schedule")
    assert program.ir().count(said) == 1
    assert tilewright.compile(tilewright.load(program.ir()), to="schedule").ir() == program.ir()
