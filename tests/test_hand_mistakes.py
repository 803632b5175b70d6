"""Mistakes in kernels written by hand, each told where it is."""

from __future__ import annotations

import numpy as np
import pytest
from tilewright.ir.diagnostics import SourceError

import tilewright

SOFTMAX = """func.func @f(%x: tensor<5x16xf32>) -> tensor<5xf32> {
  %e = graph.exp %x
  %s = graph.reduce_sum %e {axes = array<i64: 1>}
  func.return %s
}
"""
KERNEL = """tile.kernel @k(%x: tensor<4x8xf32>) -> (%o: tensor<4x8xf32>) {
  %t = tile.load %x {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (4, 8)>} : !tile.tile<4x8xf32>
  %r = tile.map %t {fn = "exp"} : !tile.tile<4x8xf32>
  tile.store %r, %o {map = affine_map<(d0, d1) -> (d0, d1)>, valid = affine_map<() -> (4, 8)>}
}
func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = tile.launch %x {callee = @k} : tensor<4x8xf32>
  func.return %y
}
"""
REDUCED = KERNEL.replace('%r = tile.map %t {fn = "exp"} : !tile.tile<4x8xf32>', """%m = tile.reduce %t {monoid = "max", axes = array<i64: 1>} : !tile.tile<4x1xf32>
  %r = tile.map %t, %m {fn = "sub"} : !tile.tile<4x8xf32>""")  # fmt: skip # noqa: E501


@pytest.mark.parametrize(
    ("text", "old", "new", "message", "line"),
    [
        (KERNEL, "tile.map %t", "tile.map %x", "'tile.map' operand 0 is a tensor, not a tile: tile.load it first", 3),
        (REDUCED, "tile.reduce %t", "tile.reduce %o", "'tile.reduce' operand 0 is a tensor, not a tile", 3),
        (KERNEL, "store %r", "store %x", "'tile.store' operand 0 is a tensor, not a tile", 4),
        (KERNEL, "(4, 8)>} : ", "(4, 8)>, slots = 0 : i64} : ", "'tile.load' slots are at least 1, got 0", 2),
        (KERNEL, "(4, 8)>}\n}", "(4, 8)>, slots = -1 : i64}\n}", "'tile.store' slots are at least 1, got -1", 4),
        (REDUCED, '"max"', '"maxx"', "'tile.reduce' has no monoid 'maxx'; did you mean 'max'?", 3),
        (KERNEL, '"exp"', '"expp"', "'tile.map' has no operator 'expp'; did you mean 'exp'?", 3),
    ],
)
def test_each_is_told_when_the_file_is_read(text: str, old: str, new: str, message: str, line: int) -> None:
    tilewright.compile(text, "unified")
    assert text.count(old) == 1
    with pytest.raises(SourceError) as caught:
        tilewright.load(text.replace(old, new))
    assert message in str(caught.value) and f":{line}:" in str(caught.value)


def test_a_slice_lies_as_its_buffer_does() -> None:
    dump = tilewright.compile(SOFTMAX, "unified", to="plan").ir()
    line = next(row for row in dump.splitlines() if "tile.slice" in row and ": !tile.buffer<5xf32" in row)
    wrong = dump.replace(line, line.replace("#tile.layout<[5, 4]>", "#tile.layout<[5, 3]>"))
    assert wrong != dump
    with pytest.raises(SourceError, match="lies in its buffer as"):
        tilewright.compile(wrong)


def test_many_slots_are_dropped_together() -> None:
    """One plan for each that is dropped would take hours."""
    text = KERNEL.replace("(4, 8)>} : ", "(4, 8)>, slots = 1000000 : i64} : ")
    looped = text.replace("  %t =", '  tile.for %i = 0 to 2 {axis = "a", kind = "stream"} {\n  %t =').replace(
        "(4, 8)>}\n}", "(4, 8)>}\n  tile.yield\n  }\n}"
    )
    program = tilewright.compile(looped, "unified")
    assert program.run(seed=0).outputs


OPERATOR = KERNEL.split("func.func")[0]


def test_a_constraint_that_is_misspelt() -> None:
    library = (
        OPERATOR.replace(") {\n  %t", ') attributes {tilewright.target = ["unified"]} {\n  %t')
        + "func.func private @own(%x: tensor<4x8xf32>) -> tensor<4x8xf32> attributes {tilewright.kernels = [@k]} {\n"
        + "  %y = graph.exp %x\n  func.return %y\n}\n"
        + "func.func @f(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {\n"
        + "  %y = func.call %x {callee = @own} : tensor<4x8xf32>\n  func.return %y\n}\n"
    )
    assert "tilewright.target = " in library
    tilewright.compile(library.replace("tilewright.target =", "tilewright.targets ="), "unified")
    with pytest.raises(SourceError, match=r"has 'tilewright\.target', which says nothing; did you mean"):
        tilewright.compile(library, "unified")


def test_a_program_at_a_level_runs_there() -> None:
    dump = tilewright.compile(SOFTMAX, "unified", to="tile").ir()
    found = tilewright.compile(dump, to="tile").run(seed=3, level="tile").outputs
    expected = tilewright.compile(SOFTMAX, "unified").run(seed=3).outputs
    for name, array in zip(expected, found.values(), strict=True):
        np.testing.assert_allclose(array, expected[name], rtol=1e-6)
    with pytest.raises(SourceError, match="is past 'graph' already"):
        tilewright.compile(dump, to="graph")


@pytest.mark.parametrize("seed", [-1, "a", 0.5])
def test_seeds(seed: object) -> None:
    with pytest.raises(SourceError, match="a seed is an integer from 0 on"):
        tilewright.compile(SOFTMAX, "unified").run(seed=seed)  # pyright: ignore[reportArgumentType]


def test_one_name_for_a_list() -> None:
    compiled = tilewright.compile(SOFTMAX, "unified", reference="all")  # pyright: ignore[reportArgumentType]
    assert len(compiled.analyze().kernels) == 2
    with pytest.raises(SourceError, match=r"absent\.mlir"):
        tilewright.compile(SOFTMAX, "unified", use="absent.mlir")  # pyright: ignore[reportArgumentType]
    with pytest.raises(SourceError, match="a target is a name, a path or a Target, got int"):
        tilewright.compile(SOFTMAX, 5)  # pyright: ignore[reportArgumentType, reportCallIssue]
    with pytest.raises(SourceError, match="the effort of fuse is at least 1, got -7"):
        tilewright.compile(SOFTMAX, "unified", pipeline="canonicalize,decompose,fuse{effort=-7}")
