"""What masks save: structures with masks at 4096 positions, one head, on `davinci`, where time counts.

    python benchmarks/masks.py [NAME…] [--seq N]

For each: multiply-adds that the machine counts (on valid extents) over those of the products in full, beside the share
of the scores that the mask lets through; off-chip bytes, over those of the same structure without its mask as well;
simulated cycles, and what the compiler says of the loops. `document` and `block` have constant tensors for masks: eight
documents of random lengths, and a random quarter of the blocks of 128 × 128 (with those on the diagonal). Exits with 1
where a structure needs more than its `LIMITS`.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from structures import FOLDER, products
from tilewright.dialects.dtypes import dense
from tilewright.dialects.graph_fused import FusedOp
from tilewright.lowering.online_text import MASKS

import tilewright
from tilewright import Program

Mask: TypeAlias = "npt.NDArray[np.bool_]"
LIMITS = {"attention_causal": 0.57, "attention_window": 0.15, "attention_prefix": 0.57, "attention_dilated": 0.57,
          "attention_linear_causal": 0.57, "document": 1.4, "block": 1.05}  # fmt: skip
"""The greatest share of the multiply-adds in full; of constant masks, over the share that they let through."""
WIDER = ("dense<16>", "dense<256>")
"""What the window of 16 keys becomes."""
BLOCK = 128
PLAIN = "attention_scaled"
"""The same structure without a mask."""


def seen(name: str, seq: int) -> Mask:
    """What a mask lets through, from its definition."""
    i, j = np.arange(seq)[:, None], np.arange(seq)[None]
    match name:
        case "attention_window":
            return (j <= i) & (j > i - 256)
        case "attention_prefix":
            return (j <= i) | (j < 24)
        case "attention_dilated":
            return (j <= i) & ((i - j) % 4 == 0)
        case "document":
            return documents(seq)[:, None] == documents(seq)[None]
        case "block":
            return np.kron(blocks(seq), np.ones((BLOCK, BLOCK))) > 0
        case _:
            return j <= i


def documents(seq: int) -> npt.NDArray[np.int32]:
    ends = np.random.default_rng(0).choice(np.arange(1, seq), 7, replace=False)
    return np.searchsorted(np.sort(ends), np.arange(seq), side="right").astype(np.int32)


def blocks(seq: int) -> Mask:
    count = seq // BLOCK
    return (np.random.default_rng(0).random((count, count)) < 0.25) | np.eye(count, dtype=np.bool_)


def text_of(name: str, seq: int) -> str:
    """A structure; where its mask is a constant, that in the place of the arguments that have it otherwise."""
    n = seq // BLOCK
    bias = np.where(blocks(seq), 0, -np.inf).astype(np.float16)
    constants = {
        "document": ("attention_document", [
            f"%row = graph.constant {dense(documents(seq)[:, None])}",
            f"%col = graph.constant {dense(documents(seq)[None])}",
        ]),
        "block": ("attention_bias", [
            f"%table = graph.constant {dense(bias.reshape(n, 1, n, 1))}",
            f"%each = graph.expand %table : tensor<{n}x{BLOCK}x{n}x{BLOCK}xf16>",
            f"%mask = graph.reshape %each : tensor<{seq}x{seq}xf16>",
        ]),
    }  # fmt: skip
    source, lines = constants.get(name, (name, []))
    text = (FOLDER / f"{source}.mlir").read_text().replace(*WIDER)
    for line in lines:
        text = re.sub(rf",\s*{line.split()[0]}: tensor<[^>]*>[^>]*>(?=[,)])", "", text)
    return text.replace("  %s = ", "\n".join([f"  {line}" for line in lines] + ["  %s = "]), 1)


def compiled(name: str, seq: int) -> tuple[Program, int, int]:
    """The program, its off-chip bytes and its cycles."""
    module = tilewright.load(text_of(name, seq), {"heads": 1, "seq": seq, "keys": seq})
    program = tilewright.compile(module, target="davinci", objective="time")
    result = program.analyze()
    return program, sum(kernel.read_bytes + kernel.write_bytes for kernel in result.kernels), result.cycles


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", help="structures whose name contains one of these; all by default")
    parser.add_argument("--seq", type=int, default=4096, help=f"positions, a multiple of {BLOCK}")
    options = parser.parse_args()
    _, plain, _ = compiled(PLAIN, options.seq)
    print(f"{'structure':25s} {'÷ full':>7s} {'seen':>7s} {'bytes':>11s} {'÷ plain':>8s} {'cycles':>11s}")
    bad = 0
    for name in [n for n in LIMITS if not options.names or any(part in n for part in options.names)]:
        program, moved, cycles = compiled(name, options.seq)
        share, ideal = products(program), float(seen(name, options.seq).mean())
        assert share is not None
        limit = LIMITS[name] * (ideal if name in ("document", "block") else 1)
        bad += share > limit
        note = "" if share <= limit else f"  ABOVE {limit:.3f}"
        print(f"{name:25s} {share:7.3f} {ideal:7.3f} {moved:11,} {moved / plain:8.3f} {cycles:11,}{note}", flush=True)
        for op in program.snapshot(after="schedule").module.walk():
            if isinstance(op, FusedOp):
                for line in op.attributes.get(MASKS, ()):
                    print(f"    {line.data}")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
