"""Groups: what an index of one names, and which loads are one."""

from __future__ import annotations

import numpy as np
import pytest
from lowering_cases import group_of
from tilewright.lowering.axes import NotFusable

import tilewright
from tilewright.tolerance import output_tolerances

# One value, or a value and another arrangement of it, at two places of one kernel.
SELF = {
    "value and transpose": """
func.func @main(%x: tensor<12x12xf32>) -> tensor<12xf32> {
  %y = graph.exp %x
  %t = graph.transpose %y
  %z = graph.add %y, %t
  %r = graph.reduce_sum %z {axes = [1]}
  return %r : tensor<12xf32>
}""",
    "square": """
func.func @main(%x: tensor<40x40xf32>) -> (tensor<40x40xf32>, tensor<40x40xf32>, tensor<f32>) {
  %a = graph.matmul %x, %x
  %b = graph.matmul %x, %x {transpose_b}
  %r = graph.reduce_sum %a
  return %a, %b, %r : tensor<40x40xf32>, tensor<40x40xf32>, tensor<f32>
}""",
    "rows as columns": """
func.func @main(%x: tensor<40x40xf32>) -> (tensor<40xf32>, tensor<40x40xf32>) {
  %m = graph.reduce_mean %x {axes = [1]}
  %d = graph.sub %x, %m
  %r = graph.reduce_max %d {axes = [1]}
  %s = graph.reduce_sum %x {axes = [1]}
  %e = graph.add %x, %s
  return %r, %e : tensor<40xf32>, tensor<40x40xf32>
}""",
    "queries as keys and values": """
func.func @main(%x: tensor<64x32xf16>, %w: tensor<32x64xf16>) -> tensor<64x64xf16> {
  %q = graph.matmul %x, %w
  %s = graph.matmul %q, %q {transpose_b}
  %p = graph.softmax %s {axis = 1}
  %o = graph.matmul %p, %q
  return %o : tensor<64x64xf16>
}""",
    "row sums of a Gram matrix": """
func.func @main(%a: tensor<23x29xf16>) -> tensor<23xf16> {
  %c = graph.matmul %a, %a {transpose_b}
  %y = graph.reduce_sum %c {axes = [1]}
  return %y : tensor<23xf16>
}""",
}


@pytest.mark.parametrize("unfused", [False, True], ids=["fused", "unfused"])
@pytest.mark.parametrize("target", ["davinci", "unified"])
@pytest.mark.parametrize("name", SELF)
def test_a_value_may_be_used_with_itself(name: str, target: str, unfused: bool) -> None:
    program = tilewright.compile(SELF[name], target=target, unfused=unfused)
    run = program.run(seed=1)
    limits = output_tolerances(program.source.op)
    for error, limit in zip(run.errors().values(), limits, strict=True):
        assert error is not None and error <= limit
    assert program.compulsory is not None and run.traffic.total_bytes >= sum(program.compulsory)


DIAGONALS = {
    "a band": """
func.func @main(%x: tensor<40x60xf16>, %w: tensor<21x32xf16>) -> tensor<40x32xf16> {
  %b = graph.view %x {maps = [affine_map<(d0, d1) -> (d0, d0 + d1)>]} : tensor<40x21xf16>
  %y = graph.matmul %b, %w
  return %y : tensor<40x32xf16>
}""",
    "a padded window along the channels": """
func.func @main(%x: tensor<12x12xf32>, %w: tensor<3xf32>) -> tensor<12x12xf32> {
  %p = graph.view %x {maps = [affine_map<(d0, d1) -> (d0, d1 - 1)>], lower = [array<i64: 0, 1>],
                      upper = [array<i64: 12, 13>], fill = 0.0 : f32} : tensor<12x14xf32>
  %t = graph.view %p {maps = [affine_map<(d0, d1, d2) -> (d1, d1 + d2)>]} : tensor<12x12x3xf32>
  %y = graph.contract %t, %w {spec = "ijk,k->ij"}
  return %y : tensor<12x12xf32>
}""",
}


@pytest.mark.parametrize("name", DIAGONALS)
@pytest.mark.parametrize("target", ["davinci", "unified{memory.scratchpad.bytes=4KiB}"])
def test_a_window_along_an_axis_that_indexes_another_dimension_too(name: str, target: str) -> None:
    """Its stretch is no interval of the other dimension: such a window is read element by element."""
    program = tilewright.compile(DIAGONALS[name], target=target)
    run = program.run(seed=0)
    (error,), (limit,) = run.errors().values(), output_tolerances(program.source.op)
    assert error is not None and error <= limit


def test_two_arrangements_of_a_computed_value_are_no_group() -> None:
    with pytest.raises(NotFusable, match="another arrangement"):
        group_of("""
func.func @main(%x: tensor<12x12xf32>) -> tensor<12x12xf32> {
  %y = graph.map %x {fn = "exp"}
  %t = graph.view %y {maps = [affine_map<(d0, d1) -> (d1, d0)>]} : tensor<12x12xf32>
  %z = graph.map %y, %t {fn = "add"}
  return %z : tensor<12x12xf32>
}""")


def test_uses_of_an_input_are_one_load_where_they_can_be() -> None:
    both = """
func.func @main(%x: tensor<24x40xf32>) -> (tensor<24x40xf32>, tensor<24x1xf32>) {
  %m = graph.reduce %x {monoid = "max", axes = [1]}
  %d = graph.map %x, %x {fn = "mul"}
  return %d, %m : tensor<24x40xf32>, tensor<24x1xf32>
}"""
    assert len(group_of(both).loads) == 1
    assert len(group_of(both.replace("axes = [1]", "axes = [0]").replace("24x1x", "1x40x")).loads) == 1
    gram = """
func.func @main(%x: tensor<24x24xf32>) -> tensor<24x24xf32> {
  %p = graph.contract %x, %x {spec = "as,bs->ab"}
  return %p : tensor<24x24xf32>
}"""
    assert len(group_of(gram).loads) == 2 and len(group_of(gram).axes) == 3


def test_backward_slices_and_filled_pieces() -> None:
    program = tilewright.compile("""
func.func @main(%x: tensor<16x37xf32>) -> (tensor<16x37xf32>, tensor<8x9xf32>) {
  %a = graph.slice %x {starts = [0, 36], sizes = [16, 37], steps = [1, -1]}
  %b = graph.add %x, %a
  %c = graph.slice %x {starts = [3, 5], sizes = [3, 4]}
  %d = graph.slice %x {starts = [15, 0], sizes = [2, 2], steps = [-2, 1]}
  %e = graph.exp %d
  %p = graph.view %c, %e {maps = [affine_map<(d0, d1) -> (d0 - 1, d1 - 2)>, affine_map<(d0, d1) -> (d0 - 5, d1 - 6)>],
      lower = [array<i64: 1, 2>, array<i64: 5, 6>], upper = [array<i64: 4, 6>, array<i64: 7, 8>], fill = 0.25 : f32}
      : tensor<8x9xf32>
  return %b, %p : tensor<16x37xf32>, tensor<8x9xf32>
}""")
    x = np.random.default_rng(0).standard_normal((16, 37)).astype(np.float32)
    first, second = program.run([x]).outputs.values()
    np.testing.assert_array_equal(first, x + x[:, ::-1])
    wanted = np.full((8, 9), 0.25, np.float32)
    wanted[1:4, 2:6] = x[3:6, 5:9]
    wanted[5:7, 6:8] = np.exp(x[15:11:-2, :2])
    np.testing.assert_allclose(second, wanted, rtol=1e-6)
