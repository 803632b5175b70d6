"""Which ops become one kernel, and what happens to values that several kernels need."""

from __future__ import annotations

import numpy as np
import pytest
from example_programs import EXAMPLES, Example
from lowering_cases import fused_in

import tilewright
from tilewright.tolerance import output_tolerances

SHARED_VIEW = """
func.func @main(%x: tensor<64x64xf16>, %v: tensor<64x64xf16>, %w: tensor<64x64xf16>)
    -> (tensor<64x64xf16>, tensor<64x64xf16>) {
  %t = graph.transpose %x
  %a = graph.matmul %t, %v
  %b = graph.matmul %w, %t
  return %a, %b : tensor<64x64xf16>, tensor<64x64xf16>
}"""
TENSOR = 64 * 64 * 2


def test_unfused_stores_a_shared_view_once() -> None:
    """A kernel each: the transpose reads one tensor and writes one, the products read two and write one."""
    program = tilewright.compile(SHARED_VIEW, target="unified")
    assert program.unfused is not None
    assert (program.unfused.read_bytes, program.unfused.write_bytes) == (5 * TENSOR, 3 * TENSOR)
    run = program.run(seed=0)
    assert (run.traffic.read_bytes, run.traffic.write_bytes) == (4 * TENSOR, 2 * TENSOR)


def test_a_concatenation_with_several_users_is_stored_once() -> None:
    program = tilewright.compile(
        """
func.func @main(%x: tensor<32x64xf16>, %y: tensor<32x64xf16>, %w: tensor<64x64xf16>)
    -> (tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>) {
  %c = graph.concat %x, %y {axis = 0}
  %a = graph.matmul %c, %w
  %b = graph.matmul %w, %c
  %d = graph.matmul %c, %c
  return %a, %b, %d : tensor<64x64xf16>, tensor<64x64xf16>, tensor<64x64xf16>
}""",
        target="unified",
    )
    groups = fused_in(program.snapshot(after="fuse").module)
    assert sum(len(group.res) for group in groups) == 4


def test_views_of_views_do_not_multiply() -> None:
    lines = [f"  %x{n + 1} = graph.concat %x{n}, %x{n} {{axis = 0}}" for n in range(12)]
    text = "func.func @main(%x0: tensor<1x8xf32>) -> tensor<4096x8xf32> {\n" + "\n".join(lines)
    program = tilewright.compile(text + "\n  return %x12 : tensor<4096x8xf32>\n}", to="fuse")
    assert len(fused_in(program.module)) == 12


def test_a_reshape_without_common_factors_stays_between_kernels() -> None:
    program = tilewright.compile("""
func.func @main(%x: tensor<6x35xf16>) -> tensor<14x15xf16> {
  %a = graph.exp %x
  %b = graph.reshape %a : tensor<14x15xf16>
  %c = graph.softmax %b
  return %c : tensor<14x15xf16>
}""")
    run = program.run(seed=0)
    assert program.unfused is not None and len(run.kernels) == 2
    assert run.traffic.total_bytes == program.unfused.read_bytes + program.unfused.write_bytes


@pytest.mark.parametrize("unfused", [False, True], ids=["fused", "unfused"])
@pytest.mark.parametrize("example", [e for e in EXAMPLES if "attention.mlir" in e.file or "mlp" in e.file], ids=str)
def test_engines_without_a_way_between_them_get_kernels_of_their_own(example: Example, unfused: bool) -> None:
    """On ascend910b products reach the vector engine, and what it makes the matrix engine, through memory off chip."""
    program = tilewright.compile(example.load(), target="ascend910b", unfused=unfused)
    run = program.run(seed=0)
    assert len(run.kernels) > 2
    for error, limit in zip(run.errors().values(), output_tolerances(program.source.op), strict=True):
        assert error is not None and error <= limit


def test_a_kernel_says_why_it_is_not_one_with_its_producer() -> None:
    example = next(e for e in EXAMPLES if "mlp" in e.file)
    text = tilewright.compile(example.load(), target="ascend910b", to="fuse").ir()
    assert text.count("has no way on chip from 'l0c' to 'ub'") == 2
    assert text.count("has no way on chip from 'ub' to 'l0a'") == 1
    assert "refusals" not in tilewright.compile(example.load(), target="davinci", to="fuse").ir()


@pytest.mark.parametrize("target", ["davinci", "unified"])
@pytest.mark.parametrize("file", ["softmax_rows.mlir", "residual_layernorm_gelu.mlir"])
def test_each_objective_is_best_at_its_own(file: str, target: str) -> None:
    example = next(e for e in EXAMPLES if e.file == file)
    time, traffic = (
        tilewright.compile(example.load(), target=target, objective=objective).analyze()
        for objective in ("time", "traffic")
    )
    assert time.cycles <= traffic.cycles
    assert sum(k.read_bytes + k.write_bytes for k in traffic.kernels) <= sum(
        k.read_bytes + k.write_bytes for k in time.kernels
    )


@pytest.mark.parametrize("target", ["unified", "davinci"])
@pytest.mark.parametrize("unfused", [False, True])
def test_a_view_of_a_constant_of_one_number_is_a_constant(target: str, unfused: bool) -> None:
    """It has no bytes that a reshape could rename, and a kernel of its own would have nothing to read."""
    program = tilewright.compile(
        """func.func @main(%x: tensor<4x8xf32>, %q: tensor<1x8xf32>) -> (tensor<4x8xf32>, tensor<2x2xf32>) {
          %three = graph.constant dense<3.0> : tensor<4xf32>
          %square = graph.reshape %three : tensor<2x2xf32>
          %column = graph.reshape %three : tensor<4x1xf32>
          %y = graph.add %x, %column
          %zero = graph.constant dense<5> : tensor<1xui8>
          %scalar = graph.reshape %zero : tensor<ui8>
          %wide = graph.cast %scalar : tensor<f32>
          %z = graph.sub %y, %wide
          return %z, %square : tensor<4x8xf32>, tensor<2x2xf32>
        }""",
        target=target,
        unfused=unfused,
    )
    x = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)
    y, square = program.run([x, x[:1]]).outputs.values()
    np.testing.assert_array_equal(y, x + 3 - 5)
    np.testing.assert_array_equal(square, np.full((2, 2), 3, np.float32))


def test_zeros_of_both_signs_are_two_numbers() -> None:
    program = tilewright.compile(
        """func.func @main(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
          %c = graph.constant dense<[0.0, -0.0]> : tensor<2xf32>
          %y = graph.div %x, %c
          return %y : tensor<4x2xf32>
        }""",
        target="unified",
    )
    (y,) = program.run([np.ones((4, 2), np.float32)]).outputs.values()
    np.testing.assert_array_equal(y, np.tile([np.inf, -np.inf], (4, 1)))
