"""Types of the graph dialect: what is inferred, what is refused and with which words."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from graph_build import CLASSES, context, one_op, parse, properties, tensor
from graph_cases import CASES, Case, case_id
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph import NAMED, PRIMITIVES, DimsAttr, bind_dims, shape_of, static_shape, tensor_type
from tilewright.dialects.graph_types import as_tensor, broadcast
from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException


def infer(name: str, types: Sequence[str], **values: object) -> str:
    (result,) = CLASSES[name].infer_types([tensor(t) for t in types], properties(**values))
    element = str(as_tensor(result, "").element_type)
    return "x".join([*map(str, shape_of(result)), element])


def numbered(rows: Sequence[tuple[object, ...]]) -> list[str]:
    return [f"{row[0]}-{i}" for i, row in enumerate(rows)]


INFERRED = [
    ("add", ["5x1xf16", "3xf16"], {}, "5x3xf16"),
    ("add", ["f32", "3xf16"], {}, "3xf32"),
    ("add", ["3xf16", "3xbf16"], {}, "3xf32"),
    ("mul", ["3xi8", "3xi32"], {}, "3xi32"),
    ("mul", ["3xi8", "3xf16"], {}, "3xf16"),
    ("lt", ["3xf16", "f16"], {}, "3xi1"),
    ("select", ["3x1xi1", "4xf16", "f16"], {}, "3x4xf16"),
    ("exp", ["seqx64xf16"], {}, "seqx64xf16"),
    ("add", ["seqx64xf16", "1x64xf16"], {}, "seqx64xf16"),
    ("add", ["seqx64xf16", "seqx1xf16"], {}, "seqx64xf16"),
    ("matmul", ["8xseqx64xf16", "8xseqx64xf16"], {"transpose_b": True}, "8xseqxseqxf16"),
    ("matmul", ["8x4x64xi8", "64x3xi8"], {}, "8x4x3xi32"),
    ("matmul", ["64xf32", "64xf32"], {}, "f32"),
    ("conv", ["nx3x224x224xf16", "64x3x7x7xf16"], {"strides": [2, 2], "pads": [3, 3, 3, 3]}, "nx64x112x112xf16"),
    ("softmax", ["2xseqxf16"], {"axis": -1}, "2xseqxf16"),
    ("reduce_sum", ["2xseqx4xf16"], {"axes": [-2]}, "2x4xf16"),
    ("reduce_mean", ["2xseqx4xf16"], {"axes": [1], "keepdims": True}, "2x1x4xf16"),
    ("transpose", ["2xseqx4xf16"], {"permutation": [1, 2, 0]}, "seqx4x2xf16"),
    ("transpose", ["2xseqx4xf16"], {}, "4xseqx2xf16"),
    ("slice", ["9x9xf16"], {"starts": [8, 1], "sizes": [3, 2], "steps": [-4, 7]}, "3x2xf16"),
    ("slice", ["9x9xf16"], {"starts": [0, 1], "limits": [9, 6], "steps": [4, 2]}, "3x3xf16"),
    ("concat", ["2xnxf16", "3xnxf16"], {"axis": 0}, "5xnxf16"),
    ("pad", ["2xnxf16"], {"low": [1, 0], "high": [2, 0]}, "5xnxf16"),
    ("reduce", ["2x3xf16"], {"monoid": "max", "axes": [1]}, "2x1xf16"),
    ("contract", ["2x3x4xf16", "4x5xf16"], {"spec": "abk,kn->nba"}, "5x3x2xf16"),
    ("map", ["2x3xf16", "3xf16"], {"fn": "mul"}, "2x3xf16"),
]


@pytest.mark.parametrize(("name", "types", "values", "expected"), INFERRED, ids=numbered(INFERRED))
def test_inferred(name: str, types: list[str], values: dict[str, object], expected: str) -> None:
    assert infer(name, types, **values) == expected


REFUSED = [
    ("add", ["2x3xf16", "4x3xf16"], {}, r"shapes \[2, 3\] and \[4, 3\] do not broadcast"),
    ("add", ["seqx3xf16", "lenx3xf16"], {}, r"shapes \[seq, 3\] and \[len, 3\]"),
    ("add", ["seqx3xf16", "4x3xf16"], {}, r"shapes \[seq, 3\] and \[4, 3\]"),
    ("add", ["3xf16"], {}, "takes 2 operands, got 1"),
    ("exp", ["3xi32"], {}, "takes floating-point numbers, got i32 as operand 0"),
    ("add", ["3xi1", "3xf16"], {}, "takes numbers, got i1"),
    ("and", ["3xi1", "3xf16"], {}, "takes truth values"),
    ("eq", ["3xi1", "3xf16"], {}, "mixes truth values and numbers"),
    ("where", ["3xi1", "3xf32", "3xf16"], {}, "f32 and f16"),
    ("where", ["3xf16", "3xf16", "3xf16"], {}, "got f16 as operand 0"),
    ("leaky_relu", ["3xf16"], {}, "takes alpha in 'params'"),
    ("cast", ["3xf16"], {}, "needs its result type written"),
    ("matmul", ["2x3xf16", "4x5xf16"], {}, "inner dimensions of tensor<2x3xf16> and tensor<4x5xf16>"),
    ("matmul", ["2x3xf16", "3x5xf32"], {}, "got f16 and f32"),
    ("matmul", ["2x4x3xf16", "3x3x5xf16"], {}, r"\[2\] and \[3\] do not broadcast"),
    ("matmul", ["3xf16", "3xf16"], {"transpose_b": True}, "needs a matrix"),
    ("conv", ["1x3x8x8xf16", "4x4x3x3xf16"], {}, "do not fit 1 groups"),
    ("conv", ["1x3x2x8xf16", "4x3x3x3xf16"], {}, "does not fit into"),
    ("conv", ["1x3x8x8xf16", "4x3x3x3xf16", "5xf16"], {}, r"bias of shape \[4\]"),
    ("conv", ["1x3x8x8xf16", "4x3x3x3xf16"], {"pads": [1, 1]}, "4 pads"),
    ("softmax", ["2x3xf16"], {"axis": 2}, "axis 2 is outside a tensor of rank 2"),
    ("softmax", ["2x3xi8"], {}, "got i8"),
    ("softmax", ["2x3xf16"], {"masked_rows": "one"}, "one"),
    ("gelu", ["2x3xf16"], {"approximate": "fast"}, "fast"),
    ("layer_norm", ["2x3xf16", "4xf16"], {}, r"\[2, 3\] and \[4\]"),
    ("layer_norm", ["2x3xf16", "4x2x3xf16"], {}, "does not broadcast"),
    ("reduce_sum", ["2x3xf16"], {"axes": [0, -2]}, "repeat"),
    ("reduce_mean", ["2x3xi8"], {}, "got i8"),
    ("transpose", ["2x3xf16"], {"permutation": [0, 0]}, "each of 2 axes once"),
    ("slice", ["9xf16"], {"starts": [5], "sizes": [3], "steps": [2]}, "leave tensor<9xf16>"),
    ("slice", ["9xf16"], {"starts": [5]}, "either 'sizes' or 'limits'"),
    ("slice", ["nxf16"], {"starts": [0], "sizes": [3]}, "'n'"),
    ("concat", ["2x3xf16", "2x4xf16"], {"axis": 0}, r"\[2, 3\] and \[2, 4\] do not join along axis 0"),
    ("pad", ["2xf16"], {"low": [-1], "high": [0]}, "at least 0"),
    ("map", ["2xf16"], {"fn": "expp"}, "'expp' is not known"),
    ("reduce", ["2xf16"], {"monoid": "mean", "axes": [0]}, "'mean' is not known"),
    ("reduce", ["2xi1"], {"monoid": "sum", "axes": [0]}, "got i1"),
    ("contract", ["2x3xf16", "3x4xf16"], {"spec": "mk,kn"}, "has the form"),
    ("contract", ["2x3xf16", "3x4xf16"], {"spec": "mm,kn->mn"}, "repeats a letter"),
    ("contract", ["2x3xf16", "3x4xf16"], {"spec": "mk,kn->mz"}, "'z' of the result"),
    ("contract", ["2x3xf16", "3x4xf16"], {"spec": "mk,jn->mn"}, "'k' is summed"),
    ("contract", ["2x3xf16", "4x4xf16"], {"spec": "mk,kn->mn"}, "two sizes"),
    ("exp", ["0x3xf16"], {}, "no elements"),
]


@pytest.mark.parametrize(("name", "types", "values", "message"), REFUSED, ids=numbered(REFUSED))
def test_refused_with_the_shapes_and_types(
    name: str, types: list[str], values: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message) as caught:
        infer(name, types, **values)
    assert name in caught.value.message or "operator" in caught.value.message or "monoid" in caught.value.message


WRITTEN = [
    ("add", ["3xf16", "3xf16"], "3xf32", {}, "disagrees with the inferred tensor<3xf16>"),
    ("matmul", ["2x3xf16", "3x4xf16"], "2x5xf32", {}, "disagrees"),
    ("matmul", ["2x3xf16", "3x4xf16"], "2x4xi32", {}, "disagrees"),
    ("reshape", ["6x4xf16"], "5x5xf16", {}, "keeps the number of elements"),
    ("reshape", ["nx4xf16"], "mx4xf16", {}, "keeps the number of elements"),
    ("reshape", ["6x4xf16"], "24xf32", {}, "one element type"),
    ("expand", ["3x2xf16"], "3x4xf16", {}, "broadcast"),
    ("cast", ["3xf16"], "4xf32", {}, "keeps the shape"),
    ("iota", [], "3xf32", {"dim": 1}, "axis 1 is outside"),
    ("iota", [], "3xi1", {"dim": 0}, "got i1"),
]


@pytest.mark.parametrize(("name", "types", "result", "values", "message"), WRITTEN, ids=numbered(WRITTEN))
def test_a_wrong_written_type_is_refused(
    name: str, types: list[str], result: str, values: dict[str, object], message: str
) -> None:
    with pytest.raises(VerifyException, match=message):
        one_op(name, types, result, **values)


VIEWS = [
    ("maps = [affine_map<(d0) -> (d0 + 1)>]", "3", "leaves operand tensor<3xf16>"),
    ("maps = [affine_map<(d0) -> (d0, d0)>]", "3", "takes 1 and gives 1 indices"),
    ("maps = []", "3", "one map for each of 1 operands"),
    ("maps = [affine_map<(d0) -> (d0)>], fill = 0.0 : f16", "3", "no uncovered part"),
    ("maps = [affine_map<(d0) -> (d0)>], lower = [array<i64: 0>], upper = [array<i64: 3>]", "5", "needs 'fill'"),
    ("maps = [affine_map<(d0) -> (d0)>], lower = [array<i64: 0>], upper = [array<i64: 6>]", "5", "outside the output"),
    ("maps = [affine_map<(d0) -> (d0)>], lower = [array<i64: 0>]", "5", "needs 'upper'"),
    ("maps = [affine_map<(d0) -> ((d0 * 3) floordiv 8 + d0 mod 5)>]", "7", "leaves operand"),
]


@pytest.mark.parametrize(("text", "size", "message"), VIEWS)
def test_views_that_make_no_sense_are_refused(text: str, size: str, message: str) -> None:
    out = f"tensor<{size}xf16>"
    with pytest.raises(VerifyException, match=message):
        parse(
            f"func.func @main(%x: tensor<3xf16>) -> {out} {{\n"
            f'  %r = "graph.view"(%x) <{{{text}}}> : (tensor<3xf16>) -> {out}\n  func.return %r : {out}\n}}'
        )


def test_overlapping_boxes_are_refused() -> None:
    with pytest.raises(VerifyException, match="overlap"):
        parse("""func.func @main(%x: tensor<3xf16>) -> tensor<5xf16> {
          %r = "graph.view"(%x, %x) <{maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0 - 2)>],
            lower = [array<i64: 0>, array<i64: 2>], upper = [array<i64: 3>, array<i64: 5>]}>
            : (tensor<3xf16>, tensor<3xf16>) -> tensor<5xf16>
          func.return %r : tensor<5xf16>
        }""")


FUSED = """func.func @main(%x: tensor<3xf16>) -> tensor<3xf16> {
  %r = "graph.fused"(%x) ({
  ^bb0(%a: tensor<3xf16>):
    %y = "graph.exp"(%a) : (tensor<3xf16>) -> tensor<3xf16>
    "graph.yield"(%y) : (tensor<3xf16>) -> ()
  }) : (tensor<3xf16>) -> tensor<3xf16>
  func.return %r : tensor<3xf16>
}"""


def test_fused_regions_are_checked() -> None:
    parse(FUSED)
    other_argument = FUSED.replace("%a: tensor<3", "%a: tensor<4").replace("(%a) : (tensor<3", "(%a) : (tensor<4")
    other_argument = other_argument.replace("-> tensor<3xf16>\n    ", "-> tensor<4xf16>\n    ")
    with pytest.raises(VerifyException, match="block arguments"):
        parse(other_argument.replace("%y) : (tensor<3", "%y) : (tensor<4"))
    other_result = FUSED.replace("}) : (tensor<3xf16>) -> tensor<3xf16>", "}) : (tensor<3xf16>) -> tensor<3xf32>")
    with pytest.raises(VerifyException, match="yields"):
        parse(other_result.replace("return %r", "return %x"))


@pytest.mark.parametrize("case", CASES, ids=case_id)
def test_the_generic_text_is_read_back(case: Case) -> None:
    name, types, result, values = case
    module = one_op(name, types, result, **values)
    again = Parser(context(), str(module)).parse_module()
    again.verify()
    assert module.is_structurally_equivalent(again)


def test_every_op_has_a_description() -> None:
    for op in (*NAMED, *PRIMITIVES):
        assert op.__doc__ and not op.__doc__.startswith("A pure op"), op.name


def test_symbolic_dimensions() -> None:
    type_ = tensor("seqx64xf16")
    assert str(type_) == 'tensor<?x64xf16, #graph.dims<["seq"]>>'
    assert bind_dims(type_, {"seq": 512}) == tensor("512x64xf16")
    assert bind_dims(type_, {"other": 512}) == type_
    assert bind_dims(DimsAttr(["a"]), {"a": 1}) == DimsAttr(["a"])
    with pytest.raises(UserError, match="--dim seq"):
        static_shape(type_)
    with pytest.raises(UserError, match=r"1 `\?` and 0 names"):
        shape_of(tensor_type(as_tensor(type_, "").element_type, [DYNAMIC_INDEX]))
    assert broadcast([("n", 1, 3), (4, 1)], "x") == ("n", 4, 3)


def test_the_semantics_names_every_op_and_operator() -> None:
    text = "".join(path.read_text() for path in (Path(__file__).parent.parent / "docs").rglob("*.md"))
    for op in PRIMITIVES:
        assert f"`{op.name}" in text, op.name
    for op in NAMED:
        scalar = op.name.removeprefix("graph.")
        assert f"`{op.name}" in text or f"`{scalar}`" in text, op.name
