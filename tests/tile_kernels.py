# ruff: noqa: E501 (lines of IR)
"""Hand-written kernels in value form for the tests of the tile level."""

from __future__ import annotations

from tilewright.dialects.graph import Graph
from tilewright.dialects.target import set_target
from tilewright.dialects.tile import Tile
from xdsl.context import Context
from xdsl.dialects.builtin import Builtin, ModuleOp
from xdsl.dialects.func import Func
from xdsl.parser import Parser


def load(text: str, target: str = "davinci") -> ModuleOp:
    """The module of a generic text, compiled for a target."""
    context = Context()
    for dialect in (Builtin, Func, Graph, Tile):
        context.load_dialect(dialect)
    module = Parser(context, text).parse_module()
    set_target(module, target)
    module.verify()
    return module


RAGGED_MAP = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<10x7xf32>) -> tensor<10x7xf32>}> ({
  ^bb0(%x: tensor<10x7xf32>, %o: tensor<10x7xf32>):
    "tile.for"() <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (3)>, operandSegmentSizes = array<i32: 0, 0, 0>, axis = "m", kind = "grid"}> ({
    ^bb1(%i: index):
      "tile.for"() <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (2)>, operandSegmentSizes = array<i32: 0, 0, 0>, axis = "n", kind = "grid"}> ({
      ^bb2(%j: index):
        %t = "tile.load"(%x, %i, %j) <{map = affine_map<(d0, d1, d2, d3) -> (d0 * 4 + d2, d1 * 4 + d3)>, valid = affine_map<(d0, d1) -> (d0 * -4 + 10, d1 * -4 + 7)>, slots = 2 : i64}> : (tensor<10x7xf32>, index, index) -> !tile.tile<4x4xf32>
        %d = "tile.map"(%t) <{fn = "mul", immediates = [0 : index, 2.0 : f32]}> : (!tile.tile<4x4xf32>) -> !tile.tile<4x4xf32>
        %r = "tile.map"(%d) <{fn = "max", immediates = [0 : index, 0.5 : f32]}> : (!tile.tile<4x4xf32>) -> !tile.tile<4x4xf32>
        "tile.store"(%r, %o, %i, %j) <{map = affine_map<(d0, d1, d2, d3) -> (d0 * 4 + d2, d1 * 4 + d3)>, valid = affine_map<(d0, d1) -> (d0 * -4 + 10, d1 * -4 + 7)>, slots = 2 : i64}> : (!tile.tile<4x4xf32>, tensor<10x7xf32>, index, index) -> ()
        "tile.yield"() : () -> ()
      }) : () -> ()
      "tile.yield"() : () -> ()
    }) : () -> ()
  }) : () -> ()
  func.func @main(%x: tensor<10x7xf32>) -> tensor<10x7xf32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<10x7xf32>) -> tensor<10x7xf32>
    func.return %o : tensor<10x7xf32>
  }
}
"""

SOFTMAX_ROWS = """
builtin.module {
  "tile.kernel"() <{sym_name = "k", function_type = (tensor<5x11xf32>) -> tensor<5x11xf32>}> ({
  ^bb0(%x: tensor<5x11xf32>, %o: tensor<5x11xf32>):
    "tile.for"() <{lower = affine_map<() -> (0)>, upper = affine_map<() -> (3)>, operandSegmentSizes = array<i32: 0, 0, 0>, axis = "m", kind = "grid"}> ({
    ^bb1(%i: index):
      %t = "tile.load"(%x, %i) <{map = affine_map<(d0, d1, d2) -> (d0 * 2 + d1, d2)>, valid = affine_map<(d0) -> (d0 * -2 + 5, 11)>}> : (tensor<5x11xf32>, index) -> !tile.tile<2x16xf32>
      %m = "tile.reduce"(%t) <{monoid = "max", axes = array<i64: 1>}> : (!tile.tile<2x16xf32>) -> !tile.tile<2x1xf32>
      %s = "tile.map"(%t, %m) <{fn = "sub"}> : (!tile.tile<2x16xf32>, !tile.tile<2x1xf32>) -> !tile.tile<2x16xf32>
      %e = "tile.map"(%s) <{fn = "exp"}> : (!tile.tile<2x16xf32>) -> !tile.tile<2x16xf32>
      %l = "tile.reduce"(%e) <{monoid = "sum", axes = array<i64: 1>}> : (!tile.tile<2x16xf32>) -> !tile.tile<2x1xf32>
      %p = "tile.map"(%e, %l) <{fn = "div"}> : (!tile.tile<2x16xf32>, !tile.tile<2x1xf32>) -> !tile.tile<2x16xf32>
      "tile.store"(%p, %o, %i) <{map = affine_map<(d0, d1, d2) -> (d0 * 2 + d1, d2)>, valid = affine_map<(d0) -> (d0 * -2 + 5, 11)>}> : (!tile.tile<2x16xf32>, tensor<5x11xf32>, index) -> ()
      "tile.yield"() : () -> ()
    }) : () -> ()
  }) : () -> ()
  func.func @main(%x: tensor<5x11xf32>) -> tensor<5x11xf32> {
    %o = "tile.launch"(%x) <{callee = @k}> : (tensor<5x11xf32>) -> tensor<5x11xf32>
    func.return %o : tensor<5x11xf32>
  }
}
"""


def matmul(m: int, k: int, n: int, tiles: tuple[int, int, int], epilogue: str | None = None) -> str:
    """C = A · B in f16 with an accumulator carried over the k loop; `epilogue` is an operator of one operand on it."""
    tm, tk, tn = tiles
    acc = f"!tile.tile<{tm}x{tn}xf32>"
    done = f"""%r = "tile.map"(%c) <{{fn = "{epilogue}"}}> : ({acc}) -> {acc}""" if epilogue else ""
    result = "%r" if epilogue else "%c"
    trips = [-(-extent // tile) for extent, tile in zip((m, n, k), (tm, tn, tk), strict=True)]
    loop = "operandSegmentSizes = array<i32: 0, 0, 0>"
    return f"""
builtin.module {{
  "tile.kernel"() <{{sym_name = "k", function_type = (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>}}> ({{
  ^bb0(%x: tensor<{m}x{k}xf16>, %y: tensor<{k}x{n}xf16>, %o: tensor<{m}x{n}xf16>):
    "tile.for"() <{{lower = affine_map<() -> (0)>, upper = affine_map<() -> ({trips[0]})>, {loop}, axis = "m", kind = "grid"}}> ({{
    ^bb1(%i: index):
      "tile.for"() <{{lower = affine_map<() -> (0)>, upper = affine_map<() -> ({trips[1]})>, {loop}, axis = "n", kind = "grid"}}> ({{
      ^bb2(%j: index):
        %z = "tile.empty"(%i, %j) <{{valid = affine_map<(d0, d1) -> (d0 * -{tm} + {m}, d1 * -{tn} + {n})>}}> : (index, index) -> {acc}
        %c = "tile.for"(%z) <{{lower = affine_map<() -> (0)>, upper = affine_map<() -> ({trips[2]})>, operandSegmentSizes = array<i32: 0, 0, 1>, axis = "k", kind = "stream"}}> ({{
        ^bb3(%h: index, %a: {acc}):
          %l = "tile.load"(%x, %i, %h) <{{map = affine_map<(d0, d1, d2, d3) -> (d0 * {tm} + d2, d1 * {tk} + d3)>, valid = affine_map<(d0, d1) -> (d0 * -{tm} + {m}, d1 * -{tk} + {k})>, slots = 2 : i64}}> : (tensor<{m}x{k}xf16>, index, index) -> !tile.tile<{tm}x{tk}xf16>
          %q = "tile.load"(%y, %h, %j) <{{map = affine_map<(d0, d1, d2, d3) -> (d0 * {tk} + d2, d1 * {tn} + d3)>, valid = affine_map<(d0, d1) -> (d0 * -{tk} + {k}, d1 * -{tn} + {n})>, slots = 2 : i64}}> : (tensor<{k}x{n}xf16>, index, index) -> !tile.tile<{tk}x{tn}xf16>
          %p = "tile.contract"(%l, %q, %a, %h) <{{spec = "mk,kn->mn", accumulate, init = affine_map<(d0) -> (d0)>}}> : (!tile.tile<{tm}x{tk}xf16>, !tile.tile<{tk}x{tn}xf16>, {acc}, index) -> {acc}
          "tile.yield"(%p) : ({acc}) -> ()
        }}) : ({acc}) -> {acc}
        {done}
        "tile.store"({result}, %o, %i, %j) <{{map = affine_map<(d0, d1, d2, d3) -> (d0 * {tm} + d2, d1 * {tn} + d3)>, valid = affine_map<(d0, d1) -> (d0 * -{tm} + {m}, d1 * -{tn} + {n})>}}> : ({acc}, tensor<{m}x{n}xf16>, index, index) -> ()
        "tile.yield"() : () -> ()
      }}) : () -> ()
      "tile.yield"() : () -> ()
    }}) : () -> ()
  }}) : () -> ()
  func.func @main(%x: tensor<{m}x{k}xf16>, %y: tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16> {{
    %o = "tile.launch"(%x, %y) <{{callee = @k}}> : (tensor<{m}x{k}xf16>, tensor<{k}x{n}xf16>) -> tensor<{m}x{n}xf16>
    func.return %o : tensor<{m}x{n}xf16>
  }}
}}
"""
