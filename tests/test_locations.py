"""Every operation below the graph level says which operation of the source it stems from."""

from __future__ import annotations

import pytest
from example_programs import EXAMPLES, Example
from tilewright.dialects.locations import parts

import tilewright

STRUCTURE = {"builtin.module", "graph.yield", "tile.yield", "func.return"}
"""What stems from nothing in particular."""
SOME = [
    example for example in EXAMPLES if example.file in ("mlp.mlir", "conv_bias_relu.mlir", "split_heads_attention.mlir")
]


@pytest.mark.parametrize("unfused", [False, True])
@pytest.mark.parametrize("example", SOME, ids=str)
def test_everything_comes_from_somewhere(example: Example, unfused: bool) -> None:
    """Loads, moves, slices, loops and events among it."""
    program = tilewright.compile(example.load(), "davinci", unfused=unfused)
    for snapshot in program.snapshots[1:]:
        for op in snapshot.module.walk():
            assert op.name in STRUCTURE or any(True for _ in parts(op.location)), (snapshot.name, op.name)


def test_a_load_belongs_to_what_uses_it() -> None:
    text = """func.func @main(%x: tensor<64x64xf16>, %y: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %a = graph.exp %x
  %b = graph.mul %a, %y
  func.return %b : tensor<64x64xf16>
}
"""
    module = tilewright.compile(text, "unified", to="tile").module
    places = [[part.line.data for part in parts(op.location)] for op in module.walk() if op.name == "tile.load"]  # pyright: ignore
    assert places == [[2], [3]]
