"""Small readers of builtin attributes, with types that the checker can follow."""

from __future__ import annotations

from typing import Any, cast

from xdsl.dialects.builtin import DenseArrayBase, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute

from .dtypes import is_float


def int_values(attribute: Attribute) -> tuple[int, ...]:
    """The numbers of `array<i64: 1, 2>`."""
    assert isinstance(attribute, DenseArrayBase)
    return tuple(int(value) for value in cast(Any, attribute).get_values())


def scalar_attribute(value: float, kind: Attribute) -> Attribute:
    """A typed scalar: 0.0 : f32, 7 : i32, -inf : f16."""
    if is_float(kind):
        return FloatAttr(float(value), cast(Any, kind))
    assert isinstance(kind, IntegerType)
    return cast(Attribute, IntegerAttr(int(value), cast(Any, kind)))
