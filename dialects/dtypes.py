"""Element types of tensors: their attributes, their NumPy dtypes and the types in which they are computed.

`bytes` is the width of one stored element; an i1 is stored one byte per element. *Compute* is the type in which
scalar operators work on a value (f16 and bf16 in f32, narrow integers in i32); *accumulator* the type in which sums of
products are kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from xdsl.dialects.builtin import (
    BFloat16Type,
    BytesAttr,
    DenseIntOrFPElementsAttr,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerType,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute

from .errors import UserError

Array: TypeAlias = npt.NDArray[Any]
Kind: TypeAlias = Literal["float", "int", "bool"]


@dataclass(frozen=True)
class ElementType:
    """One element type: text name, xDSL attribute, NumPy dtype, kind and the names of its compute types."""

    name: str
    attribute: Attribute
    numpy: np.dtype[Any]
    kind: Kind
    compute: str
    accumulator: str

    @property
    def bytes(self) -> int:
        """Bytes of one stored element."""
        return self.numpy.itemsize


# The one table. A new element type is one row.
_ROWS: tuple[ElementType, ...] = (
    ElementType("f64", Float64Type(), np.dtype(np.float64), "float", "f64", "f64"),
    ElementType("f32", Float32Type(), np.dtype(np.float32), "float", "f32", "f32"),
    ElementType("f16", Float16Type(), np.dtype(np.float16), "float", "f32", "f32"),
    ElementType("bf16", BFloat16Type(), np.dtype(ml_dtypes.bfloat16), "float", "f32", "f32"),
    ElementType("i64", IntegerType(64), np.dtype(np.int64), "int", "i64", "i64"),
    ElementType("i32", IntegerType(32), np.dtype(np.int32), "int", "i32", "i32"),
    ElementType("i8", IntegerType(8), np.dtype(np.int8), "int", "i32", "i32"),
    ElementType("ui8", IntegerType(8, Signedness.UNSIGNED), np.dtype(np.uint8), "int", "i32", "i32"),
    ElementType("i1", IntegerType(1), np.dtype(np.bool_), "bool", "i1", "i1"),
)
BY_NAME: dict[str, ElementType] = {row.name: row for row in _ROWS}
_BY_ATTRIBUTE: dict[Attribute, ElementType] = {row.attribute: row for row in _ROWS}
_BY_CLASS: dict[type[Attribute], ElementType] = {type(r.attribute): r for r in _ROWS if r.kind == "float"}


def _integer_key(attribute: Any) -> tuple[int, bool] | None:
    """Width and whether it is unsigned; None for what is no integer, or one that is said to be signed."""
    if type(attribute) is not IntegerType:
        return None
    sign = attribute.signedness.data
    return None if sign is Signedness.SIGNED else (attribute.width.data, sign is Signedness.UNSIGNED)


_BY_INTEGER = {key: row for row in _ROWS if (key := _integer_key(row.attribute)) is not None}
_BY_NUMPY: dict[np.dtype[Any], ElementType] = {row.numpy: row for row in _ROWS}

NAMES: tuple[str, ...] = tuple(BY_NAME)


def _quick(attribute: Attribute) -> ElementType | None:
    """The row of an element type, without hashing the attribute, which takes ten times as long; None for others."""
    row = _BY_CLASS.get(type(attribute))
    if row is None and (key := _integer_key(attribute)) is not None:
        row = _BY_INTEGER.get(key)
    return row


def element(attribute: Attribute) -> ElementType:
    """The row of an element type attribute, or of a shaped type's elements. Raises UserError for other types."""
    row = _quick(attribute)
    if row is not None:
        return row
    inner: Attribute = attribute
    if isinstance(attribute, TensorType):
        inner = cast(TensorType[Attribute], attribute).element_type
    row = _BY_ATTRIBUTE.get(inner)
    if row is None:
        raise UserError(f"element type '{inner}' is not supported; known are {', '.join(NAMES)}")
    return row


def by_name(name: str) -> ElementType:
    """The row called `name` ("f16", "ui8", …). Raises UserError for an unknown name."""
    if name not in BY_NAME:
        raise UserError(f"element type '{name}' is not known; known are {', '.join(NAMES)}")
    return BY_NAME[name]


def from_numpy(dtype: npt.DTypeLike) -> ElementType:
    """The row stored as the NumPy `dtype`. Raises UserError for a dtype without an element type."""
    row = _BY_NUMPY.get(np.dtype(dtype))
    if row is None:
        raise UserError(f"NumPy dtype '{np.dtype(dtype)}' has no element type; known are {', '.join(NAMES)}")
    return row


def is_supported(attribute: Attribute) -> bool:
    """Whether `attribute` is an element type of the table."""
    return _quick(attribute) is not None


def numpy_dtype(attribute: Attribute) -> np.dtype[Any]:
    """The NumPy dtype that stores `attribute`."""
    return element(attribute).numpy


def byte_width(attribute: Attribute) -> int:
    """Bytes of one stored element."""
    return element(attribute).bytes


def type_name(attribute: Attribute) -> str:
    """The name in text, as in `f16`."""
    return element(attribute).name


def is_float(attribute: Attribute) -> bool:
    """Whether the elements are floating-point numbers."""
    return element(attribute).kind == "float"


def is_int(attribute: Attribute) -> bool:
    """Whether the elements are integers (i1 is not)."""
    return element(attribute).kind == "int"


def is_bool(attribute: Attribute) -> bool:
    """Whether the elements are truth values (i1)."""
    return element(attribute).kind == "bool"


def compute_type(attribute: Attribute) -> Attribute:
    """The element type in which scalar operators compute: f16, bf16, f32 → f32; f64 → f64; i8, ui8 → i32."""
    return BY_NAME[element(attribute).compute].attribute


def accumulator_type(attribute: Attribute) -> Attribute:
    """The element type in which sums of products are kept: f32, f64 for f64, i32 for i8 and ui8."""
    return BY_NAME[element(attribute).accumulator].attribute


_COMPUTE_ORDER = ("i1", "i32", "i64", "f32", "f64")


def common_compute_type(attributes: Iterable[Attribute]) -> Attribute:
    """The compute type of mixed operands: the last of i1, i32, i64, f32, f64 among their compute types.

    >>> str(common_compute_type([by_name("f16").attribute, by_name("i8").attribute]))
    'f32'
    """
    names = [element(a).compute for a in attributes]
    return BY_NAME[max(names, key=_COMPUTE_ORDER.index)].attribute


def promote(attributes: Iterable[Attribute]) -> Attribute:
    """The default result element type of operands of these types.

    Equal types stay. Floats win over integers, integers over i1; different floats give their compute type,
    different integers theirs.
    """
    rows = [element(a) for a in attributes]
    for kind in ("float", "int", "bool"):
        names = {row.name for row in rows if row.kind == kind}
        if len(names) == 1:
            return BY_NAME[names.pop()].attribute
        if names:
            return common_compute_type(BY_NAME[name].attribute for name in names)
    raise UserError("a type needs at least one operand to be derived from")


def tensor_bytes(type_: TensorType[Attribute]) -> int:
    """Bytes of a tensor of static shape, stored densely."""
    return math.prod(type_.get_shape()) * byte_width(type_.element_type)


def convert(array: Array, to: ElementType) -> Array:
    """`array` as NumPy elements of `to`: what `cast` means.

    Float to float rounds to nearest even; float to integer truncates towards zero and saturates, NaN becomes 0;
    integer to narrower integer keeps the low bits; anything to i1 is `!= 0`.
    """
    if array.dtype == to.numpy:
        return array
    source = from_numpy(array.dtype)
    if to.kind == "bool":
        return array != 0
    with np.errstate(all="ignore"):
        if source.kind == "float" and to.kind == "int":
            info = np.iinfo(to.numpy)
            wide = np.trunc(array.astype(np.float64))
            inside = (wide >= float(info.min)) & (wide < float(info.max) + 1.0)
            low_or_high = np.where(wide < 0, info.min, info.max)
            exact = np.where(inside, wide, 0.0).astype(to.numpy)
            return np.where(inside, exact, np.where(np.isnan(wide), 0, low_or_high)).astype(to.numpy)
        return array.astype(to.numpy)


def dense(array: Array, element_type: Attribute | None = None) -> DenseIntOrFPElementsAttr:
    """A `dense<…>` attribute of `array`, whose dtype must store `element_type` (default: the type of the dtype).

    A number that NumPy broadcasts is stored once.
    """
    row = from_numpy(array.dtype) if element_type is None else element(element_type)
    if array.dtype != row.numpy:
        raise UserError(f"an array of '{array.dtype}' does not store elements of '{row.name}'")
    repeated = array.size > 1 and not any(array.strides)
    stored = np.ascontiguousarray(array.flat[0] if repeated else array)
    # xDSL holds a true i1 as the byte of -1, the normal form of a signless one-bit integer.
    raw = (-stored.astype(np.int8)).tobytes() if row.kind == "bool" else stored.tobytes()
    type_ = TensorType(cast(Any, row.attribute), array.shape)
    return DenseIntOrFPElementsAttr(type_, BytesAttr(raw))


def splat(attribute: DenseIntOrFPElementsAttr) -> Array | None:
    """The one element of a `dense<…>` attribute whose elements all have the same bits, as a rank-0 array; else None.

    xDSL's own `is_splat` compares numbers, and takes [0.0, -0.0] for one.
    """
    row = element(attribute.get_element_type())
    stored = np.dtype(np.int8) if row.kind == "bool" else row.numpy
    bits = np.frombuffer(attribute.data.data, np.uint8).reshape(-1, stored.itemsize)
    if not bool((bits == bits[0]).all()):
        return None
    found = np.frombuffer(bits[0].tobytes(), stored).reshape(())
    return np.asarray(found != 0) if row.kind == "bool" else found


def dense_array(attribute: DenseIntOrFPElementsAttr) -> Array:
    """The array a `dense<…>` attribute holds, in the dtype that stores its element type; splats are expanded."""
    row = element(attribute.get_element_type())
    shape = attribute.get_shape()
    stored = np.dtype(np.int8) if row.kind == "bool" else row.numpy
    flat = np.frombuffer(attribute.data.data, dtype=stored)
    if flat.size == 1 and math.prod(shape) != 1:
        flat = np.broadcast_to(flat, (math.prod(shape),))
    array = flat.reshape(shape)
    return array != 0 if row.kind == "bool" else array
