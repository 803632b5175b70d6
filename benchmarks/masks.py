"""What masks save: structures with masks at 4096 positions, one head, on `davinci`, where time counts.

    python benchmarks/masks.py [NAME…]

For each: multiply-adds that the machine counts (on valid extents) over those of the products in full, off-chip bytes,
simulated cycles, and what the compiler says of the loops. Exits with 1 where a structure needs more than its `LIMITS`.
"""

from __future__ import annotations

import argparse
import sys

from structures import FOLDER, products
from tilewright.dialects.graph_fused import FusedOp
from tilewright.lowering.online_text import MASKS

import tilewright

LIMITS = {"attention_causal": 0.57, "attention_window": 0.15, "attention_prefix": 1.0, "attention_dilated": 1.0,
          "attention_linear_causal": 1.0}  # fmt: skip
"""The greatest share of the multiply-adds in full."""
WIDER = ("dense<16>", "dense<256>")
"""What the window of 16 keys becomes."""


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="structures whose name contains one of these; all by default")
    options = parser.parse_args()
    print(f"{'structure':25s} {'÷ full':>7s} {'bytes':>11s} {'cycles':>11s}")
    bad = 0
    for name in [n for n in LIMITS if not options.names or any(part in n for part in options.names)]:
        text = (FOLDER / f"{name}.mlir").read_text().replace(*WIDER)
        module = tilewright.load(text, {"heads": 1, "seq": 4096, "keys": 4096})
        program = tilewright.compile(module, target="davinci", objective="time")
        result = program.analyze()
        moved = sum(kernel.read_bytes + kernel.write_bytes for kernel in result.kernels)
        share = products(program)
        assert share is not None
        bad += share > LIMITS[name]
        note = "" if share <= LIMITS[name] else f"  ABOVE {LIMITS[name]}"
        print(f"{name:25s} {share:7.3f} {moved:11,} {result.cycles:11,}{note}", flush=True)
        for op in program.snapshot(after="schedule").module.walk():
            if isinstance(op, FusedOp):
                for line in op.attributes.get(MASKS, ()):
                    print(f"    {line.data}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
