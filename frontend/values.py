"""Values of an ONNX graph while it is imported: constants known now, or values of the program being made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from onnx import TensorProto
from xdsl.ir import SSAValue

from ..dialects.dtypes import NAMES, ElementType, by_name, element
from ..dialects.graph_types import static_shape
from .errors import Unsupported

Array: TypeAlias = npt.NDArray[Any]

ELEMENTS: dict[int, str] = {
    TensorProto.FLOAT: "f32",
    TensorProto.FLOAT16: "f16",
    TensorProto.BFLOAT16: "bf16",
    TensorProto.DOUBLE: "f64",
    TensorProto.INT8: "i8",
    TensorProto.UINT8: "ui8",
    TensorProto.INT32: "i32",
    TensorProto.INT64: "i64",
    TensorProto.BOOL: "i1",
}
"""ONNX element types that tensors of a program may have."""

_BY_DTYPE = {by_name(name).numpy: by_name(name) for name in NAMES}


def element_of_onnx(number: int) -> ElementType:
    """The element type for an ONNX type number. Raises Unsupported for one that programs cannot hold."""
    name = ELEMENTS.get(number)
    if name is None:
        known = TensorProto.DataType.Name(number) if number in TensorProto.DataType.values() else f"number {number}"
        raise Unsupported(f"element type {known} is not supported", f"supported are {', '.join(NAMES)}")
    return by_name(name)


def element_of_array(array: Array) -> ElementType:
    """The element type an array is stored in. Raises Unsupported for a dtype that programs cannot hold."""
    row = _BY_DTYPE.get(array.dtype)
    if row is None:
        raise Unsupported(f"element type {array.dtype} is not supported", f"supported are {', '.join(NAMES)}")
    return row


@dataclass(eq=False)
class Value:
    """One value. Exactly one of `array` (a constant) and `ssa` is there at first.

    `ssa` is made from a constant when an op first needs it. `roots` are the graph inputs it was computed from, which
    tell the user what to make constant; `stored` marks weights, which keep their name in the weights file.
    """

    name: str
    array: Array | None = None
    ssa: SSAValue | None = None
    roots: frozenset[str] = field(default_factory=frozenset[str])
    stored: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        if self.array is not None:
            return tuple(self.array.shape)
        assert self.ssa is not None
        return static_shape(self.ssa.type)

    @property
    def element(self) -> ElementType:
        """The element type. Raises Unsupported for a constant of a type that programs cannot hold."""
        if self.array is not None:
            return element_of_array(self.array)
        assert self.ssa is not None
        return element(self.ssa.type)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The NumPy dtype of the elements."""
        return self.array.dtype if self.array is not None else self.element.numpy
