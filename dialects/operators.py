"""Attributes of custom operators and their kernels: what names what, and for which targets, shapes and types."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from .graph_types import symbols_of
from .tile import KernelOp

KERNELS = "tilewright.kernels"
"""Of a private function: the symbols of kernels that do what it says, the one to prefer first."""
TARGETS = "tilewright.targets"
"""Of a kernel: the names of the targets that it is for; without it, any."""
SHAPES = "tilewright.shapes"
"""Of a kernel: an affine set of its symbolic dimensions, s0, s1, … in the order in which its types first name them."""
ELEMENTS = "tilewright.elements"
"""Of a private function or a kernel: the element types that may stand in place of that of its first argument."""
CONSTRAINTS = (TARGETS, SHAPES, ELEMENTS)
"""Of a kernel: what says where it can be used."""
MATCH = "tilewright.match"
"""Flag of a private function: `match` looks for what it computes in the other functions."""
KERNEL = "tilewright.kernel"
"""Of a `graph.fused`: the kernel by hand that does it."""

Generic: TypeAlias = FuncOp | KernelOp


def types_of(op: Generic) -> list[Attribute]:
    """What a function or kernel takes, then what it gives."""
    return [*op.function_type.inputs, *op.function_type.outputs]


def is_generic(op: Generic) -> bool:
    """Whether it stands for several: with symbolic dimensions, or a choice of element types."""
    return ELEMENTS in op.attributes or bool(symbols_of(types_of(op)))
