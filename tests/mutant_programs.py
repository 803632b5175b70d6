"""Ten small programs on memories so small that each of their kernels loops, reuses slots and bytes."""

from __future__ import annotations

PROGRAMS: dict[str, tuple[str, str]] = {
    "attention": (
        "davinci{memory.ub.bytes=6KiB}",
        """func.func @f(%q: tensor<2x48x32xf16>, %k: tensor<2x48x32xf16>, %v: tensor<2x48x32xf16>)
            -> tensor<2x48x32xf16> {
          %s = graph.matmul %q, %k {transpose_b}
          %p = graph.softmax %s {axis = -1 : i64}
          %o = graph.matmul %p, %v
          func.return %o : tensor<2x48x32xf16>
        }""",
    ),
    "online": (
        "unified{memory.scratchpad.bytes=12KiB}",
        """func.func @f(%q: tensor<40x16xf16>, %k: tensor<72x16xf16>, %v: tensor<72x16xf16>) -> tensor<40x16xf16> {
          %s = graph.matmul %q, %k {transpose_b}
          %p = graph.softmax %s {axis = -1 : i64}
          %o = graph.matmul %p, %v
          func.return %o : tensor<40x16xf16>
        }""",
    ),
    "mlp": (
        "davinci{memory.l1.bytes=16KiB memory.ub.bytes=16KiB}",
        """func.func @f(%x: tensor<40x64xf16>, %w1: tensor<64x96xf16>, %b1: tensor<96xf16>, %w2: tensor<96x48xf16>)
            -> tensor<40x48xf16> {
          %p1 = graph.matmul %x, %w1
          %s1 = graph.add %p1, %b1
          %h = graph.gelu %s1
          %y = graph.matmul %h, %w2
          func.return %y : tensor<40x48xf16>
        }""",
    ),
    "layer norm": (
        "unified{memory.scratchpad.bytes=8KiB}",
        """func.func @f(%x: tensor<24x100xf16>, %r: tensor<24x100xf16>, %s: tensor<100xf16>, %b: tensor<100xf16>)
            -> tensor<24x100xf16> {
          %sum = graph.add %x, %r
          %n = graph.layer_norm %sum, %s, %b {axis = -1 : i64, epsilon = 1.0e-5 : f32}
          func.return %n : tensor<24x100xf16>
        }""",
    ),
    "softmax": (
        "davinci{memory.ub.bytes=8KiB}",
        """func.func @f(%x: tensor<37x130xf16>) -> tensor<37x130xf16> {
          %y = graph.softmax %x {axis = -1 : i64}
          func.return %y : tensor<37x130xf16>
        }""",
    ),
    "product": (
        "davinci{memory.l1.bytes=16KiB memory.l0a.bytes=4KiB memory.l0b.bytes=4KiB memory.l0c.bytes=8KiB}",
        """func.func @f(%x: tensor<77x130xf16>, %w: tensor<130x50xf16>) -> tensor<77x50xf16> {
          %y = graph.matmul %x, %w
          func.return %y : tensor<77x50xf16>
        }""",
    ),
    "product with epilogue": (
        "unified{memory.scratchpad.bytes=10KiB}",
        """func.func @f(%x: tensor<3x33x40xf16>, %w: tensor<3x40x24xf16>, %b: tensor<24xf16>) -> tensor<3x33x24xf16> {
          %p = graph.matmul %x, %w
          %s = graph.add %p, %b
          %y = graph.relu %s
          func.return %y : tensor<3x33x24xf16>
        }""",
    ),
    "convolution": (
        "davinci{memory.l1.bytes=24KiB}",
        """func.func @f(%x: tensor<1x16x12x12xf16>, %w: tensor<16x16x3x3xf16>, %b: tensor<16xf16>)
            -> tensor<1x16x12x12xf16> {
          %c = graph.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>}
          func.return %c : tensor<1x16x12x12xf16>
        }""",
    ),
    "gate": (
        "davinci{memory.ub.bytes=12KiB}",
        """func.func @f(%x: tensor<33x64xf16>, %w: tensor<64x48xf16>, %u: tensor<64x48xf16>) -> tensor<33x48xf16> {
          %a = graph.matmul %x, %w
          %b = graph.matmul %x, %u
          %s = graph.sigmoid %a
          %m = graph.mul %a, %s
          %g = graph.mul %m, %b
          func.return %g : tensor<33x48xf16>
        }""",
    ),
    "elementwise": (
        "davinci{memory.ub.bytes=4KiB}",
        """func.func @f(%x: tensor<100x57xf16>, %z: tensor<57xf16>) -> tensor<100x57xf16> {
          %a = graph.tanh %x
          %b = graph.mul %a, %z
          %y = graph.exp %b
          func.return %y : tensor<100x57xf16>
        }""",
    ),
}
"""Target and text by name."""
