"""Groups to schedule by hand, built from text."""

from __future__ import annotations

from tilewright.dialects.graph_fused import FusedOp
from tilewright.ir.source import load_module
from tilewright.lowering.costs import group_block
from tilewright.lowering.group import Group
from tilewright.lowering.group_build import read_group
from xdsl.dialects.func import FuncOp

SOFTMAX = """
func.func @main(%x: tensor<24x40xf32>) -> tensor<24x40xf32> {
  %m = graph.reduce %x {monoid = "max", axes = array<i64: 1>}
  %d = graph.map %x, %m {fn = "sub"}
  %e = graph.map %d {fn = "exp"}
  %s = graph.reduce %e {monoid = "sum", axes = array<i64: 1>}
  %y = graph.map %e, %s {fn = "div"}
  func.return %y : tensor<24x40xf32>
}
"""
BOTH_WAYS = """
func.func @main(%x: tensor<24x40xf32>) -> tensor<24x40xf32> {
  %m = graph.reduce %x {monoid = "max", axes = array<i64: 1>}
  %d = graph.map %x, %m {fn = "sub"}
  %n = graph.reduce %d {monoid = "max", axes = array<i64: 0>}
  %y = graph.map %d, %n {fn = "sub"}
  func.return %y : tensor<24x40xf32>
}
"""
MATMUL = """
func.func @main(%x: tensor<40x70xf16>, %w: tensor<70x50xf16>, %b: tensor<50xf16>) -> tensor<40x50xf16> {
  %p = graph.contract %x, %w {spec = "mk,kn->mn"}
  %q = graph.map %p, %b {fn = "add"}
  %y = graph.map %q {fn = "relu"}
  func.return %y : tensor<40x50xf16>
}
"""


def group_of(text: str) -> Group:
    """All ops of `main` as one group."""
    module, _ = load_module(text)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    ops = list(function.body.block.ops)
    return read_group(group_block(ops[:-1], list(function.body.block.args), list(ops[-1].operands)))


def fused_in(module: object) -> list[FusedOp]:
    return [op for op in module.walk() if isinstance(op, FusedOp)]  # pyright: ignore
