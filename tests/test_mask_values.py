"""What is known of static values and of steps, against the values themselves: types, roundings, infinities."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mask_programs import CAUSAL, attention
from online_cases import OneKernel
from random_programs import inputs_of
from tilewright.dialects.scalar import apply, lookup
from tilewright.dialects.target import set_target, target_of
from tilewright.lowering.cut_text import mask_lines
from tilewright.lowering.estimate import estimate
from tilewright.lowering.facts import Facts
from tilewright.lowering.interval_rules import BINARY, INTEGERS, UNARY, apply_intervals
from tilewright.lowering.nest_build import place_nest
from tilewright.lowering.pipeline import parse_pipeline, run_pipeline
from tilewright.lowering.static_values import Grid, interval
from tilewright.lowering.traffic import predict
from tilewright.runtime.machine import analyze
from tilewright.runtime.reference import evaluate

Array = npt.NDArray[Any]
ROWS, KEYS = 11, 26
FLOATS, INTS = ("f32", "f16"), ("i32", "i64", "i8", "ui8")
NUMBERS = {
    "int": ("0", "1", "-1", "3", "7", "-100", "1000000", "16777217"),
    "float": ("0.0", "-0.0", "1.0", "-3.0", "0.1", "2048.5", "3.0e38", "0x7F800000", "0xFF800000"),
}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def kind_of(element: str) -> str:
    return "bool" if element == "i1" else "float" if element in FLOATS else "int"


@st.composite
def static_programs(draw: st.DrawFn) -> str:
    """A value that positions and constants make, by operators with a rule for intervals and some without."""
    shape = f"tensor<{ROWS}x{KEYS}x"
    lines: list[str] = []
    values: list[tuple[str, str]] = []

    def add(text: str, element: str) -> None:
        name = f"%v{len(values)}"
        lines.append(f"  {name} = {text} : {shape}{element}>")
        values.append((name, element))

    def number(element: str) -> tuple[str, str]:
        name = f"%c{len(lines)}"
        text = draw(st.sampled_from(NUMBERS[kind_of(element)]))
        text = {"0x7F800000": "0x7C00", "0xFF800000": "0xFC00", "3.0e38": "6.0e4"}.get(text, text) if (
            element == "f16"
        ) else text  # fmt: skip
        text = str(int(text) % 100) if element in ("i8", "ui8") else text
        lines.append(f"  {name} = graph.constant dense<{text}> : {shape}{element}>")
        return name, element

    def pick(*kinds: str) -> tuple[str, str]:
        found = [value for value in values if kind_of(value[1]) in kinds]
        return found[draw(st.integers(0, len(found) - 1))] if found else number("i32")

    for dim in (0, 1):
        add(f"graph.iota {{dim = {dim} : i64}}", draw(st.sampled_from(("i32", "i32", "i64", "i8", "f32", "f16"))))
    for _ in range(draw(st.integers(1, 6))):
        a, kind = pick("int", "float")
        form = draw(st.sampled_from(("unary", "binary", "binary", "cast", "compare", "logic", "select")))
        other = draw(st.sampled_from(("constant", "constant", "value")))
        b, second = number(kind) if other == "constant" else pick(kind_of(kind))
        wide = draw(st.sampled_from(FLOATS if kind_of(kind) == "float" else INTS))
        result = kind if second == kind and draw(st.booleans()) else wide
        booleans = [name for name, element in values if element == "i1"]
        match form:
            case "unary":
                rules = sorted(set(UNARY) - {"not"} - ({"floor", "ceil"} if kind_of(kind) == "int" else set()))
                add(f'graph.map {a} {{fn = "{draw(st.sampled_from(rules))}"}}', result)
            case "binary":
                rules = sorted(set(BINARY) - {*COMPARISONS, "and", "or"})
                rules += [*INTEGERS, "bit_and"] if kind_of(kind) == "int" else ["div"]
                add(f'graph.map {a}, {b} {{fn = "{draw(st.sampled_from(rules))}"}}', result)
            case "compare":
                b, _ = (b, second) if draw(st.booleans()) else pick("int", "float")
                add(f"graph.{draw(st.sampled_from(COMPARISONS))} {a}, {b}", "i1")
            case "logic" if booleans:
                names = [draw(st.sampled_from(booleans)) for _ in range(2)]
                add(draw(st.sampled_from((f"graph.and {names[0]}, {names[1]}", f"graph.or {names[0]}, {names[1]}",
                                          f"graph.not {names[0]}"))), "i1")  # fmt: skip
            case "select" if booleans:
                add(f'graph.map {draw(st.sampled_from(booleans))}, {a}, {b} {{fn = "select"}}', result)
            case _:
                a, _ = pick("int", "float", "bool")
                add(f"graph.cast {a}", draw(st.sampled_from((*FLOATS, *INTS, "i1"))))
    name, element = values[-1]
    body = "\n".join(lines)
    return f"func.func @main() -> {shape}{element}> {{\n{body}\n  func.return {name} : {shape}{element}>\n}}"


ENDS = np.array([-np.inf, -3.0, -1.0, 0.0, 0.5, 1.0, 2.0, 7.0, np.inf])
LOW, HIGH = np.array([(low, high) for low in ENDS for high in ENDS if low <= high]).T


@pytest.mark.parametrize("fn", sorted({*UNARY, *BINARY, "select"} - {"and", "or", "not"}))
def test_every_number_lies_in_the_interval(fn: str) -> None:
    """All intervals between some numbers and infinities, and all of these numbers in them."""
    arity = lookup(fn).arity
    count = arity - (fn == "select")
    spread = [[-1 if d == n else 1 for d in range(count)] for n in range(count)]
    operands = [(LOW.reshape(shape), HIGH.reshape(shape)) for shape in spread]
    for condition in ((0.0, 0.0), (0.0, 1.0), (1.0, 1.0)) if fn == "select" else ((),):
        ends = [np.array(end) for end in condition]
        given = [*([(ends[0], ends[1])] if ends else []), *operands]
        low, high = apply_intervals(fn, given, "bool" if fn in COMPARISONS else "float")
        known = ~np.isnan(low)
        assert (known == ~np.isnan(high)).all()
        for numbers in product(ENDS, repeat=count):
            inside = np.logical_and.reduce(
                np.broadcast_arrays(*((a <= x) & (x <= b) for (a, b), x in zip(operands, numbers, strict=True)))
            )
            for holds in sorted(set(condition)) or [None]:
                head = [] if holds is None else [np.array(bool(holds))]
                value = float(apply(lookup(fn), [*head, *(np.array(x) for x in numbers)]))
                right = np.broadcast_to((low <= value) & (value <= high), inside.shape)
                assert right[inside & np.broadcast_to(known, inside.shape)].all(), (numbers, value)


@pytest.mark.parametrize(("low", "divisor"), [(0.3, 0.1), (1e17, 0.1), (6 * np.nextafter(0.7, 0), 0.7)])
def test_remainders_of_neighbours(low: float, divisor: float) -> None:
    """Where the quotients are rounded to one number though a period ends between them."""
    by, high = np.array(divisor), np.nextafter(low, np.inf)
    for a, b in ((np.array(low), np.array(high)), (np.array(np.nextafter(low, 0)), np.array(low))):
        first, last = apply_intervals("mod", [(a, b), (by, by)], "float")
        assert first <= min(np.mod(a, by), np.mod(b, by)) and max(np.mod(a, by), np.mod(b, by)) <= last


@given(text=static_programs(), tiles=st.tuples(st.integers(1, 12), st.integers(1, 12)))
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
def test_every_value_lies_in_its_interval(text: str, tiles: tuple[int, int]) -> None:
    """As it is computed in its types and in float64, which the rounding of a kept value lies between."""
    case = OneKernel.of(text)
    group = case.group()
    output = group.outputs[0]
    axes = tuple(next(iter(expr.terms)) for expr in output.index)
    low, high = interval(output.node, Grid(axes, dict(zip(axes, tiles, strict=True))), {})
    for precision in ("native", "f64"):
        found = np.asarray(evaluate(case.module, [], precision)[0], np.float64)
        for r, c in np.ndindex(*(-(-extent // tile) for extent, tile in zip((ROWS, KEYS), tiles, strict=True))):
            ends = [end[min(r, end.shape[0] - 1), min(c, end.shape[1] - 1)] if end.ndim else end for end in (low, high)]
            part = found[r * tiles[0] : (r + 1) * tiles[0], c * tiles[1] : (c + 1) * tiles[1]]
            if not np.isnan(ends).any():
                assert (part >= ends[0]).all() and (part <= ends[1]).all(), (part, ends)


# --- what follows from it ---------------------------------------------------------------------------------------------

HEAD = """func.func @main(%x: tensor<16x24xf32>) -> tensor<16x1xf32> {
  %i = graph.iota {dim = 0 : i64} : tensor<16x1xi32>
  %j = graph.iota {dim = 1 : i64} : tensor<1x24xi32>
  %m = graph.le %j, %i
  %zero = graph.constant dense<0.0> : tensor<f32>
  %one = graph.constant dense<1.0> : tensor<f32>
"""
TAIL = """
  %s = graph.reduce_{} %w {{axes = [1], keepdims}}
  func.return %s : tensor<16x1xf32>
}}"""


def halves_apart(inputs: list[Any]) -> None:
    inputs[0][:] = 1 + np.float32(2) ** -9


def zeros(inputs: list[Any]) -> None:
    inputs[0][:] = -0.0


def negative(inputs: list[Any]) -> None:
    inputs[0][:] = -1.0


STEPS: dict[str, tuple[str, str, Callable[[list[Any]], None]]] = {
    "two roundings of one value are not the same": (
        """%a = graph.cast %x : tensor<16x24xf16>
  %a2 = graph.cast %a : tensor<16x24xf32>
  %b = graph.cast %x : tensor<16x24xbf16>
  %b2 = graph.cast %b : tensor<16x24xf32>
  %d = graph.sub %a2, %b2
  %w = graph.where %m, %d, %x""", "sum", halves_apart,
    ),
    "a product that overflowed in its own type": (
        """%c = graph.constant dense<1000000> : tensor<i32>
  %p = graph.map %j, %c {fn = "mul"} : tensor<1x24xi32>
  %q = graph.map %p, %c {fn = "mul"} : tensor<1x24xi64>
  %z = graph.constant dense<0> : tensor<i64>
  %n = graph.ge %q, %z
  %w = graph.where %n, %x, %zero""", "sum", negative,
    ),
    "integers that floats cannot tell apart": (
        """%k = graph.cast %j : tensor<1x24xi64>
  %c = graph.constant dense<4503599627370496> : tensor<i64>
  %c3 = graph.constant dense<3> : tensor<i64>
  %c2 = graph.constant dense<2> : tensor<i64>
  %c0 = graph.constant dense<0> : tensor<i64>
  %k4 = graph.shift_right %k, %c2
  %p = graph.add %k4, %c
  %q = graph.mul %p, %c3
  %r = graph.mod %q, %c2
  %n = graph.eq %r, %c0
  %w = graph.where %n, %x, %zero""", "sum", negative,
    ),
    "a constant that a float is not": (
        """%k = graph.cast %j : tensor<1x24xi64>
  %c = graph.constant dense<1152921504606846976> : tensor<i64>
  %q = graph.add %k, %c
  %n = graph.eq %q, %c
  %w = graph.where %n, %x, %zero""", "sum", negative,
    ),
    "an integer rounded to be compared": (
        """%c = graph.constant dense<16777216> : tensor<i32>
  %f = graph.constant dense<16777220.0> : tensor<f32>
  %q = graph.add %j, %c
  %n = graph.lt %q, %f
  %w = graph.where %n, %x, %zero""", "sum", negative,
    ),
    "a quotient of integers": (
        """%y = graph.cast %x : tensor<16x24xi32>
  %c1 = graph.constant dense<1> : tensor<i32>
  %c2 = graph.constant dense<2> : tensor<i32>
  %a = graph.where %m, %y, %c1
  %b = graph.div %a, %c2
  %c = graph.mul %b, %c2
  %w = graph.cast %c : tensor<16x24xf32>""", "prod", negative,
    ),
    "an integer cut off": (
        """%y = graph.cast %x : tensor<16x24xi32>
  %c0 = graph.constant dense<0> : tensor<i32>
  %c1 = graph.constant dense<256> : tensor<i32>
  %o = graph.add %y, %c1
  %a = graph.map %m, %o, %c0 {fn = "select"} : tensor<16x24xi8>
  %d = graph.map %a, %o {fn = "sub"} : tensor<16x24xi32>
  %w = graph.cast %d : tensor<16x24xf32>""", "sum", negative,
    ),
    "a divisor of which the sign of zero shows": (
        """%x2 = graph.constant dense<2.0> : tensor<f32>
  %f = graph.where %m, %zero, %one
  %c = graph.add %x, %f
  %d = graph.mul %c, %x2
  %w = graph.reciprocal %d""", "sum", zeros,
    ),
    "a quotient of zeros of either sign": (
        """%f = graph.where %m, %one, %zero
  %c = graph.mul %x, %f
  %w = graph.reciprocal %c""", "min", negative,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps_are_what_they_are_in_their_types(name: str) -> None:
    body, monoid, prepare = STEPS[name]
    case = OneKernel.of(HEAD + "  " + body + TAIL.format(monoid))
    inputs = inputs_of(case.module, 1)
    prepare(inputs)
    wanted = np.asarray(evaluate(case.module, inputs, "native")[0], np.float64)
    for rows in (4, 8):
        schedule = case.schedule("online", 4, rows)
        nest = place_nest(case.group(), schedule)
        found = np.asarray(case.run(schedule.with_(strategy=nest.strategy), inputs)[0], np.float64)
        np.testing.assert_allclose(found, wanted, rtol=1e-5)


@pytest.mark.parametrize(
    ("value", "assumed", "left_out"),
    [
        ("graph.identity %x", True, True),
        ("graph.exp %x", True, True),  # infinite at most, and then cut off
        ("graph.log %x", False, False),  # no number, where x is negative
    ],
)
def test_between_two_numbers_a_value_may_still_be_none(value: str, assumed: bool, left_out: bool) -> None:
    """clip(NaN) is NaN: that an input is finite is assumed, and said, though it is bounded on both sides."""
    body = f"""%f = graph.where %m, %one, %zero
  %v = {value}
  %c = graph.clip %v {{low = -1.0 : f32, high = 1.0 : f32}}
  %w = graph.mul %f, %c"""
    line = line_of(HEAD + "  " + body + TAIL.format("sum"))
    assert ("assumes that x is finite" in line, "no tile is left out" not in line) == (assumed, left_out)


def line_of(text: str) -> str:
    case = OneKernel.of(text)
    (line,) = mask_lines(place_nest(case.group(), case.schedule("online", 4, 4)), "xyz")
    return line


def test_integers_are_finite() -> None:
    body = """%y = graph.cast %x : tensor<16x24xi32>
  %one1 = graph.constant dense<1> : tensor<i32>
  %zero0 = graph.constant dense<0> : tensor<i32>
  %f = graph.where %m, %one1, %zero0
  %w = graph.mul %f, %y"""
    text = HEAD.replace("%x: tensor<16x24xf32>", "%y: tensor<16x24xi32>").replace("16x1xf32", "16x1xi32")
    text += "  " + body.split("\n", 1)[1] + TAIL.format("sum").replace("16x1xf32", "16x1xi32")
    assert "assumes" not in line_of(text) and "10 of 24 tiles walked" in line_of(text)


def test_a_mask_that_is_added_is_left_out_where_no_sign_of_zero_shows() -> None:
    case = OneKernel.of(attention(CAUSAL, 32, 32, additive=True))
    (line,) = mask_lines(place_nest(case.group(), case.schedule("online", 8, 8)), "qkv")
    assert "10 of 16 tiles walked, 6 of them without masks" in line


# --- loops in loops ---------------------------------------------------------------------------------------------------

NESTED = """func.func @main(%x: tensor<24x20x12xf32>, %y: tensor<24x20x12xf32>) -> tensor<24x1x1xf32> {{
  %i = graph.iota {{dim = 0 : i64}} : tensor<24x1x1xi32>
  %j = graph.iota {{dim = 1 : i64}} : tensor<1x20x1xi32>
  %k = graph.iota {{dim = 2 : i64}} : tensor<1x1x12xi32>
  %a = graph.le %j, %i
  %b = graph.{compare} %k, {other}
  %m = graph.{join} %a, %b
  %zero = graph.constant dense<0.0> : tensor<f32>
  %u = graph.where %m, %x, %zero
  %n = graph.gt %k, %i
  %v = graph.where %n, %u, %y
  %w = graph.mul %v, %u
  %s = graph.reduce_{monoid} %w {{axes = [1, 2], keepdims}}
  func.return %s : tensor<24x1x1xf32>
}}"""


@pytest.mark.parametrize(("join", "monoid", "other"), [("and", "sum", "%i"), ("or", "max", "%j"), ("or", "sum", "%i")])
@pytest.mark.parametrize("order", ["abc", "acb"])
def test_two_loops_under_masks(join: str, monoid: str, other: str, order: str) -> None:
    """A loop inside one of which a section does without masks: what that leaves out is not there for its own masks."""
    text = NESTED.format(compare="ge", other=other, join=join, monoid=monoid)
    case = OneKernel.of(text)
    inputs = inputs_of(case.module, 1)
    set_target(case.module, "unified")
    schedule = case.schedule("resident", 4, 4).with_(tiles=(4, 5, 3), order=order, hold=(order, order))
    nest = place_nest(case.group(), schedule)
    schedule = schedule.with_(strategy=nest.strategy)
    assert len(nest.cuts) == 1
    np.testing.assert_allclose(case.run(schedule, inputs)[0], case.reference(inputs)[0], rtol=1e-5, atol=1e-5)
    module = case.kernel(schedule)
    run_pipeline(module, parse_pipeline("place,bufferize,plan,emit,sync"))
    found = analyze(module)
    assert predict(module) == found.links
    machine = target_of(module)
    estimated = estimate(nest := place_nest(case.group(), schedule), Facts(nest.group, machine))
    assert estimated.read_bytes == sum(kernel.read_bytes for kernel in found.kernels)
