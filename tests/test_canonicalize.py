"""Canonicalization: what each rule does, what is left alone, and that no bit of any result changes."""

from __future__ import annotations

import numpy as np
import pytest
from graph_build import context, one_op, parse, sample_all
from graph_cases import CASES, Case, case_id
from hypothesis import example, given, settings
from hypothesis import strategies as st
from random_graph import random_program
from tilewright.dialects.graph_base import GraphOp
from tilewright.dialects.graph_primitives import MapOp
from tilewright.lowering.canonicalize import CanonicalizePass
from tilewright.lowering.decompose import DecomposePass
from tilewright.runtime.reference import evaluate
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, IntegerAttr, ModuleOp, StringAttr, i64


def canonical(module: ModuleOp, fold_limit: int = 65536) -> ModuleOp:
    result = module.clone()
    CanonicalizePass(fold_limit=fold_limit).apply(context(), result)
    result.verify()
    return result


def ops(module: ModuleOp) -> list[str]:
    """Names of the graph ops in order, with the scalar operator of a map."""
    names: list[str] = []
    for op in module.walk():
        if isinstance(op, GraphOp):
            scalar = f".{op.fn.data}" if isinstance(op, MapOp) else ""
            names.append(op.name.removeprefix("graph.") + scalar)
    return names


def body(lines: str, argument: str = "tensor<2x3xf32>", result: str | None = None) -> ModuleOp:
    """A function of %x that runs `lines` and returns %r."""
    out = result or argument
    return parse(f"func.func @main(%x: {argument}) -> {out} {{\n{lines}\nfunc.return %r : {out}\n}}")


def binary(fn: str, constant: str, kind: str = "f32", first: bool = False, shape: str = "") -> ModuleOp:
    tensor, known = f"tensor<2x3x{kind}>", f"tensor<{shape}{kind}>"
    args, types = (
        ("%c, %x", f"tensor<{shape}{kind}>, {tensor}") if first else ("%x, %c", f"{tensor}, tensor<{shape}{kind}>")
    )
    return body(
        f'%c = "graph.constant"() <{{value = dense<{constant}> : {known}}}> : () -> {known}\n'
        f'%r = "graph.map"({args}) <{{fn = "{fn}"}}> : ({types}) -> {tensor}',
        tensor,
    )


@pytest.mark.parametrize(
    "module",
    [
        binary("add", "-0.0"),
        binary("add", "-0.0", first=True),
        binary("add", "0", "i32"),
        binary("sub", "0.0"),
        binary("mul", "1.0"),
        binary("mul", "1.0", first=True),
        binary("mul", "1", "i8"),
        binary("div", "1.0"),
        binary("pow", "1.0"),
        binary("max", '"0x000080FF"'),
        binary("min", '"0x0000807F"'),
        binary("and", "true", "i1"),
        binary("or", "false", "i1"),
        binary("mul", "1.0", shape="1x3x"),
    ],
)
def test_identities_go(module: ModuleOp) -> None:
    assert ops(canonical(module)) == []


@pytest.mark.parametrize(
    ("module", "why"),
    [
        (binary("add", "0.0"), "turns −0 into +0"),
        (binary("sub", "-0.0"), "turns −0 into +0"),
        (binary("sub", "0.0", first=True), "0 − x is not x"),
        (binary("mul", "0.0"), "NaN and infinities"),
        (binary("div", "1.0", first=True), "1 / x is not x"),
        (binary("max", "0.0"), "not the identity"),
        (binary("add", "1.0"), "not the identity"),
    ],
)  # fmt: skip
def test_what_is_not_an_identity_stays(module: ModuleOp, why: str) -> None:
    assert len(ops(canonical(module))) == 2, why


@pytest.mark.parametrize(
    "module", [binary("mul", "0", "i32"), binary("and", "false", "i1"), binary("or", "true", "i1")]
)
def test_absorbing_values_become_constants(module: ModuleOp) -> None:
    assert ops(canonical(module)) == ["constant"]


def test_an_identity_that_changes_the_type_stays() -> None:
    module = body(
        '%c = "graph.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>\n'
        '%r = "graph.map"(%x, %c) <{fn = "mul"}> : (tensor<3xf16>, tensor<f32>) -> tensor<3xf32>',
        "tensor<3xf16>",
        "tensor<3xf32>",
    )
    assert ops(canonical(module)) == ["constant", "map.mul"]
    assert ops(canonical(body(
        '%c = "graph.constant"() <{value = dense<1.0> : tensor<4x3xf32>}> : () -> tensor<4x3xf32>\n'
        '%r = "graph.map"(%x, %c) <{fn = "mul"}> : (tensor<3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>',
        "tensor<3xf32>", "tensor<4x3xf32>",
    ))) == ["constant", "map.mul"]  # fmt: skip


UNARY = 'graph.{0}"(%x) : ({1}) -> {1}\n%r = "graph.{0}"(%y) : ({1}) -> {1}'


@pytest.mark.parametrize(
    ("fn", "type_", "left"),
    [("neg", "tensor<3xf32>", []), ("not", "tensor<3xi1>", []), ("abs", "tensor<3xi8>", ["abs"]),
     ("relu", "tensor<3xf16>", ["relu"]),
     ("exp", "tensor<3xf32>", ["exp", "exp"])],
)  # fmt: skip
def test_repeated_operators(fn: str, type_: str, left: list[str]) -> None:
    assert ops(canonical(body('%y = "' + UNARY.format(fn, type_), type_))) == left


@pytest.mark.parametrize("fn", ["max", "min"])
def test_the_same_value_twice(fn: str) -> None:
    module = body(f'%r = "graph.{fn}"(%x, %x) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>', "tensor<3xf32>")
    assert ops(canonical(module)) == []


def test_casts_and_selects() -> None:
    assert ops(canonical(one_op("cast", ["3xf16"], "3xf16"))) == []
    assert ops(canonical(one_op("cast", ["3xf16"], "3xf32"))) == ["cast"]
    known = body(
        '%c = "graph.constant"() <{value = dense<true> : tensor<i1>}> : () -> tensor<i1>\n'
        '%y = "graph.exp"(%x) : (tensor<3xf32>) -> tensor<3xf32>\n'
        '%r = "graph.select"(%c, %x, %y) : (tensor<i1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>',
        "tensor<3xf32>",
    )
    assert ops(canonical(known)) == []


TWO_VIEWS = """
%y = "graph.view"(%x) <{maps = [affine_map<(d0, d1) -> (d1, d0)>]}> : (tensor<2x3xf32>) -> tensor<3x2xf32>
%r = "graph.view"(%y) <{maps = [affine_map<MAP>]BOX}> : (tensor<3x2xf32>) -> OUT
"""


@pytest.mark.parametrize(
    ("map_", "box", "out", "left"),
    [
        ("(d0, d1) -> (d1, d0)", "", "tensor<2x3xf32>", []),
        ("(d0) -> (d0 floordiv 2, d0 mod 2)", "", "tensor<6xf32>", ["(d0) -> ((d0 mod 2), (d0 floordiv 2))"]),
        ("(d0, d1) -> (d0 - 1, d1)", ", lower = [array<i64: 1, 0>], upper = [array<i64: 4, 2>], fill = 0.0 : f32",
         "tensor<5x2xf32>", ["(d0, d1) -> (d1, (d0 + -1))"]),
    ],
)  # fmt: skip
def test_a_view_of_a_view_is_one_view(map_: str, box: str, out: str, left: list[str]) -> None:
    module = body(TWO_VIEWS.replace("MAP", map_).replace("BOX", box).replace("OUT", out), result=out)
    after = canonical(module)
    assert [str(op.affine_maps[0]) for op in after.walk() if op.name == "graph.view"] == left  # type: ignore[attr-defined]
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert np.array_equal(evaluate(module, [x])[0], evaluate(after, [x])[0])


def test_a_view_of_a_padded_view_stays() -> None:
    module = body(
        '%y = "graph.view"(%x) <{maps = [affine_map<(d0) -> (d0 - 1)>], lower = [array<i64: 1>], '
        "upper = [array<i64: 4>], fill = 0.0 : f32}> : (tensor<3xf32>) -> tensor<5xf32>\n"
        '%r = "graph.view"(%y) <{maps = [affine_map<(d0) -> (d0 * 2)>]}> : (tensor<5xf32>) -> tensor<3xf32>',
        "tensor<3xf32>",
    )
    assert ops(canonical(module)) == ["view", "view"]


def test_named_movement_collapses() -> None:
    module = body(
        '%a = "graph.transpose"(%x) : (tensor<2x3xf32>) -> tensor<3x2xf32>\n'
        '%b = "graph.transpose"(%a) <{permutation = array<i64: 1, 0>}> : (tensor<3x2xf32>) -> tensor<2x3xf32>\n'
        '%c = "graph.reshape"(%b) : (tensor<2x3xf32>) -> tensor<6xf32>\n'
        '%r = "graph.reshape"(%c) : (tensor<6xf32>) -> tensor<2x3xf32>'
    )
    assert ops(canonical(module)) == []


FOLD = """
%a = "graph.constant"() <{value = dense<[1.0, 2.0, 3.0]> : tensor<3xf16>}> : () -> tensor<3xf16>
%b = "graph.exp"(%a) : (tensor<3xf16>) -> tensor<3xf16>
%c = "graph.view"(%b) <{maps = [affine_map<(d0, d1) -> (d1)>]}> : (tensor<3xf16>) -> tensor<2x3xf16>
%r = "graph.add"(%x, %c) : (tensor<2x3xf16>, tensor<2x3xf16>) -> tensor<2x3xf16>
"""


def test_constants_fold_up_to_the_limit() -> None:
    module = body(FOLD, "tensor<2x3xf16>")
    assert ops(canonical(module)) == ["constant", "add"]
    assert ops(canonical(module, fold_limit=5)) == ["constant", "view", "add"]
    assert ops(canonical(module, fold_limit=2)) == ["constant", "exp", "view", "add"]
    x = np.zeros((2, 3), np.float16)
    for limit in (2, 5, 100):
        after = canonical(module, fold_limit=limit)
        assert evaluate(module, [x], "native")[0].tobytes() == evaluate(after, [x], "native")[0].tobytes()


def test_common_and_dead_values_go() -> None:
    module = body(
        '%a = "graph.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        '%b = "graph.exp"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        '%d = "graph.sqrt"(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        '%r = "graph.add"(%a, %b) : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>'
    )
    assert ops(canonical(module)) == ["exp", "add"]


def test_location_and_origin_are_kept() -> None:
    module = body(FOLD, "tensor<2x3xf16>")
    (exp,) = [op for op in module.walk() if op.name == "graph.exp"]
    exp.location = FileLineColLoc(StringAttr("a.mlir"), IntAttr(2), IntAttr(1))
    exp.attributes["tilewright.origin"] = IntegerAttr(7, i64)
    after = canonical(module, fold_limit=5)
    constants = [op for op in after.walk() if op.name == "graph.constant"]
    assert [(op.location, op.attributes) for op in constants] == [(exp.location, exp.attributes)]


def test_fused_regions_are_simplified_too() -> None:
    module = body(
        '%r = "graph.fused"(%x) ({\n^bb0(%a: tensor<2x3xf32>):\n'
        '%n = "graph.map"(%a) <{fn = "neg"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        '%m = "graph.map"(%n) <{fn = "neg"}> : (tensor<2x3xf32>) -> tensor<2x3xf32>\n'
        '"graph.yield"(%m) : (tensor<2x3xf32>) -> ()\n}) : (tensor<2x3xf32>) -> tensor<2x3xf32>'
    )
    assert ops(canonical(module)) == []


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_decomposed_ops_keep_every_bit(case: Case) -> None:
    name, types, result, values = case
    module = one_op(name, types, result, **values)
    DecomposePass().apply(context(), module)
    inputs = sample_all(types, seed=2)
    before, after = evaluate(module, inputs, "native"), evaluate(canonical(module), inputs, "native")
    assert [a.tobytes() for a in before] == [a.tobytes() for a in after]


@settings(max_examples=60, deadline=None)
@example(1273653)  # operands that become one value
@given(st.integers(0, 1 << 30))
def test_random_programs_keep_every_bit(seed: int) -> None:
    module, inputs = random_program(seed)
    after = canonical(module)
    before = evaluate(module, inputs, "native")
    assert [a.tobytes() for a in before] == [a.tobytes() for a in evaluate(after, inputs, "native")]
    assert ops(canonical(after)) == ops(after)
