"""Tensor types of the graph level: shapes with named symbolic dimensions, broadcasting, reading of attributes.

A dimension is a number or a name. `tensor<?x64xf16, #graph.dims<["seq"]>>` has the shape ("seq", 64): the encoding
lists one name for each `?` in order. Two dimensions are the same if they are equal numbers or equal names; nothing is
assumed about a name but that it stands for one positive number.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition

from .dtypes import is_supported
from .errors import UserError

Dim: TypeAlias = int | str
Shape: TypeAlias = tuple[Dim, ...]
Tensor: TypeAlias = TensorType[Attribute]
Properties: TypeAlias = Mapping[str, Attribute]


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """Names of the symbolic dimensions of a tensor type, one for each `?` in order: `#graph.dims<["seq"]>`."""

    name = "graph.dims"
    names: ArrayAttr[StringAttr]

    def __init__(self, names: Iterable[str] | ArrayAttr[StringAttr]) -> None:
        super().__init__(names if isinstance(names, ArrayAttr) else ArrayAttr(StringAttr(n) for n in names))


def as_tensor(type_: Attribute, what: str) -> Tensor:
    """`type_` as a tensor type of a supported element type with every `?` named. Raises UserError otherwise."""
    if not isinstance(type_, TensorType):
        raise UserError(f"{what} takes tensors, got {type_}")
    tensor = cast(Tensor, type_)
    if not is_supported(tensor.element_type):
        raise UserError(f"{what}: element type of {tensor} is not supported")
    unknown = sum(d == DYNAMIC_INDEX for d in tensor.get_shape())
    if any(d < 1 and d != DYNAMIC_INDEX for d in tensor.get_shape()):
        raise UserError(f"{what}: {tensor} has no elements; empty tensors are not supported")
    names = tensor.encoding.names.data if isinstance(tensor.encoding, DimsAttr) else ()
    if unknown != len(names):
        raise UserError(f'{what}: {tensor} has {unknown} `?` and {len(names)} names; write #graph.dims<["…"]>')
    return tensor


def shape_of(type_: Attribute) -> Shape:
    """The shape of a tensor type: numbers, and names in place of `?`. Raises UserError for a `?` without a name."""
    tensor = as_tensor(type_, "a shape")
    names = iter(tensor.encoding.names.data if isinstance(tensor.encoding, DimsAttr) else ())
    return tuple(next(names).data if d == DYNAMIC_INDEX else d for d in tensor.get_shape())


def static_shape(type_: Attribute) -> tuple[int, ...]:
    """The shape of a tensor type without symbolic dimensions. Raises UserError that names an unbound one."""
    shape: list[int] = []
    for dim in shape_of(type_):
        if isinstance(dim, str):
            raise UserError(f"symbolic dimension '{dim}' of {type_} must be bound first, as in --dim {dim}=512")
        shape.append(dim)
    return tuple(shape)


def tensor_type(element: Attribute, shape: Sequence[Dim]) -> Tensor:
    """The tensor type of a shape of numbers and names."""
    names = [d for d in shape if isinstance(d, str)]
    dims = [DYNAMIC_INDEX if isinstance(d, str) else d for d in shape]
    return TensorType(element, dims, DimsAttr(names)) if names else TensorType(element, dims)


def symbols_of(types: Iterable[Attribute]) -> tuple[str, ...]:
    """The names of symbolic dimensions, in the order in which the tensor types first have them."""
    shapes = (shape_of(cast(Tensor, kind)) for kind in types if isinstance(kind, TensorType))
    return tuple(dict.fromkeys(dim for shape in shapes for dim in shape if isinstance(dim, str)))


def bind_dims(type_: Attribute, dims: Mapping[str, int]) -> Attribute:
    """`type_` with the symbolic dimensions of `dims` replaced by numbers; other attributes come back unchanged."""
    if not isinstance(type_, TensorType):
        return type_
    tensor = cast(Tensor, type_)
    if not isinstance(tensor.encoding, DimsAttr):
        return tensor
    return tensor_type(tensor.element_type, [dims.get(d, d) if isinstance(d, str) else d for d in shape_of(tensor)])


def shape_text(shape: Sequence[Dim]) -> str:
    """A shape for messages: `[8, seq, 64]`."""
    return "[" + ", ".join(str(d) for d in shape) + "]"


def broadcast(shapes: Sequence[Shape], what: str) -> Shape:
    """The NumPy broadcast of shapes aligned at their last dimensions. Raises UserError that shows all shapes.

    >>> broadcast([("seq", 1), (64,)], "graph.add")
    ('seq', 64)
    """
    rank = max(len(s) for s in shapes)
    result: list[Dim] = []
    for i in range(rank):
        dims = {s[len(s) - rank + i] for s in shapes if len(s) - rank + i >= 0} - {1}
        if len(dims) > 1:
            raise UserError(f"{what}: shapes {' and '.join(shape_text(s) for s in shapes)} do not broadcast")
        result.append(dims.pop() if dims else 1)
    return tuple(result)


def normalize_axis(axis: int, rank: int, what: str) -> int:
    """`axis` counted from the front. Raises UserError if it is outside −rank … rank − 1."""
    if not -rank <= axis < rank:
        raise UserError(f"{what}: axis {axis} is outside a tensor of rank {rank}")
    return axis % rank


def normalize_axes(axes: Iterable[int], rank: int, what: str) -> tuple[int, ...]:
    """Distinct axes counted from the front, ascending. Raises UserError for a repeated or outside one."""
    result = [normalize_axis(a, rank, what) for a in axes]
    if len(set(result)) != len(result):
        raise UserError(f"{what}: axes {list(axes)} repeat one")
    return tuple(sorted(result))


def get_int(properties: Properties, name: str, default: int | None, what: str) -> int:
    """An integer attribute. Raises UserError if it is missing without a default or is not an integer."""
    attribute = properties.get(name)
    if attribute is None and default is not None:
        return default
    if not isinstance(attribute, IntegerAttr):
        raise UserError(f"{what} needs an integer '{name}', as in {{{name} = 1}}")
    return cast(IntegerAttr[Any], attribute).value.data


def get_ints(properties: Properties, name: str, default: Sequence[int] | None, what: str) -> tuple[int, ...]:
    """A list of integers, written `array<i64: 1, 2>` or `[1, 2]`. Raises UserError if missing or something else."""
    attribute = properties.get(name)
    if attribute is None and default is not None:
        return tuple(default)
    if isinstance(attribute, DenseArrayBase):
        return tuple(int(v) for v in cast(DenseArrayBase[Any], attribute).get_values())
    if isinstance(attribute, ArrayAttr):
        entries = cast(ArrayAttr[Attribute], attribute).data
        if all(isinstance(e, IntegerAttr) for e in entries):
            return tuple(cast(IntegerAttr[Any], e).value.data for e in entries)
    raise UserError(f"{what} needs integers '{name}', as in {{{name} = array<i64: 0, 1>}}")


def get_number(properties: Properties, name: str, default: float | None, what: str) -> float:
    """A number. Raises UserError if it is missing without a default or is no number."""
    attribute = properties.get(name)
    if attribute is None and default is not None:
        return default
    if isinstance(attribute, FloatAttr):
        return cast(FloatAttr[Any], attribute).value.data
    if isinstance(attribute, IntegerAttr):
        return cast(IntegerAttr[Any], attribute).value.data
    raise UserError(f"{what} needs a number '{name}', as in {{{name} = 1.0 : f32}}")


def get_string(properties: Properties, name: str, default: str | None, what: str) -> str:
    """A string. Raises UserError if it is missing without a default or is no string."""
    attribute = properties.get(name)
    if attribute is None and default is not None:
        return default
    if not isinstance(attribute, StringAttr):
        raise UserError(f"{what} needs a string '{name}', as in {{{name} = \"…\"}}")
    return attribute.data


def get_flag(properties: Properties, name: str, what: str) -> bool:
    """Whether a unit attribute is there (or a boolean is true)."""
    attribute = properties.get(name)
    if attribute is None or isinstance(attribute, UnitAttr):
        return attribute is not None
    if isinstance(attribute, IntegerAttr) and attribute.type == BoolAttr.from_bool(True).type:  # pyright: ignore[reportUnknownMemberType]
        return bool(cast(IntegerAttr[Any], attribute).value.data)
    raise UserError(f"{what}: '{name}' is a flag, as in {{{name}}}")


def get_numbers(properties: Properties, name: str, what: str) -> dict[str, float]:
    """A dictionary of numbers, empty if missing."""
    attribute = properties.get(name)
    if attribute is None:
        return {}
    if not isinstance(attribute, DictionaryAttr):
        raise UserError(f"{what} needs a dictionary '{name}', as in {{{name} = {{alpha = 0.1 : f32}}}}")
    return {key: get_number(attribute.data, key, None, what) for key in attribute.data}


def ints_attr(values: Iterable[int]) -> DenseArrayBase[Any]:
    """`array<i64: …>`."""
    return DenseArrayBase.from_list(i64, list(values))
