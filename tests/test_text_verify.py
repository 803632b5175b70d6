"""verify_module: definitions before uses, isolation, and the operation at fault by its location."""

from __future__ import annotations

import time

import pytest
from machine_programs import lines, local, program, view
from text_programs import context
from tilewright.dialects.errors import UserError
from tilewright.dialects.verify import verify_module
from tilewright.ir.source import parse_module
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, i32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.dialects.test import TestOp as Op
from xdsl.ir import Block, Region


def parsed(text: str) -> ModuleOp:
    return parse_module(text, context=context())


def failure(module: ModuleOp) -> UserError:
    with pytest.raises(UserError) as caught:
        verify_module(module)
    return caught.value


def test_use_before_definition() -> None:
    module = parsed("%x = test.op : i32\ntest.op %x\n")
    first = module.body.block.first_op
    assert first is not None
    first.detach()
    module.body.block.add_op(first)
    error = failure(module)
    assert error.message == "'test.op' uses %x (operand 0) before its definition"
    assert isinstance(error.location, FileLineColLoc) and error.location.line.data == 2
    assert error.notes[0][0] == "it is defined here"


def test_value_outside_of_its_region() -> None:
    inner = Op(result_types=[i32])
    module = ModuleOp([Op(regions=[Region(Block([inner]))]), Op(operands=[inner.results[0]])])
    assert "outside of the region that defines it" in failure(module).message


def test_value_of_an_erased_operation() -> None:
    lost = Op(result_types=[i32])
    assert "not part of the module any more" in failure(ModuleOp([Op(operands=[lost.results[0]])])).message


def test_isolated_operations_see_nothing() -> None:
    outer = Op(result_types=[i32])
    function = FuncOp("f", ([], []), Region(Block([Op(operands=[outer.results[0]]), ReturnOp()])))
    assert "'func.func' sees nothing of its surroundings" in failure(ModuleOp([outer, function])).message


def test_an_operation_does_not_see_its_own_result() -> None:
    op = Op(result_types=[i32], regions=[Region(Block())])
    op.regions[0].block.add_op(Op(operands=[op.results[0]]))
    assert "before its definition" in failure(ModuleOp([op])).message


def test_branches() -> None:
    text = """\
"test.op"() ({
^a:
  %x = test.op : i32
  test.termop [^b, ^c]
^b:
  %y = test.op %x : i32
  test.termop [^c]
^c:
  test.termop %x
}) : () -> ()
"""
    verify_module(parsed(text))
    assert "uses %y" in failure(parsed(text.replace("test.termop %x", "test.termop %y"))).message


def test_verifiers_of_operations_say_where() -> None:
    text = "func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> {\n  func.return %a : tensor<4xf32>\n}\n"
    error = failure(parsed(text))
    assert isinstance(error.location, FileLineColLoc) and error.location.line.data == 2
    assert "\n" not in error.message and "builtin.module" not in error.message


def test_missing_terminator() -> None:
    assert "needs a terminator" in failure(parsed("func.func @f() {\n}\n")).message


def test_linear_time() -> None:
    def seconds(count: int) -> float:
        module = parsed("%0 = test.op : i32\n" + "".join(f"%{i} = test.op %{i - 1} : i32\n" for i in range(1, count)))
        start = time.perf_counter()
        verify_module(module)
        return time.perf_counter() - start

    assert min(seconds(4000) for _ in range(3)) < 10 * min(seconds(1000) for _ in range(3))


def test_an_operation_whose_surroundings_lack_a_property() -> None:
    """Found by test_fuzz: xDSL's verifier of the return looks at the type of the function."""
    text = '"func.func"() <{sym_name = "f"}> ({\n  "func.return"() : () -> ()\n}) : () -> ()\n'
    with pytest.raises(UserError, match=r"'func.func' lacks 'function_type'"):
        verify_module(parse_module(text))


def test_a_message_names_its_operation_once() -> None:
    text = program(
        lines(
            local("p", 0, (1, 16), "f32", "ub"),
            view("s", "x0", (1, 8), "f32", "gm"),
            view("a", "p", (1, 16), "f32", "ub"),
            'hardware.dma %s, %a {engine = "mte2"}',
        ),
        [((1, 8), "f32")],
        [],
    )
    with pytest.raises(UserError) as caught:
        verify_module(parsed(text))
    assert caught.value.message == "'hardware.dma' views have the same shape"
