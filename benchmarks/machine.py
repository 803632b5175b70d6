"""How fast the machine is: instructions per second of decoding, time, order and data, on compiled programs.

    python benchmarks/machine.py

Prints one row per program. `walked` is the simulation without skipping repeating iterations; it must give the same
cycles. Exits with 1 where it does not, or where walking is slower than the goal. Then the whole machine with data,
checks on: instructions per second on small tiles, then against plain NumPy in float32 on the same product and the same
attention: ratios of processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
from tilewright.runtime.machine import MachineOptions, analyze, check_order
from tilewright.runtime.machine.cases import Cases
from tilewright.runtime.machine.decode import decode
from tilewright.runtime.machine.program import Instruction
from tilewright.runtime.machine.time import KernelSimulation

import tilewright
from tilewright.arrays import Array, gather_inputs

GOAL = 200_000
"""Instructions per second of the simulation, every iteration walked."""
SMALL_GOAL = 100_000
"""Instructions per second with data and checks, tiles so small that their arithmetic counts for little."""

ATTENTION = """
func.func @attention(%q: tensor<8x1024x64xf16>, %k: tensor<8x1024x64xf16>, %v: tensor<8x1024x64xf16>)
    -> tensor<8x1024x64xf16> {
  %scale = graph.constant dense<0.125> : tensor<f16>
  %s = graph.matmul %q, %k {transpose_b} : tensor<8x1024x1024xf16>
  %t = graph.mul %s, %scale : tensor<8x1024x1024xf16>
  %p = graph.softmax %t {axis = -1 : i64} : tensor<8x1024x1024xf16>
  %o = graph.matmul %p, %v : tensor<8x1024x64xf16>
  func.return %o : tensor<8x1024x64xf16>
}
"""
LINEAR = """
func.func @linear(%x: tensor<512x1024xf16>, %w: tensor<1024x768xf16>, %bias: tensor<768xf16>) -> tensor<512x768xf16> {
  %r = graph.matmul %x, %w : tensor<512x768xf16>
  %y = graph.add %r, %bias : tensor<512x768xf16>
  func.return %y : tensor<512x768xf16>
}
"""
PRODUCT = """
func.func @product(%x: tensor<2048x2048xf16>, %w: tensor<2048x2048xf16>) -> tensor<2048x2048xf16> {
  %y = graph.matmul %x, %w : tensor<2048x2048xf16>
  func.return %y : tensor<2048x2048xf16>
}
"""
SMALL = {
    "product": (
        "davinci{memory.l1.bytes=16KiB memory.l0a.bytes=4KiB memory.l0b.bytes=4KiB memory.l0c.bytes=4KiB}",
        """func.func @product(%x: tensor<512x512xf16>, %w: tensor<512x512xf16>) -> tensor<512x512xf16> {
          %y = graph.matmul %x, %w : tensor<512x512xf16>
          func.return %y : tensor<512x512xf16>
        }""",
    ),
    "norm": (
        "unified{memory.scratchpad.bytes=8KiB}",
        """func.func @norm(%x: tensor<2048x1000xf16>, %s: tensor<1000xf16>, %b: tensor<1000xf16>)
            -> tensor<2048x1000xf16> {
          %y = graph.layer_norm %x, %s, %b {axis = -1 : i64, epsilon = 1.0e-5 : f32} : tensor<2048x1000xf16>
          func.return %y : tensor<2048x1000xf16>
        }""",
    ),
}
T = TypeVar("T")


def timed(call: Callable[[], T]) -> tuple[T, float]:
    """The result and the processor seconds it took (all threads)."""
    begin = time.process_time()
    return call(), time.process_time() - begin


def best(call: Callable[[], T]) -> tuple[T, float]:
    """The result and the least processor seconds of three calls, which other work on the computer disturbs less."""
    return min((timed(call) for _ in range(3)), key=lambda found: found[1])


def measure(name: str, text: str, target: str) -> bool:
    program = tilewright.compile(tilewright.load(text), target)
    module = program.snapshot("hardware").module
    decoded, decode_s = timed(lambda: decode(module))
    kernels = list(dict.fromkeys(launch.kernel for launch in decoded.launches))
    steps = [step for kernel in kernels for step in kernel.steps() if isinstance(step, Instruction)]
    cases = {step: Cases(step, decoded.target) for step in steps}
    simulations = [KernelSimulation(kernel, decoded.target, cases, extrapolate=False) for kernel in kernels]
    walked, walk_s = timed(lambda: [simulation.run() for simulation in simulations])
    result, analyze_s = timed(lambda: analyze(module))
    _, order_s = timed(lambda: check_order(module))
    unchecked = MachineOptions(check=False)
    _, data_s = timed(lambda: program.run(seed=0, check=unchecked))
    _, checked_s = timed(lambda: program.run(seed=0))
    count = sum(found.instructions for found in walked)
    cycles = {kernel.name: found.cycles for kernel, found in zip(kernels, walked, strict=True)}
    same = all(cycles[kernel.name] == kernel.cycles for kernel in result.kernels)
    print(
        f"{name:10} {target:8} {count:9} instructions, {result.cycles:10} cycles: decode {decode_s:.2f} s, "
        f"walked {walk_s:.2f} s ({count / walk_s:,.0f}/s), analyze {analyze_s:.2f} s, order {order_s:.2f} s, "
        f"run {data_s:.2f} s, checked {checked_s:.2f} s{'' if same else '  CYCLES DIFFER'}"
    )
    return same and (count < GOAL // 10 or count / walk_s >= GOAL)


def against_numpy(name: str, text: str, plain: Callable[..., Array], wanted: float) -> None:
    """Prints how many times as long the machine takes, and how many times it may."""
    program = tilewright.compile(tilewright.load(text))
    inputs = gather_inputs(program.source, None, 0)
    _, first_s = timed(lambda: program.run(inputs))
    run, machine_s = best(lambda: program.run(inputs))
    wide = [array.astype(np.float32) for array in inputs]
    _, numpy_s = best(lambda: plain(*wide))
    count = sum(kernel.instructions for kernel in run.kernels)
    print(
        f"{name:10} {count:9} instructions with data and checks, {count / machine_s:,.0f}/s: {machine_s / numpy_s:.1f} "
        f"times NumPy's {numpy_s:.2f} s (wanted: {wanted}); first run, with decoding, order and time: {first_s:.2f} s"
    )


def small_tiles(name: str, target: str, text: str) -> bool:
    """Prints instructions per second on small memories, and whether that is enough."""
    program = tilewright.compile(tilewright.load(text), target)
    _, first_s = timed(lambda: program.run(seed=0))
    run, seconds = best(lambda: program.run(seed=0))
    count = sum(kernel.instructions for kernel in run.kernels)
    print(
        f"{name:10} {count:9} instructions on small tiles with data and checks, {count / seconds:,.0f}/s (wanted: "
        f"{SMALL_GOAL:,}); first run {first_s:.2f} s"
    )
    return count / seconds >= SMALL_GOAL


def plain_attention(q: Array, k: Array, v: Array) -> Array:
    s = q @ k.transpose(0, 2, 1) * np.float32(0.125)
    p = np.exp(s - s.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ v


def main() -> int:
    programs = [("linear", LINEAR), ("attention", ATTENTION)]
    met = [measure(name, text, target) for name, text in programs for target in ("davinci", "unified")]
    met += [small_tiles(name, *program) for name, program in SMALL.items()]
    against_numpy("product", PRODUCT, np.matmul, 3)
    against_numpy("attention", ATTENTION.replace("1024", "2048"), plain_attention, 1.5)
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
