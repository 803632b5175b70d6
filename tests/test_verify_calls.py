"""Calls, launches and groups by hand that do not fit what they call are rejected, located, when the program is read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from cli_runner import tilewright as shell

import tilewright
from tilewright import SourceError

_MAP = "map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (8, 16)>"
TILE = f"""tile.kernel @double(%0: tensor<8x16xf32>) -> (%1: tensor<8x16xf32>) {{
  %2 = tile.load %0 {{{_MAP}}} : !tile.tile<8x16xf32>
  %3 = tile.map %2, %2 {{fn = "add"}} : !tile.tile<8x16xf32>
  tile.store %3, %1 {{{_MAP}}}
}}
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x8xf32>) -> tensor<8x16xf32> {{
  %y = tile.launch %x {{callee = @double}} : tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}}
"""
GROUP = TILE.replace(
    "%y = tile.launch %x {callee = @double} : tensor<8x16xf32>",
    "%y = graph.fused %x {tilewright.kernel = @double} : tensor<8x16xf32> ({\n  ^bb0(%a: tensor<8x16xf32>):\n"
    '    %b = graph.map %a, %a {fn = "add"} : tensor<8x16xf32>\n    graph.yield %b : tensor<8x16xf32>\n  })',
)
CALL = """func.func private @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %u: tensor<5xf32>) -> tensor<4xf32> {
  %y = call %x {callee = @f} : tensor<4xf32>
  return %y : tensor<4xf32>
}
"""
CASES = {
    "an unknown kernel": (TILE, "callee = @double", "callee = @doubel",
                          "there is no kernel @doubel; did you mean '@double'"),
    "more operands": (TILE, "launch %x {", "launch %x, %x {", "kernel @double takes 1 operand, 'tile.launch' has 2"),
    "no operands": (TILE, "launch %x {", "launch {", "kernel @double takes 1 operand, 'tile.launch' has 0"),
    "another shape": (TILE, "launch %x {", "launch %w {",
                      "operand 0 of 'tile.launch' is tensor<16x8xf32>, kernel @double has"),
    "another result": (TILE, "callee = @double} : tensor<8x16xf32>\n  return %y : tensor<8x16xf32>",
                       "callee = @double} : tensor<8x16xf16>\n  return %x : tensor<8x16xf32>",
                       "result 0 of 'tile.launch' is tensor<8x16xf16>, kernel @double has tensor<8x16xf32>"),
    "more results": (TILE, "%y = tile.launch %x {callee = @double} : tensor<8x16xf32>",
                     "%y, %z = tile.launch %x {callee = @double} : tensor<8x16xf32>, tensor<8x16xf32>",
                     "kernel @double gives 1 result, 'tile.launch' has 2"),
    "a group's kernel": (GROUP, "kernel = @double", "kernel = @dble",
                         "there is no kernel @dble; did you mean '@double'"),
    "a group's kernel that is no name": (GROUP, "kernel = @double", "kernel = 3", "expected the name of a kernel"),
    "a group of other types": (GROUP, "%0: tensor<8x16xf32>) ->", "%0: tensor<8x16xf32>, %7: tensor<2xf32>) ->",
                               "kernel @double takes 2 operands, 'graph.fused' has 1"),
    "no callee": (CALL, " {callee = @f}", "", "'func.call'"),  # who says so depends on the version of xDSL
    "a callee that is no name": (CALL, "callee = @f", "callee = 3", "expected the name of a function"),
    "a callee inside of something": (CALL, "callee = @f", "callee = @f::@g", "expected the name of a function"),
    "a call's operands": (CALL, "call %x {", "call %x, %x {", "function @f takes 1 operand, 'func.call' has 2"),
    "a call's types": (CALL, "call %x {", "call %u {", "operand 0 of 'func.call' is tensor<5xf32>, function @f has"),
    "a call's result": (CALL, "callee = @f} : tensor<4xf32>\n  return %y", "callee = @f} : tensor<3xf32>\n  return %x",
                        "result 0 of 'func.call' is tensor<3xf32>, function @f has tensor<4xf32>"),
    "symbols": (TILE, "valid = affine_map<() -> (8, 16)>} :", "valid = affine_map<()[s0] -> (s0, 16)>} :",
                "a map of 'tile.load' uses symbols that 'tile.kernel' does not have: it has no symbolic dimensions"),
}  # fmt: skip


def rejected(text: str, message: str) -> None:
    with pytest.raises(SourceError, match=re.escape(message)) as caught:
        tilewright.load(text)
    assert type(caught.value) is SourceError  # not a check of the machine
    assert all(diagnostic.line > 0 for diagnostic in caught.value.diagnostics)


@pytest.mark.parametrize("case", CASES)
def test_rejected(case: str) -> None:
    text, old, new, message = CASES[case]
    tilewright.load(text)
    assert old in text
    rejected(text.replace(old, new, 1), message)


@pytest.fixture(scope="module")
def lowered() -> tilewright.Program:
    return tilewright.compile(TILE, "unified")


HARDWARE = {
    "unknown": ("callee = @double", "callee = @doble", "there is no kernel @doble; did you mean '@double'?"),
    "count": (r"hardware.launch %x, ", "hardware.launch ", "kernel @double takes 2 operands, 'hardware.launch' has 1"),
    "order": (r"hardware.launch %x, (%\w+)", r"hardware.launch \1, %w",
              "operand 1 of 'hardware.launch' is !tile.buffer<16x8xf32"),
    "memory": (r"(%x_?\d* = hardware.buffer [^:]*(?: : i64[^:]*)* : !tile.buffer<8x16xf32, )\"\w+\"", r'\1"scratchpad"',
               "the one lies in 'scratchpad', the other in 'gm'"),
    "symbols": (r"hardware.view ([^{]*)\{offset = affine_map<\(\) -> \(0\)>",
                r"hardware.view \1{offset = affine_map<()[s0] -> (s0)>",
                "uses symbols that 'hardware.kernel' does not have"),
}  # fmt: skip


@pytest.mark.parametrize("case", HARDWARE)
def test_rejected_at_the_hardware_level(case: str, lowered: tilewright.Program) -> None:
    old, new, message = HARDWARE[case]
    text = lowered.ir()
    changed = re.sub(old, new, text, count=1)
    assert changed != text, text
    rejected(changed, message)


def test_the_exit_code_is_that_of_bad_input(tmp_path: Path) -> None:
    """It was 4, as if the program had run."""
    file = tmp_path / "p.mlir"
    file.write_text(TILE.replace("launch %x {", "launch %w {"))
    for command in (("compile", file), ("run", file, "--random", "0"), ("opt", file, "-p", "place")):
        done = shell(*command)
        assert done.code == 1 and f"{file}:7:8: error: operand 0" in done.err, done.err
        assert f"{file}:1:1: note: the kernel" in done.err
