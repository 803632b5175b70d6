"""Cycles of GEMMs against those that ZigZag 3.9 predicts for the same machine.

    python benchmarks/zigzag.py [N…]

Target `unified` with 192 KiB on chip and 1024 bytes a cycle off chip; 4096 multiply-adds a cycle. The floor is what the
matrix engine takes alone; what it waits for on top is printed. Exits with 1 where what is more than 5 % above ZigZag's
cycles is not waiting for stores, or where the floor is beaten.

The models differ in what hides what. Here an accumulator has one slot: the next tile's product waits until the store of
the last one has read it, and that store waits for the port behind the load that runs ahead; ZigZag gives the output a
second copy. Neither has latencies or launches. At 4096³ ZigZag's mapping, tiles that divide the extents, waits for the
port (17.8 M cycles); the schedules found here do not.
"""

from __future__ import annotations

import sys

from tilewright.runtime.machine.profile import merged

import tilewright

TARGET = "unified{memory.scratchpad.bytes=192KiB memory.gm.core_rate=1024 memory.gm.pool_rate=1024}"
ZIGZAG = {512: 32_929, 1024: 262_313, 4096: 17_800_000}
"""Extent → cycles of ZigZag 3.9 (the last rounded as published), each operand f16, sums in f32."""
RATE = 4096
GOAL = 0.05
GEMM = """
func.func @gemm(%x: tensor<{n}x{n}xf16>, %w: tensor<{n}x{n}xf16>) -> tensor<{n}x{n}xf16> {{
  %y = graph.matmul %x, %w
  func.return %y : tensor<{n}x{n}xf16>
}}
"""


def measure(extent: int) -> bool:
    """Prints one line; whether the cycles are near ZigZag's but for what the matrix engine waits for stores."""
    program = tilewright.compile(tilewright.load(GEMM.format(n=extent)), TARGET)
    (kernel,) = program.snapshot("hardware").machine.profile()[1]
    waits = {source: cycles for (engine, source), cycles in merged(kernel.waits).items() if engine == "matrix"}
    floor, theirs, ours = extent**3 // RATE, ZIGZAG[extent], kernel.cycles
    near = abs(ours / theirs - 1) <= GOAL
    explained = ours - waits.get("store", 0) <= theirs * (1 + GOAL)
    print(
        f"{'ok ' if near else 'explained' if explained else 'MISS'} {extent}³: {ours} cycles, {ours / theirs:.4f} × "
        f"ZigZag's {theirs}, {ours / floor:.4f} × the floor of {floor}; the matrix engine waits for "
        + ", ".join(f"{source} {cycles}" for source, cycles in waits.items())
    )
    return ours >= floor and (near or explained)


def main() -> int:
    extents = [int(word) for word in sys.argv[1:]] or [*ZIGZAG]
    met = [measure(extent) for extent in extents]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
