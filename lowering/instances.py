"""Generic functions and kernels, and their instances: symbolic dimensions and an element type fixed by values.

    func.func private @gate(%x: tensor<?x?xf16, #graph.dims<["m", "n"]>>) -> …
        attributes {tilewright.elements = [f16, bf16]}

stands for one function for each m and n, of f16 and of bf16. In a kernel the symbols s0, s1, … of affine maps are its
symbolic dimensions in the order in which its types first name them: `0 to affine_map<()[s0] -> (s0 ceildiv 16)>()`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AnyFloat,
    ArrayAttr,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    StringAttr,
    TensorType,
)
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap
from xdsl.rewriter import Rewriter

from ..dialects.dtypes import convert, dense, dense_array, element, is_float, is_supported
from ..dialects.errors import UserError
from ..dialects.graph_types import Dim, shape_of, symbols_of, tensor_type
from ..dialects.operators import ELEMENTS, MATCH, SHAPES, Generic, types_of


@dataclass
class Binding:
    """What the symbolic dimensions of a function or kernel stand for, and the element type in place of its own."""

    dims: dict[str, Dim] = field(default_factory=dict[str, Dim])
    element: Attribute | None = None

    def is_itself(self, op: Generic) -> bool:
        """Whether nothing is fixed: a call inside of a function for several types, of one for the same."""
        return self.element in (None, own_element(op)) and all(name == size for name, size in self.dims.items())

    def suffix(self) -> str:
        """For the name of the instance: `_m64_n128_bf16`."""
        own = [] if self.element is None else [element(self.element).name]
        return "".join(f"_{part}" for part in [*(f"{name}{size}" for name, size in self.dims.items()), *own])


def own_element(op: Generic) -> Attribute | None:
    """The element type of its first argument, in place of which others may stand."""
    first = next(iter(types_of(op)), None)
    return cast("TensorType[Attribute]", first).element_type if isinstance(first, TensorType) else None


def elements_of(op: Generic) -> list[Attribute]:
    """The element types that may stand in place of its own, with it. Raises UserError for another attribute."""
    own, attr = own_element(op), op.attributes.get(ELEMENTS)
    if own is None or attr is None:
        return [] if own is None else [own]
    listed = list(cast("ArrayAttr[Attribute]", attr)) if isinstance(attr, ArrayAttr) else []
    if not listed or not all(is_supported(one) and is_float(one) for one in [own, *listed]):
        message = f"{ELEMENTS} is a list of float types in place of that of the first argument, as in [f16, bf16]"
        raise UserError(f"{message}; got {attr} for {own}", op.location)
    return list(dict.fromkeys([own, *listed]))


def unify(op: Generic, types: Sequence[Attribute]) -> Binding | str:
    """How a function or kernel becomes one of these types (inputs, then outputs), or why it cannot."""
    wanted = types_of(op)
    if len(wanted) != len(types):
        return f"it takes and gives {len(wanted)} tensors, not {len(types)}"
    binding, own, allowed = Binding(), own_element(op), elements_of(op)
    for number, (want, have) in enumerate(zip(wanted, types, strict=True)):
        reason = unify_type(binding, want, have, own, allowed)
        if reason is not None:
            inputs = len(op.function_type.inputs)
            what = f"argument {number}" if number < inputs else f"result {number - inputs}"
            return f"{what} is {have}, it has {want}{reason}"
    return binding


def unify_type(
    binding: Binding, want: Attribute, have: Attribute, own: Attribute | None, allowed: Sequence[Attribute]
) -> str | None:
    """Adds to `binding` what one type needs; what is wrong, beyond that the two differ, if it cannot be."""
    if not isinstance(want, TensorType) or not isinstance(have, TensorType):
        return None if want == have else ""
    wanted, given = cast("TensorType[Attribute]", want), cast("TensorType[Attribute]", have)
    shape, sizes = shape_of(wanted), shape_of(given)
    if len(shape) != len(sizes):
        return ""
    if wanted.element_type == own and given.element_type in allowed:
        if binding.element not in (None, given.element_type):
            return f": elements are both {binding.element} and {given.element_type}"
        if len(allowed) > 1:
            binding.element = given.element_type
    elif wanted.element_type != given.element_type:
        return f": elements are of {', '.join(map(str, allowed))}" if wanted.element_type == own else ""
    for dim, size in zip(shape, sizes, strict=True):
        if isinstance(dim, int):
            if dim != size:
                return ""
        elif binding.dims.setdefault(dim, size) != size:
            return f": '{dim}' is both {binding.dims[dim]} and {size}"
    return None


def instantiate(op: Generic, binding: Binding, name: str) -> Generic:
    """A copy with sizes and an element type in place of its symbolic dimensions and own element type."""
    copy = op.clone()
    copy.properties["sym_name"] = StringAttr(name)
    for generic in (ELEMENTS, SHAPES, MATCH):
        copy.attributes.pop(generic, None)
    sizes = [AffineExpr.constant(s) if isinstance(s, int) else None for s in _symbol_values(op, binding)]
    rewrite = _Rewrite(binding, own_element(op), sizes)
    for inner in copy.walk():
        rewrite.op(inner)
    return copy


def _symbol_values(op: Generic, binding: Binding) -> list[Dim]:
    return [binding.dims[name] for name in symbols_of(types_of(op))]


@dataclass
class _Rewrite:
    """Replaces element type, symbolic dimensions and symbols of maps wherever attributes hold them."""

    binding: Binding
    own: Attribute | None
    sizes: Sequence[AffineExpr | None]
    done: dict[Attribute, Attribute] = field(default_factory=dict[Attribute, Attribute])

    def op(self, op: Operation) -> None:
        # Numbers of graph ops are exact whatever their type (semantics, 1.3); those of tiles say what is computed in.
        numbers = not op.name.startswith("graph.")
        for held in (op.properties, op.attributes):
            for key, attr in held.items():
                held[key] = self.attribute(attr) if numbers or not isinstance(attr, FloatAttr) else attr
        values: list[SSAValue] = [*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)]
        for value in values:
            if (kind := self.attribute(value.type)) != value.type:
                Rewriter.replace_value_with_new_type(value, kind)

    def attribute(self, attr: Attribute) -> Attribute:
        if attr not in self.done:
            self.done[attr] = self.replaced(attr)
        return self.done[attr]

    def element(self, attr: Attribute) -> Attribute:
        return self.binding.element if self.binding.element is not None and attr == self.own else attr

    def replaced(self, attr: Attribute) -> Attribute:
        match attr:
            case TensorType():
                tensor = attr
                shape = [self.binding.dims.get(d, d) if isinstance(d, str) else d for d in shape_of(tensor)]
                return tensor_type(self.element(tensor.element_type), shape)
            case AffineMapAttr() if attr.data.num_symbols and None not in self.sizes:
                return AffineMapAttr(fix_symbols(attr.data, cast("Sequence[AffineExpr]", self.sizes)))
            case DenseIntOrFPElementsAttr():
                held = cast("DenseIntOrFPElementsAttr[Any]", attr)
                kind = cast(Attribute, held.get_element_type())
                if self.element(kind) == kind:
                    return attr
                return dense(convert(dense_array(held), element(self.element(kind))), self.element(kind))
            case FloatAttr():
                number = cast("FloatAttr[Any]", attr)
                kind = cast(Attribute, number.type)
                return FloatAttr(number.value.data, cast(AnyFloat, self.element(kind)))
            case ArrayAttr():
                return ArrayAttr([self.attribute(one) for one in attr])
            case DictionaryAttr():
                return DictionaryAttr({key: self.attribute(one) for key, one in attr.data.items()})
            case ParametrizedAttribute():
                parameters = [self.attribute(one) for one in attr.parameters]
                return self.element(type(attr).new(parameters) if parameters else attr)
            case _:
                return attr


def fix_symbols(map_: AffineMap, sizes: Sequence[AffineExpr]) -> AffineMap:
    """The map with its symbols replaced. The kernel's verifier saw to it that there are enough of them."""
    dims = [AffineExpr.dimension(d) for d in range(map_.num_dims)]
    return map_.replace_dims_and_symbols(dims, list(sizes[: map_.num_symbols]), map_.num_dims, 0)


def free_name(wanted: str, taken: Mapping[str, object] | set[str]) -> str:
    """`wanted`, or with the first number behind it that makes it a name of its own."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
