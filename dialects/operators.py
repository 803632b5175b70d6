"""Attributes of custom operators and their kernels: what names what, and for which targets, shapes and types."""

from __future__ import annotations

KERNELS = "tilewright.kernels"
"""Of a private function: the symbols of kernels that do what it says, the one to prefer first."""
TARGETS = "tilewright.targets"
"""Of a kernel: the names of the targets that it is for; without it, any."""
SHAPES = "tilewright.shapes"
"""Of a kernel: an affine set of its symbolic dimensions, s0, s1, … in the order in which its types first name them."""
ELEMENTS = "tilewright.elements"
"""Of a private function or a kernel: the element types that may stand in place of that of its first argument."""
MATCH = "tilewright.match"
"""Flag of a private function: `match` looks for what it computes in the other functions."""
KERNEL = "tilewright.kernel"
"""Of a `graph.fused`: the kernel by hand that does it."""
