"""What is printed reads back as the same module and prints the same again (I1), in both forms and at every level."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_programs import Case, programs
from text_programs import context, modules
from tilewright.dialects.target import set_target
from tilewright.dialects.verify import verify_module
from tilewright.ir.names import base_name
from tilewright.ir.source import load_module, parse_module, print_module
from tilewright.lowering.pipeline import PIPELINE, parse_pipeline
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.passes import ModulePass

QUICK = settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))


def names_of(module: ModuleOp) -> list[str | None]:
    return [base_name(result.name_hint) for op in module.walk() for result in op.results]


def check_round_trip(module: ModuleOp, form: str = "both") -> None:
    """Every combination of form and locations; the two forms say the same; xDSL reads the generic one."""
    for locations in (False, True):
        read: list[ModuleOp] = []
        for generic in (False, True):
            text = print_module(module, generic, locations)
            again = parse_module(text, context=context())
            assert module.is_structurally_equivalent(again), text
            assert print_module(again, generic, locations) == text
            assert names_of(again) == names_of(module)
            if locations:
                assert places(again) == places(module)
            read.append(again)
            if generic:
                oracle = Parser(context(), text).parse_module()
                assert oracle.is_structurally_equivalent(module), text
        assert print_module(read[0]) == print_module(read[1])


def places(module: ModuleOp) -> list[object]:
    """The locations of all operations but the module's own, which an omitted wrapper does not say."""
    return [op.location for op in module.walk() if not isinstance(op, ModuleOp)]


@given(case=modules())
@QUICK
def test_random_modules(case: Case) -> None:
    check_round_trip(case.module)


@given(case=programs())
@settings(QUICK, max_examples=8)
def test_graph_programs(case: Case) -> None:
    check_round_trip(case.module)


@pytest.mark.parametrize("target", ["davinci", "unified{memory.scratchpad.bytes=8KiB}"])
@given(case=programs())
@settings(QUICK, max_examples=2)
def test_every_dump_of_the_pipeline_is_where_it_continues(target: str, case: Case) -> None:
    module = case.module.clone()
    set_target(module, target)
    for pass_ in pipeline():
        from_text = parse_module(print_module(module, locations=True))
        pass_.apply(context(), module)
        pass_.apply(context(), from_text)
        assert print_module(from_text, locations=True) == print_module(module, locations=True)
        verify_module(module)
        check_round_trip(module)


def pipeline() -> list[ModulePass]:
    """All passes, searching little."""
    quick = {"fuse": "fuse{effort=4}", "schedule": "schedule{effort=4}"}
    present = [name for name in PIPELINE if find_spec(f"tilewright.lowering.{name}")]
    return parse_pipeline(",".join(quick.get(name, name) for name in present))


SAMPLE = """\
#map = affine_map<(d0) -> (d0 + 1)>
!row = tensor<8xf32>
// A comment, with "quotes" and { brackets.
module @sample attributes {a.flag, note = "x"} {
  func.func private @declared(i32 {a}, !row) -> (i32, i64 {b = 1})
  func.func @f(%x: tensor<8xf32> loc("other.mlir":7:9)) -> tensor<8xf32> {
    %c = graph.constant dense<0.5> : tensor<8xf32>
    %y = "graph.add"(%x, %c) : (!row, !row) -> !row loc("a.mlir":1:2)
    %z = graph.mul %y, // operands may be apart
      %c
    func.return %z : tensor<8xf32>
  }
  tile.kernel @k(%x: tensor<8xf32>) -> (%o: tensor<8xf32>) attributes {test.tag} {
    %0 = tile.for %i = 0 to 8 iter (%acc = %x) {axis = "m"} : tensor<8xf32> {
      tile.for %j = 0 to #map(%i) { tile.yield }
      tile.yield %acc
    }
  }
}
"""


def test_headers_and_sugar() -> None:
    module, sources = load_module(SAMPLE)
    check_round_trip(module)
    text = print_module(module)
    assert "func.func private @declared(i32 {a}, tensor<8xf32>) -> (i32, i64 {b = 1 : i64})" in text
    assert '%0 = tile.for %i = 0 to 8 iter (%acc = %x) {axis = "m"} : tensor<8xf32> {' in text
    assert "%c = graph.constant dense<5.000000e-01> : tensor<8xf32>" in text
    assert "tile.for %j = 0 to affine_map<(d0) -> ((d0 + 1))>(%i) {" in text
    assert sources.resolve("w.safetensors").name == "w.safetensors"


def test_every_op_has_the_place_it_was_written_at() -> None:
    module, _ = load_module(SAMPLE)
    found: dict[str, tuple[str, int, int]] = {}
    for op in module.walk():
        assert isinstance(op.location, FileLineColLoc)
        place = op.location
        found.setdefault(op.name, (place.filename.data, place.line.data, place.column.data))
    assert found["graph.constant"] == ("<text>", 7, 10)
    assert found["graph.add"] == ("a.mlir", 1, 2)
    assert found["graph.mul"] == ("<text>", 9, 10)


def test_generic_fallback_where_a_header_does_not_fit() -> None:
    text = """\
"func.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({
^bb0(%0: i64):
  "test.termop"() : () -> ()
}) : () -> ()
"""
    module = parse_module(text, context=context())
    assert print_module(module).startswith('"func.func"() <{sym_name = "f", function_type')
    check_round_trip(module)


def test_an_attribute_named_like_a_property_keeps_apart() -> None:
    module = parse_module('"test.op"() <{prop1 = 1}> {prop1 = 2} : () -> ()\n', context=context())
    assert '"test.op"() <{prop1 = 1 : i64}> {prop1 = 2 : i64}' in print_module(module)
    check_round_trip(module)


def test_blocks_and_branches() -> None:
    text = """\
"test.op"() ({
^one(%a: i32):
  test.termop %a [^two, ^one]
^two:
  test.termop [^one] {k}
}) : () -> ()
"""
    module = parse_module(text, context=context())
    check_round_trip(module)


def test_result_packs_and_indices() -> None:
    module = parse_module("%a:2, %b = test.op : i32, i64, i1\ntest.op %a#0, %a#1, %b\n", context=context())
    last = module.body.block.last_op
    assert isinstance(last, Operation)
    assert [str(operand.type) for operand in last.operands] == ["i32", "i64", "i1"]
    check_round_trip(module)


def test_names_are_kept_and_unique() -> None:
    module = parse_module("%x = test.op : i32\n%y = test.op %x : i32\n%7 = test.op %y : i32\n", context=context())
    first = module.body.block.first_op
    assert first is not None and first.next_op is not None
    first.next_op.results[0].name_hint = "x"
    assert print_module(module) == "%x = test.op : i32\n%x_1 = test.op %x : i32\n%0 = test.op %x_1 : i32\n"


def test_siblings_reuse_names_and_isolated_regions_start_afresh() -> None:
    text = "func.func @f(%x: i32) {\n  func.return\n}\nfunc.func @g(%x: i32) {\n  func.return\n}\n"
    assert print_module(parse_module(text)) == text


def test_symbolic_dimensions_are_bound() -> None:
    text = 'func.func @f(%x: tensor<?x?xf32, #graph.dims<["n", "m"]>>) {\n  func.return\n}\n'
    assert print_module(parse_module(text)) == text
    assert "tensor<4x8xf32>" in print_module(parse_module(text, dims={"n": 4, "m": 8}))
    assert 'tensor<4x?xf32, #graph.dims<["m"]>>' in print_module(parse_module(text, dims={"n": 4}))


@given(text=st.text(max_size=30))
@settings(QUICK, max_examples=100)
def test_strings_keep_their_characters(text: str) -> None:
    from xdsl.dialects.builtin import StringAttr
    from xdsl.dialects.test import TestOp

    module = ModuleOp([TestOp(attributes={"s": StringAttr(text)})])
    printed = print_module(module)
    # A text of both escaped and non-ASCII characters cannot be told from bytes; everything else comes back.
    if text.isascii() or (text.isprintable() and not set(text) & set('"\\')):
        assert parse_module(printed, context=context()).is_structurally_equivalent(module)
