"""Operators found in programs: whatever the spelling, only what is the same, and only where nothing else needs it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from operator_library import LIBRARY, SPELLED, program, respellings
from tilewright.dialects.graph_fused import FusedOp
from tilewright.dialects.operators import KERNEL

import tilewright
from tilewright.library import read_library

LIBRARIES = {text: read_library(text) for text in (LIBRARY,)}


def matched(text: str, library: str = LIBRARY) -> tilewright.Program:
    return tilewright.compile(text, "unified", use=[LIBRARIES.get(library, library)], to="match", check=False)


def groups(found: tilewright.Program) -> int:
    return sum(isinstance(op, FusedOp) and KERNEL in op.attributes for op in found.module.walk())


def same_results(found: tilewright.Program) -> None:
    """The program after `match` gives what its source is in float64."""
    run = found.run(seed=3, level="graph")
    wanted = found.reference(run.inputs)
    assert wanted is not None
    for one, two in zip(run.outputs.values(), wanted, strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@settings(max_examples=12, deadline=None)
@given(respellings())
def test_every_spelling_is_found(text: str) -> None:
    found = matched(text)
    assert groups(found) == 1, (text, [str(warning) for warning in found.warnings])
    assert [op.name for op in found.module.walk() if op.name.startswith("graph.") and op.parent_op() is not None
            and op.parent_op().name == "func.func"] == ["graph.fused"]  # fmt: skip
    same_results(found)


NEAR = {
    "another constant": ("dense<0.5>", "dense<0.25>", "the constant 0.25"),
    "another sign of zero": ("dense<1.0>", "dense<-1.0>", "the constant -1.0"),
    "another operator": ("graph.exp", "graph.tanh", "'tanh', the operator has 'exp'"),
    "operands that do not commute": ("graph.sub %h, %one", "graph.sub %one, %h", ""),
    "another axis": ("%v {transpose_b}\n", '%v {transpose_b}\n  %z = graph.transpose %u\n', None),
    "another monoid": ("reduce_sum", "reduce_max", "'max' over axes [1], the operator has 'sum' over axes [1]"),
    "rounded in between": ("%e = graph.exp %d", "%c = graph.cast %d : tensor<12x8xf16>\n  %k = graph.cast %c : "
                           "tensor<12x8xf32>\n  %e = graph.exp %k", "'cast', the operator has 'sub'"),
    "another operand": ("graph.mul %e, %u", "graph.mul %e, %e", ""),
    "another summand": ("{transpose_b}", "{transpose_b}\n  %s2 = graph.add %s, %u", None),
}  # fmt: skip


@pytest.mark.parametrize("case", NEAR)
def test_what_is_not_the_same_is_not_found(case: str) -> None:
    old, new, reason = NEAR[case]
    body = SPELLED.replace(old, new, 1)
    assert body != SPELLED
    if case == "another axis":
        body = body.replace("%p {axes = [1], keepdims}", "%p {axes = [0], keepdims}")
        body += "  %y2 = graph.transpose %y\n"
        text = program(body, "%y2", "tensor<8x1xf32>")
    else:
        text = program(body if case != "another summand" else body.replace("%h = graph.mul %s,", "%h = graph.mul %s2,"))
    found = matched(text)
    assert groups(found) == 0
    (warning,) = found.warnings
    assert "@weighted" in warning.message and warning.line > 0
    if reason:
        assert any(reason in note.message for note in warning.notes), warning
    same_results(found)


@pytest.mark.parametrize(
    ("extra", "count"),
    [
        ("  %z = graph.neg %e\n", 0),  # inside, and needed outside
        ("  %z = graph.neg %half\n", 1),  # a constant: needed anywhere
        ("  %z = graph.neg %y\n", 1),  # what it gives
    ],
)
def test_values_needed_outside(extra: str, count: int) -> None:
    kind = {"%e": "tensor<12x8xf32>", "%half": "tensor<f32>", "%y": "tensor<12x1xf32>"}[extra.split()[-1]]
    text = program(SPELLED + extra, "%y, %z", f"tensor<12x1xf32>, {kind}").replace(
        f"return %y, %z : tensor<12x1xf32>, {kind}", f"return %y, %z : tensor<12x1xf32>, {kind}"
    )
    found = matched(text)
    assert groups(found) == count
    same_results(found)
    if not count:
        (warning,) = found.warnings
        assert any("is used outside of the operator" in note.message for note in warning.notes)


def test_a_value_returned_is_needed_outside() -> None:
    found = matched(program(SPELLED, "%y, %p", "tensor<12x1xf32>, tensor<12x8xf32>"))
    assert groups(found) == 0


def test_two_occurrences_may_share_what_is_inside_of_both() -> None:
    """After common subexpressions have become one; each kernel computes it, as for two calls."""
    second = SPELLED.split("  %p = ")[1].replace("%u", "%t").replace("%y", "%z").replace("%p", "%r")
    body = SPELLED + "  %t = graph.neg %u\n  %r = " + second
    text = program(body, "%y, %z", "tensor<12x1xf32>, tensor<12x1xf32>")
    found = matched(text)
    assert groups(found) == 2
    same_results(found)
    text = program(body + "  %q = graph.neg %e\n", "%y, %z, %q", "tensor<12x1xf32>, tensor<12x1xf32>, tensor<12x8xf32>")
    assert groups(matched(text)) == 0


TWICE = """tile.kernel @k(%0: tensor<4xf32>) -> (%1: tensor<4xf32>) {
  %2 = tile.load %0 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>} : !tile.tile<4xf32>
  %3 = tile.map %2 {fn = "tanh"} : !tile.tile<4xf32>
  %4 = tile.map %3 {fn = "tanh"} : !tile.tile<4xf32>
  tile.store %4, %1 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>}
}
func.func private @twice(%a: tensor<4xf32>) -> tensor<4xf32> attributes {tilewright.kernels = [@k]} {
  %b = graph.tanh %a
  %c = graph.tanh %b
  return %c : tensor<4xf32>
}
"""


@pytest.mark.parametrize("length", range(1, 8))
def test_occurrences_do_not_overlap(length: int) -> None:
    """Of a chain of n every second one is the end of an occurrence."""
    lines = "".join(f"  %x{n + 1} = graph.tanh %x{n}\n" for n in range(length))
    text = f"func.func @main(%x0: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}  return %x{length} : tensor<4xf32>\n}}\n"
    found = matched(text, TWICE)
    assert groups(found) == length // 2
    same_results(found)


SEVERAL = """tile.kernel @k(%0: tensor<4xf32>, %1: tensor<4xf32>) -> (%2: tensor<4xf32>, %3: tensor<4xf32>) {
  %4 = tile.load %0 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>} : !tile.tile<4xf32>
  %5 = tile.load %1 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>} : !tile.tile<4xf32>
  %6 = tile.map %4 {fn = "exp"} : !tile.tile<4xf32>
  %7 = tile.map %6, %5 {fn = "add"} : !tile.tile<4xf32>
  tile.store %6, %2 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>}
  tile.store %7, %3 {map = affine_map<(d0) -> (d0)>, valid = affine_map<() -> (4)>}
}
func.func private @both(%a: tensor<4xf32>, %b: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    attributes {tilewright.kernels = [@k]} {
  %e = graph.exp %a
  %s = graph.add %e, %b
  return %e, %s : tensor<4xf32>, tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("body", "count"),
    [
        # the first result is used before the second is made
        ("  %e = graph.exp %x\n  %n = graph.neg %e\n  %s = graph.add %y, %e\n", 1),
        # the second argument is made from the first result: nobody could compute both at once
        ("  %e = graph.exp %x\n  %n = graph.neg %e\n  %s = graph.add %n, %e\n", 0),
    ],
)
def test_an_operator_of_several_results(body: str, count: int) -> None:
    kind = "tensor<4xf32>"
    text = (
        f"func.func @main(%x: {kind}, %y: {kind}) -> ({kind}, {kind}) {{\n{body}  return %n, %s : {kind}, {kind}\n}}\n"
    )
    found = matched(text, SEVERAL)
    assert groups(found) == count
    same_results(found)
    program_ = tilewright.compile(text, "unified", use=[SEVERAL])
    assert max(program_.run(seed=1).errors().values()) < 1e-5  # type: ignore[type-var]


def test_an_occurrence_may_take_what_another_one_gives() -> None:
    lines = (
        "  %a = graph.tanh %x\n  %b = graph.tanh %a\n  %c = graph.neg %b\n  %d = graph.tanh %c\n  %e = graph.tanh %d\n"
    )
    text = f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n{lines}  return %e : tensor<4xf32>\n}}\n"
    found = matched(text, TWICE)
    assert groups(found) == 2
    same_results(found)


def test_a_pattern_with_many_equal_parts_ends() -> None:
    """Each of the sums has two orders: without a bound there would be millions of ways to try."""
    terms = "".join(f"  %s{n + 1} = graph.add %s{n}, %t{n % 2}\n" for n in range(24))
    body = f"  %t0 = graph.tanh %a\n  %t1 = graph.tanh %b\n  %s0 = graph.exp %a\n{terms}  %r = graph.mul %s24, %b\n"
    kinds = "%a: tensor<4xf32>, %b: tensor<4xf32>"
    library = TWICE.split("func.func")[0].replace("(%0: tensor<4xf32>)", "(%0: tensor<4xf32>, %9: tensor<4xf32>)") + (
        f"func.func private @many({kinds}) -> tensor<4xf32> attributes {{tilewright.kernels = [@k]}} {{\n"
        f"{body}  return %r : tensor<4xf32>\n}}\n"
    )
    text = f"func.func @main({kinds}) -> tensor<4xf32> {{\n{body}  return %r : tensor<4xf32>\n}}\n"
    found = tilewright.compile(text.replace("%r = graph.mul %s24, %b", "%r = graph.mul %s24, %a"), "unified",
                               use=[library], to="match", check=False)  # fmt: skip
    assert groups(found) == 0
