"""What a move does on the way: scaling and activating products as they leave the matrix engine."""

from __future__ import annotations

import numpy as np
import pytest
from machine_programs import lines, local, program, view
from test_machine_checks import COPY, ROWS, failing
from tilewright.dialects import hardware
from tilewright.ir.diagnostics import SourceError

import tilewright

TEXT = """func.func @f(%x: tensor<33x40xf16>, %w: tensor<40x24xf16>) -> tensor<33x24xf32> {{
  %p = graph.matmul %x, %w
  {op}
  %e = graph.exp %y
  %r = graph.cast %e : tensor<33x24xf32>
  func.return %r
}}
"""
SCALED = TEXT.format(op="%c = graph.constant dense<0.3> : tensor<f16>\n  %y = graph.mul %p, %c")
RELU = TEXT.format(op="%y = graph.relu %p")
WAY = "move.l0c.ub"


def transfers(program: tilewright.Program) -> list[hardware.DmaOp]:
    return [op for op in program.snapshot("hardware").module.walk() if isinstance(op, hardware.DmaOp) and op.computes]


def operators(program: tilewright.Program) -> list[str]:
    return [op.fn.data for op in program.snapshot("hardware").module.walk() if isinstance(op, hardware.VectorOp)]


@pytest.mark.parametrize(
    ("text", "operator", "key", "without"), [(SCALED, "mul", "scale", "false"), (RELU, "relu", "activation", "[]")]
)
def test_what_a_move_can_do_the_vector_engine_does_not(text: str, operator: str, key: str, without: str) -> None:
    """Every level computes the same, and so does a machine whose moves only move; to the bit."""
    folded = tilewright.compile(text, "davinci")
    plain = tilewright.compile(text, f"davinci{{{WAY}.{key}={without}}}")
    assert transfers(folded) and all(key in op.properties for op in transfers(folded))
    assert not transfers(plain) and operator in operators(plain) and operator not in operators(folded)
    expected = plain.run(seed=1)
    for level in ("tile", "hardware"):
        for name, array in folded.run(seed=1, level=level).outputs.items():
            np.testing.assert_array_equal(array, expected.outputs[name])
    assert folded.analyze().cycles <= plain.analyze().cycles
    again = tilewright.compile(folded.ir(), None)
    np.testing.assert_array_equal(next(iter(again.run(seed=1).outputs.values())), next(iter(expected.outputs.values())))


def test_a_product_that_others_read_too_is_moved_once() -> None:
    both = TEXT.format(
        op="%c = graph.constant dense<0.3> : tensor<f16>\n  %z = graph.mul %p, %c\n  %y = graph.add %z, %p"
    )
    compiled = tilewright.compile(both, "davinci")
    assert not transfers(compiled) and "mul" in operators(compiled)


def moved(more: str, element: str = "f32") -> str:
    body = lines(
        local("p", 0, (2, 64), element, "ub"),
        view("s", "x0", (2, 64), element, "gm"),
        view("a", "p", (2, 64), element, "ub"),
        COPY[0].replace("}", f", {more}}}"),
    )
    return program(body, [((2, 64), element)], [ROWS])


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("scale = 2.0 : f32", "the move from 'gm' to 'ub' cannot multiply by a number"),
        ('activation = "relu"', "the move from 'gm' to 'ub' cannot apply 'relu' (it can apply: none)"),
    ],
)
def test_moves_that_only_move(more: str, message: str) -> None:
    assert message in failing(moved(more), (2, 64)).message


@pytest.mark.parametrize(
    ("more", "element", "message"),
    [
        ('activation = "rilu"', "f32", "has no activation 'rilu'; did you mean 'relu'?"),
        ('activation = "isnan"', "f32", "activation 'isnan' is not a function of one number without parameters"),
        ("scale = 2.0 : f32", "i32", "scales or activates floats on the way, not i32"),
    ],
)
def test_what_no_move_can_do(more: str, element: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        tilewright.load(moved(more, element))
    assert message in str(caught.value)
