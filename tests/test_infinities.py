"""Infinities that come from masks: through neg, sub and reductions they reach bases and skipped tiles."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from online_cases import OneKernel, error
from random_cascades import masked_cascades
from random_programs import inputs_of
from tilewright.dialects.scalar import apply, lookup
from tilewright.lowering.absorb import _Evaluation  # pyright: ignore[reportPrivateUsage]
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.number_kinds import BINARY, SINGLE, UNARY, Kind, NumberKinds, of_number
from tilewright.lowering.online_proofs import Proofs
from tilewright.lowering.online_state import States
from tilewright.lowering.tile_compute import ComputeEmitter
from tilewright.runtime.tile_eval import evaluate_tile

NUMBERS = (-np.inf, -30.0, -1.0, -1e-200, 0.0, 1e-200, 0.5, 3.0, 30.0, np.inf, np.nan)

CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


@pytest.mark.parametrize("fn", [*UNARY, *BINARY])
def test_every_number_is_of_a_kind_that_was_expected(fn: str) -> None:
    arity = lookup(fn).arity
    for kinds in product(SINGLE, repeat=arity):
        expected = UNARY[fn](kinds[0]) if arity == 1 else BINARY[fn](*kinds)
        for numbers in product(*([n for n in NUMBERS if of_number(n) is kind] for kind in kinds)):
            with np.errstate(all="ignore"):
                found = float(apply(lookup(fn), [np.asarray(n) for n in numbers]))
            assert of_number(found) in expected, (numbers, found, expected)


@given(text=masked_cascades())
@settings(max_examples=30, deadline=None, suppress_health_check=CHECKS)
def test_masked_cascades(text: str) -> None:
    check(text)


@pytest.mark.slow
@given(text=masked_cascades())
@settings(max_examples=80, deadline=None, suppress_health_check=CHECKS)
def test_many_masked_cascades(text: str) -> None:
    check(text)


def check(text: str) -> list[str]:
    """What is a number in float64 is that number under online tiles, in float64 and in the types of the program; the
    strategies that the tiles had."""
    case = OneKernel.of(text)
    inputs = inputs_of(case.module, 3)
    strategies: list[str] = []
    with np.errstate(all="ignore"):
        wanted = case.reference(inputs)
        for step, rows in ((3, 2), (4, 9)):
            schedule = case.schedule("online", step, rows)
            strategies.append(place_nest(case.group(), schedule).strategy)
            lowered = case.kernel(schedule.with_(strategy=strategies[-1]))
            for found, want in zip(evaluate_tile(lowered, inputs, "f64"), wanted, strict=True):
                assert error(found, want, least=1.0) < 1e-7
            for found, want in zip(evaluate_tile(lowered, inputs), wanted, strict=True):
                assert np.isfinite(found[np.isfinite(want)]).all()
    return strategies


PROGRAM = """func.func @main(%x: tensor<12x10xf32>, %z: tensor<12x10xf32>) -> tensor<12x1xf32> {{
  %i = graph.iota {{dim = 0 : i64}} : tensor<12x1xi32>
  %j = graph.iota {{dim = 1 : i64}} : tensor<1x10xi32>
  %m = graph.gt %j, %i
  %low = graph.constant dense<0xFF800000> : tensor<f32>
  %zero = graph.constant dense<0.0> : tensor<f32>
  %s = graph.where %m, %x, %low
  %r = graph.where %m, %x, %zero
  %q = graph.max %z, %x
  {}
  %y = graph.reduce_sum %w {{axes = [-1], keepdims}}
  func.return %y : tensor<12x1xf32>
}}"""
CASES: dict[str, tuple[str, bool]] = {
    "a maximum that values are subtracted from": ("%d = max %x; %e = sub %d, %x; %w = exp %e", True),
    "a minimum that is subtracted": ("%d = min %x; %e = sub %x, %d; %w = exp %e", True),
    "squares of distances to a maximum": ("%d = max %x; %e = sub %x, %d; %w = square %e", True),
    "softmax": ("%d = max %s; %e = sub %s, %d; %w = exp %e", True),
    "softmax of negated scores": ("%n = neg %s; %d = min %n; %e = sub %d, %n; %w = exp %e", True),
    "a negated mask": ("%n = neg %s; %d = max %n; %e = sub %n, %d; %w = exp %e", True),
    "a masked maximum under other values": ("%d = max %s; %e = sub %q, %d; %w = exp %e", False),
    "a maximum that is +∞": ("%n = neg %s; %d = max %n; %e = sub %q, %d; %w = exp %e", True),
    "a mean that is −∞": ("%d = mean %s; %e = add %q, %d; %w = exp %e", False),
    "rows of which nothing is chosen": ("%d = max %s; %e = sub %s, %d; %p = exp %e; %w = where %m, %p, %zero", True),
    "rows without an exponent": ("%d = max %s; %e = sub %s, %d; %p = where %m, %e, %low; %w = exp %p", True),
    "other positions are chosen":
        ("%d = max %s; %e = sub %s, %d; %p = exp %e; %n = lt %j, %i; %w = where %n, %p, %zero", False),
    "a choice of quotients":
        ("%d = max %x; %e = sub %x, %d; %p = exp %e; %l = sum %r; %u = div %p, %l; %w = where %m, %u, %zero", False),
    "a sum of other tiles": ("%t = where %m, %zero, %x; %u = sum %t; %e = add %u, %t; %w = relu %e", False),
    "a value repeated to a ragged end":
        ("%d = max %x; %e = sub %d, %x; %p = exp %e; %t = min %z; %w = sub %t, %p", True),
}  # fmt: skip
"""Steps, the last of which is summed up, and whether there is an online form."""
REDUCTIONS = ("max", "min", "mean", "sum")


def text_of(name: str) -> str:
    lines: list[str] = []
    for step in CASES[name][0].split("; "):
        result, _, text = step.partition(" = ")
        fn, *operands = text.replace(",", "").split()
        reduces = fn in REDUCTIONS and len(operands) == 1
        options = " {axes = [-1], keepdims}" if reduces else ""
        lines.append(f"{result} = graph.{'reduce_' * reduces}{fn} {', '.join(operands)}{options}")
    return PROGRAM.format("\n  ".join(lines))


@pytest.mark.parametrize("name", CASES)
def test_infinities_on_their_way(name: str) -> None:
    online = CASES[name][1]
    assert check(text_of(name))[0] == ("online" if online else "multipass")
    derived = OneKernel.of(text_of(name)).derived()
    assert bool(derived.cascades) == online and bool(derived.refusals) != online


def test_the_reason_is_given() -> None:
    (reason,) = OneKernel.of(text_of("a masked maximum under other values")).derived().refusals.values()
    assert "may be infinite so far" in reason


# --- guards -----------------------------------------------------------------------------------------------------------


def always(value: object) -> Callable[..., object]:
    return lambda *_: value


def argument(number: int) -> Callable[..., object]:
    return lambda *arguments: arguments[number]


GUARDS: dict[str, tuple[type, str, Callable[..., object]]] = {
    "a masked maximum under other values": (Proofs, "vanishes", always(True)),
    "rows of which nothing is chosen": (Proofs, "chosen_base", argument(1)),
    "a choice of quotients": (Proofs, "check_factor", always(None)),
    "a maximum that values are subtracted from": (States, "settled", argument(2)),
    "a maximum that is +∞": (NumberKinds, "of", always(Kind.FINITE)),
    "a sum of other tiles": (_Evaluation, "finished", always(False)),
    "a value repeated to a ragged end": (ComputeEmitter, "ends_inside", always(False)),
}
"""The case that goes wrong without a guard, and what stands in its place."""


@pytest.mark.parametrize("case", GUARDS)
def test_without_a_guard_the_numbers_are_wrong(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(*GUARDS[case])
    with pytest.raises(AssertionError):
        check(text_of(case))
