"""Writes nodes over named axes as primitives again: the way back from `group_build`.

Every value is a tensor with a dimension for each axis that it varies along, in one order of all axes; views between
such tensors are renamings and repetitions, which disappear when the block is read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, IntegerAttr, LocationAttr, StringAttr, i64
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ..dialects.dtypes import element, splat
from ..dialects.graph_base import GraphOp
from ..dialects.graph_fused import YieldOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, TakeOp, ViewOp
from ..dialects.graph_types import ints_attr, static_shape, tensor_type
from ..dialects.index_map import reshape_affine
from .axes import Axis, Linear, NotFusable
from .group import Node, Output, axis_name


class Writer:
    """Appends primitives to a block. `operands` are what the block's arguments stand for."""

    def __init__(self, axes: Sequence[Axis], location: LocationAttr) -> None:
        self.axes, self.location = list(axes), location
        self.block = Block()
        self.operands: list[SSAValue] = []
        self.values: dict[Node, SSAValue] = {}

    # --- values ---------------------------------------------------------------------------------------------------

    def frame(self, present: frozenset[Axis]) -> list[Axis]:
        """The axes of a tensor, in order."""
        return [axis for axis in self.axes if axis in present]

    def argument(self, operand: SSAValue) -> SSAValue:
        """The block argument for a value from outside."""
        if operand not in self.operands:
            self.operands.append(operand)
            made = self.block.insert_arg(operand.type, len(self.block.args))
            made.name_hint = operand.name_hint
        return self.block.args[self.operands.index(operand)]

    def write(self, root: Node, inputs: Mapping[int, SSAValue]) -> SSAValue:
        """The value of a node; `inputs` are the values from outside that loads read, by their number."""
        for node in _operands_first(root, self.values):
            self.values[node] = self.one(node, inputs)
        return self.values[root]

    def one(self, node: Node, inputs: Mapping[int, SSAValue]) -> SSAValue:
        wanted = self.frame(node.present)
        shape = [axis.extent for axis in wanted]
        match node.kind:
            case "load" if node.gathers is not None:
                return self.take(node, self.argument(inputs[node.arg]), node.gathers, wanted)
            case "load":
                return self.view(self.argument(inputs[node.arg]), node.index, wanted)
            case "constant":
                assert isinstance(node.op, ConstantOp)
                return self.add(ConstantOp.of(np.asarray(splat(node.op.value)), node.element), node)
            case "iota":
                return self.iota(node, wanted)
            case "expand":
                return self.framed(node.inputs[0], wanted)
            case "map":
                assert isinstance(node.op, MapOp)
                # A number is repeated by the map itself, unless there is nothing else to say the shape.
                known = [self.values[s] if not s.present else self.framed(s, wanted) for s in node.inputs]
                return self.add(MapOp.make(known, tensor_type(node.element, shape), node.op.properties), node)
            case "reduce":
                return self.reduce(node, wanted)
            case "contract":
                return self.contract(node, wanted)
            case _:
                raise AssertionError(node.kind)

    def take(self, node: Node, table: SSAValue, place: int, wanted: list[Axis]) -> SSAValue:
        """Rows of an input: a dimension for each axis of the indices in the place of the one that they choose."""
        (source,) = node.inputs
        axes, shape = self.frame(source.present), static_shape(table.type)
        kind = tensor_type(node.element, [*shape[:place], *(a.extent for a in axes), *shape[place + 1 :]])
        made = TakeOp.make([table, self.values[source]], kind, {"axis": IntegerAttr(place, i64)})
        index = [*node.index[:place], *(Linear({axis: 1}) for axis in axes), *node.index[place + 1 :]]
        return self.view(self.add(made, node), index, wanted)

    def reduce(self, node: Node, wanted: list[Axis]) -> SSAValue:
        (source,) = node.inputs
        assert isinstance(node.op, ReduceOp)
        axes = self.frame(source.present | node.reduced)
        places = [place for place, axis in enumerate(axes) if axis in node.reduced]
        shape = [1 if axis in node.reduced else axis.extent for axis in axes]
        properties = {"monoid": node.op.monoid, "axes": ints_attr(places)}
        found = ReduceOp.make([self.framed(source, axes)], tensor_type(node.element, shape), properties)
        index = [Linear() if axis in node.reduced else Linear({axis: 1}) for axis in axes]
        return self.view(self.add(found, node), index, wanted)

    def contract(self, node: Node, wanted: list[Axis]) -> SSAValue:
        names = {axis: axis_name(number) for number, axis in enumerate(self.axes)}
        frames = [self.frame(source.present) for source in node.inputs]
        left, right, out = ("".join(names[axis] for axis in axes) for axes in (*frames, wanted))
        properties = {"spec": StringAttr(f"{left},{right}->{out}")}
        values = [self.framed(source, axes) for source, axes in zip(node.inputs, frames, strict=True)]
        shape = [axis.extent for axis in wanted]
        return self.add(ContractOp.make(values, tensor_type(node.element, shape), properties), node)

    def iota(self, node: Node, wanted: list[Axis]) -> SSAValue:
        assert isinstance(node.op, IotaOp)
        atoms = node.dims[node.op.dim.value.data % len(node.dims)]
        terms: dict[Axis, int] = {}
        extent = 1
        for axis in reversed(atoms):
            terms[axis], extent = extent, extent * axis.extent
        made = IotaOp.make([], tensor_type(node.element, [extent]), {"dim": IntegerAttr(0, i64)})
        return self.view(self.add(made, node), [Linear(terms)], wanted)

    # --- views ----------------------------------------------------------------------------------------------------

    def framed(self, node: Node, wanted: list[Axis]) -> SSAValue:
        """A value repeated along the axes that it does not vary along."""
        axes = self.frame(node.present)
        return self.view(self.values[node], [Linear({axis: 1}) for axis in axes], wanted)

    def view(self, value: SSAValue, index: Sequence[Linear], wanted: Sequence[Axis]) -> SSAValue:
        """A tensor over the axes `wanted`, its elements those of `value` at `index`."""
        plain = [Linear({axis: 1}) for axis in wanted]
        if list(index) == plain:
            return value
        places = {axis: AffineDimExpr(place) for place, axis in enumerate(wanted)}
        results: list[AffineExpr] = []
        for linear in index:
            expr: AffineExpr = AffineConstantExpr(linear.offset)
            for axis, factor in linear.terms.items():
                part: AffineExpr = places[axis] if factor == 1 else places[axis] * factor
                expr = part if expr == AffineConstantExpr(0) else expr + part
            results.append(expr)
        return self.mapped(value, AffineMap(len(wanted), 0, tuple(results)), [axis.extent for axis in wanted])

    def mapped(self, value: SSAValue, map_: AffineMap, shape: Sequence[int]) -> SSAValue:
        maps = {"maps": ArrayAttr([AffineMapAttr(map_)])}
        return self.add(ViewOp.make([value], tensor_type(element(value.type).attribute, shape), maps))

    def add(self, op: GraphOp, like: Node | None = None) -> SSAValue:
        op.location = like.op.location if like is not None and like.op is not None else self.location
        self.block.add_op(op)
        return op.res

    # --- the end --------------------------------------------------------------------------------------------------

    def output(self, output: Output, result: Attribute) -> SSAValue:
        """A value in the arrangement of a result. Raises NotFusable for a part of one."""
        shape = static_shape(result)
        atoms = [_radix(expr, extent) for expr, extent in zip(output.index, shape, strict=True)]
        flat = [axis for axes in atoms for axis in axes]
        arranged = self.framed(output.node, flat)
        kind, extents = element(result).attribute, [axis.extent for axis in flat]
        if element(arranged.type).attribute != kind:
            cast = MapOp.make([arranged], tensor_type(kind, extents), {"fn": StringAttr("cast")})
            arranged = self.add(cast, output.node)
        return arranged if tuple(extents) == shape else self.mapped(arranged, reshape_affine(extents, shape), shape)

    def finish(self, values: Sequence[SSAValue]) -> Block:
        """The block, ending with these values."""
        self.block.add_op(YieldOp.create(operands=list(values)))
        return self.block


def _radix(expr: Linear, extent: int) -> list[Axis]:
    """The axes that a dimension is made of, outermost first."""
    axes = sorted(expr.terms, key=lambda axis: -expr.terms[axis])
    scale = 1
    for axis in reversed(axes):
        if expr.terms[axis] != scale:
            raise NotFusable("a result that is written in pieces")
        scale *= axis.extent
    if expr.offset or scale != extent:
        raise NotFusable("a result that is written in pieces")
    return axes


def _operands_first(root: Node, known: Mapping[Node, SSAValue]) -> Iterator[Node]:
    """The nodes under one, and it, that are not `known` yet."""
    stack, seen = [(root, False)], set[Node]()
    while stack:
        node, entered = stack.pop()
        if entered:
            yield node
        elif node not in known and node not in seen:
            seen.add(node)
            stack.append((node, True))
            stack += [(source, False) for source in reversed(node.inputs)]
