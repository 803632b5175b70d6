"""The primitives: the small closed set of ops that every named op is decomposed into.

`map` applies a scalar operator, `reduce` a monoid, `contract` multiplies and sums, `view` moves elements by index
maps, `take` by indices that are data, `iota` and `constant` and `weight` make tensors. Everything below the
decomposition handles only these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Literal, cast

import numpy as np
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
)
from xdsl.ir import Attribute
from xdsl.ir.affine import AffineMap
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, traits_def
from xdsl.traits import ConstantLike, Pure

from .dtypes import dense, element
from .errors import UserError
from .graph_base import GraphOp
from .graph_types import (
    Dim,
    Properties,
    Tensor,
    get_int,
    get_ints,
    get_number,
    get_numbers,
    get_string,
    normalize_axes,
    normalize_axis,
    shape_of,
    shape_text,
    static_shape,
    tensor_type,
)
from .index_map import Box, map_stays_inside, volume
from .scalar import Array, infer_element, lookup, monoid


@irdl_op_definition
class MapOp(GraphOp):
    """One scalar operator on every element, operands broadcast as NumPy does.

    Computes in the common compute type of the operands and rounds to the result's element type. fn = "cast" converts
    to it. `params` are the operator's numeric parameters, if it has any.
    """

    name = "graph.map"
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    fn = prop_def(StringAttr)
    params = opt_prop_def(DictionaryAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        fn = get_string(properties, "fn", None, cls.what())
        row = lookup(fn)
        check_params(fn, properties, cls.what())
        types = cls.expect_operands(operand_types, row.arity)
        chosen = infer_element(row, [t.element_type for t in types], f'{cls.what()} {{fn = "{fn}"}}')
        return [cls.broadcast_type(chosen, types)]

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        if get_string(properties, "fn", None, cls.what()) == "cast":
            types = cls.expect_operands(operand_types, 1)
            if shape_of(types[0]) != shape_of(result):
                raise UserError(f"{cls.what()}: a cast keeps the shape, got {types[0]} and {result}")
            return
        super().check_types(operand_types, properties, result)


def check_params(fn: str, properties: Properties, what: str) -> None:
    """Raises UserError unless `params` gives exactly the parameters of the scalar operator `fn`."""
    given, wanted = set(get_numbers(properties, "params", what)), set(lookup(fn).params)
    if given != wanted:
        names = ", ".join(sorted(wanted)) or "no parameters"
        raise UserError(f"{what}: operator '{fn}' takes {names} in 'params', got {', '.join(sorted(given)) or 'none'}")


@irdl_op_definition
class ReduceOp(GraphOp):
    """Combines the elements along `axes` with a monoid; reduced dimensions stay with size 1.

    Accumulates in the accumulator type of the operand and rounds to the result's element type.
    """

    name = "graph.reduce"
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    monoid = prop_def(StringAttr)
    axes = prop_def(DenseArrayBase)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        (source,) = cls.expect_operands(operand_types, 1)
        name = monoid(get_string(properties, "monoid", None, cls.what())).name
        if name in ("sum", "prod"):
            cls.expect_number(source)
        shape = list(shape_of(source))
        for axis in normalize_axes(get_ints(properties, "axes", None, cls.what()), len(shape), cls.what()):
            shape[axis] = 1
        return [tensor_type(source.element_type, shape)]


@irdl_op_definition
class ContractOp(GraphOp):
    """A product of two operands summed over the letters that both have and the result lacks: a two-operand einsum.

    {spec = "bmk,bkn->bmn"}: one letter per dimension, distinct within an operand. A letter stands for one size; there
    is no broadcasting. Accumulates in f32 (f64 for f64, i32 for i8 and ui8) and rounds to the result's element type.
    """

    name = "graph.contract"
    ELEMENT_RULE: ClassVar[Literal["same", "kind"]] = "kind"
    spec = prop_def(StringAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        types = cls.expect_operands(operand_types, 2)
        spec = parse_spec(get_string(properties, "spec", None, cls.what()))
        for type_ in types:
            cls.expect_number(type_)
        element_type = cls.expect_same_element(types)
        sizes: dict[str, Dim] = {}
        for letters, type_ in zip(spec[:2], types, strict=True):
            shape = shape_of(type_)
            if len(letters) != len(shape):
                raise UserError(f"{cls.what()}: '{letters}' names {len(letters)} dimensions of {type_}")
            for letter, size in zip(letters, shape, strict=True):
                if sizes.setdefault(letter, size) != size:
                    raise UserError(f"{cls.what()}: '{letter}' has two sizes in {types[0]} and {types[1]}")
        return [tensor_type(element_type, [sizes[letter] for letter in spec[2]])]


def parse_spec(spec: str) -> tuple[str, str, str]:
    """The letters of both operands and of the result.

    >>> parse_spec("bmk,bkn->bmn")
    ('bmk', 'bkn', 'bmn')

    Raises UserError for another form, a repeated letter, or a letter that one operand alone has and the result lacks.
    """
    operands, arrow, result = spec.replace(" ", "").partition("->")
    left, comma, right = operands.partition(",")
    if not arrow or not comma or not all(part == "" or part.isalpha() for part in (left, right, result)):
        raise UserError(f'\'graph.contract\' spec has the form "mk,kn->mn", got "{spec}"')
    for part in (left, right, result):
        if len(set(part)) != len(part):
            raise UserError(f"'graph.contract' spec \"{spec}\" repeats a letter in '{part}'")
    for letter in result:
        if letter not in left + right:
            raise UserError(f"'graph.contract' spec \"{spec}\": '{letter}' of the result is in no operand")
    for letter in left + right:
        if letter not in result and not (letter in left and letter in right):
            raise UserError(f"'graph.contract' spec \"{spec}\": '{letter}' is summed but in one operand only")
    return left, right, result


@irdl_op_definition
class ViewOp(GraphOp):
    """Elements of the operands in other places.

    Piece p covers the output indices in the box [lower[p], upper[p]) (the whole output if both lists are missing):
    there out[i] = operand_p[maps[p](i)]. Boxes do not overlap. Outside all boxes an element is `fill`, which must be
    given exactly if the boxes leave a part uncovered. Maps are quasi-affine in the output index: sums of constants
    and multiples of dimensions, floordiv and mod by constants.
    """

    name = "graph.view"
    maps = prop_def(ArrayAttr[AffineMapAttr])
    lower = opt_prop_def(ArrayAttr[DenseArrayBase])
    upper = opt_prop_def(ArrayAttr[DenseArrayBase])
    fill = opt_prop_def(FloatAttr | IntegerAttr)

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        types = cls.expect_operands(operand_types, 1, max(1, len(operand_types)))
        if cls.expect_same_element(types) != result.element_type:
            raise UserError(f"{cls.what()} keeps the element type, got {types[0]} and {result}")
        shape = static_shape(result)
        maps = view_maps(properties)
        boxes = view_boxes(properties, shape, len(types))
        if len(maps) != len(types):
            raise UserError(f"{cls.what()} takes one map for each of {len(types)} operands, got {len(maps)}")
        for i, (map_, box, type_) in enumerate(zip(maps, boxes, types, strict=True)):
            source = static_shape(type_)
            if map_.num_symbols or map_.num_dims != len(shape) or len(map_.results) != len(source):
                raise UserError(f"{cls.what()}: map {i} takes {len(shape)} and gives {len(source)} indices, got {map_}")
            if volume(box) and not map_stays_inside(map_, box, source):
                raise UserError(f"{cls.what()}: map {i}, {map_}, leaves operand {type_} for output {result}")
        for i, one in enumerate(boxes):
            for other in boxes[:i]:
                if volume([(max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True)]):
                    raise UserError(f"{cls.what()}: boxes overlap")
        covered = sum(volume(box) for box in boxes) == math.prod(shape)
        if covered == ("fill" in properties):
            need = "has no uncovered part to fill" if covered else "leaves a part uncovered and needs 'fill'"
            raise UserError(f"{cls.what()} {need}")

    @property
    def boxes(self) -> list[Box]:
        """Per piece and output dimension, the half-open range it covers."""
        return view_boxes(self.properties, static_shape(self.res.type), len(self.args))

    @property
    def affine_maps(self) -> list[AffineMap]:
        """Per piece, from output to operand index."""
        return view_maps(self.properties)

    @property
    def fill_value(self) -> float | None:
        """What stands outside the boxes, if anything does."""
        return get_number(self.properties, "fill", None, self.what()) if self.fill is not None else None


def view_maps(properties: Properties) -> list[AffineMap]:
    """The maps of a view. Raises UserError if they are missing."""
    attribute = properties.get("maps")
    if isinstance(attribute, ArrayAttr):
        entries = cast(ArrayAttr[Attribute], attribute).data
        maps = [e.data for e in entries if isinstance(e, AffineMapAttr)]
        if len(maps) == len(entries):
            return maps
    raise UserError("'graph.view' needs 'maps', as in {maps = [affine_map<(d0) -> (d0)>]}")


def view_boxes(properties: Properties, shape: Sequence[int], pieces: int) -> list[Box]:
    """Per piece the half-open range in each output dimension. Raises UserError for malformed or outside bounds."""
    lower, upper = properties.get("lower"), properties.get("upper")
    if lower is None and upper is None:
        return [[(0, size) for size in shape]] * pieces
    bounds: list[list[tuple[int, ...]]] = []
    for name, attribute in (("lower", lower), ("upper", upper)):
        rows = cast(ArrayAttr[Attribute], attribute).data if isinstance(attribute, ArrayAttr) else ()
        values = [get_ints({name: row}, name, None, "'graph.view'") for row in rows]
        if len(values) != pieces or any(len(v) != len(shape) for v in values):
            raise UserError(f"'graph.view' needs '{name}' with {len(shape)} bounds for each of {pieces} operands")
        bounds.append(values)
    boxes: list[Box] = [list(zip(low, high, strict=True)) for low, high in zip(*bounds, strict=True)]
    for box in boxes:
        if any(not 0 <= low <= high <= size for (low, high), size in zip(box, shape, strict=True)):
            raise UserError(f"'graph.view': box {box} is outside the output {shape_text(shape)}")
    return boxes


@irdl_op_definition
class TakeOp(GraphOp):
    """out[a…, i…, b…] = x[a…, indices[i…], b…], the index in the place of `axis`: rows read by their address.

    Indices are i32; one that is not in [0, extent) is an error.
    """

    name = "graph.take"
    axis = prop_def(IntegerAttr)

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        source, indices = cls.expect_operands(operand_types, 2)
        if element(indices).name != "i32":
            raise UserError(f"{cls.what()} takes i32 as indices, got {element(indices).name} in {indices}")
        shape = shape_of(source)
        axis = normalize_axis(get_int(properties, "axis", None, cls.what()), len(shape), cls.what())
        return [tensor_type(source.element_type, [*shape[:axis], *shape_of(indices), *shape[axis + 1 :]])]


@irdl_op_definition
class IotaOp(GraphOp):
    """The index along `dim`, as numbers of the written type."""

    name = "graph.iota"
    dim = prop_def(IntegerAttr)

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        cls.expect_operands(operand_types, 0)
        cls.expect_number(result)
        normalize_axis(get_int(properties, "dim", None, cls.what()), len(shape_of(result)), cls.what())


@irdl_op_definition
class ConstantOp(GraphOp):
    """The tensor written in `value`; a splat fills the shape."""

    name = "graph.constant"
    value = prop_def(DenseIntOrFPElementsAttr)
    traits = traits_def(Pure(), ConstantLike())

    @classmethod
    def infer_types(cls, operand_types: Sequence[Attribute], properties: Properties) -> list[Attribute]:
        cls.expect_operands(operand_types, 0)
        value = properties.get("value")
        if not isinstance(value, DenseIntOrFPElementsAttr):
            raise UserError(f"{cls.what()} needs its value, as in graph.constant dense<1.0> : tensor<f32>")
        return [as_value_type(cast(DenseIntOrFPElementsAttr[Any], value))]

    @classmethod
    def of(cls, array: Array, element_type: Attribute) -> ConstantOp:
        """A constant of `array`, converted to `element_type`."""
        stored = np.asarray(array).astype(element(element_type).numpy)
        return cls.make([], None, {"value": dense(stored, element_type)})


def as_value_type(value: DenseIntOrFPElementsAttr[Any]) -> Tensor:
    """The tensor type of a dense attribute."""
    return tensor_type(cast(Attribute, value.get_element_type()), value.get_shape())


@irdl_op_definition
class WeightOp(GraphOp):
    """A tensor stored beside the text: entry `key` of the safetensors file `file`."""

    name = "graph.weight"
    file = prop_def(StringAttr)
    key = prop_def(StringAttr)

    @classmethod
    def check_types(cls, operand_types: Sequence[Attribute], properties: Properties, result: Tensor) -> None:
        cls.expect_operands(operand_types, 0)
        get_string(properties, "file", None, cls.what())
        get_string(properties, "key", None, cls.what())
        static_shape(result)
