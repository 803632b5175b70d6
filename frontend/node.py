"""One ONNX node as its importer sees it: operands, attributes, and the builder of what it becomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import numpy as np
from onnx import AttributeProto, GraphProto, NodeProto, numpy_helper
from xdsl.ir import SSAValue

from .builder import Builder
from .errors import Unsupported
from .values import Array, Value

Result: TypeAlias = SSAValue | Array
"""What a node gives: a value of the program, or a constant."""
Handler: TypeAlias = Callable[["Node"], "Result | Sequence[Result | Value | None]"]
"""Imports a node: one result, or a list with one for each output (None for an output that nobody wants)."""


@dataclass(frozen=True, eq=False)
class Node:
    """A node with its operands found. `version` is the opset in force for its domain."""

    proto: NodeProto
    version: int
    operands: tuple[Value | None, ...]
    build: Builder
    materialize: Callable[[Value], SSAValue]
    subgraph: Callable[[GraphProto, Sequence[Value]], list[Value]]

    @property
    def count(self) -> int:
        """How many outputs somebody may want."""
        return len(self.proto.output)

    def wants(self, output: int) -> bool:
        """Whether an output is there and has a name."""
        return output < len(self.proto.output) and bool(self.proto.output[output])

    # --- operands -----------------------------------------------------------------------------------------------------

    def has(self, i: int) -> bool:
        """Whether operand i is given."""
        return i < len(self.operands) and self.operands[i] is not None

    def value(self, i: int) -> Value:
        """Operand i. Raises Unsupported if it is missing."""
        found = self.operands[i] if i < len(self.operands) else None
        if found is None:
            raise Unsupported(f"operand {i} is missing")
        return found

    def ssa(self, i: int) -> SSAValue:
        """Operand i as a value of the program."""
        return self.materialize(self.value(i))

    def all(self) -> list[SSAValue]:
        """All given operands as values of the program."""
        return [self.materialize(v) for v in self.operands if v is not None]

    def shape(self, i: int) -> tuple[int, ...]:
        """The shape of operand i."""
        return self.value(i).shape

    def is_constant(self, i: int) -> bool:
        """Whether operand i is known now."""
        return self.has(i) and self.value(i).array is not None

    def array(self, i: int, what: str) -> Array:
        """Operand i as a constant; `what` names its role. Raises Unsupported if it is known only at run time."""
        value = self.value(i)
        if value.array is None:
            roots = sorted(value.roots)
            names = ", ".join(f"'{r}'" for r in roots)
            way = f"its value depends on {names}: fix it, as in --constant {roots[0]}=values.npy" if roots else ""
            raise Unsupported(f"{what} ('{value.name}') must be known when the program is compiled", way, roots)
        return value.array

    def ints(self, i: int, what: str) -> list[int]:
        """Operand i as integers known now."""
        return [int(v) for v in np.asarray(self.array(i, what)).reshape(-1)]

    def number(self, i: int, what: str) -> float:
        """Operand i as one number known now."""
        array = self.array(i, what)
        if array.size != 1:
            raise Unsupported(f"{what} is one number, got shape {list(array.shape)}")
        return array.reshape(-1)[0].item()

    # --- attributes ---------------------------------------------------------------------------------------------------

    def attribute(self, name: str) -> Any | None:
        """An attribute as a Python value, None if it is missing."""
        for attribute in self.proto.attribute:
            if attribute.name == name:
                return _attribute_value(attribute)
        return None

    def int(self, name: str, default: int | None = None) -> int:
        """An integer attribute. Raises Unsupported if it is missing without a default."""
        return int(cast(int, self._given(name, default)))

    def flag(self, name: str, default: bool = False) -> bool:
        """An integer attribute that is 0 or 1."""
        return bool(self.int(name, int(default)))

    def float(self, name: str, default: float | None = None) -> float:
        """A number attribute. Raises Unsupported if it is missing without a default."""
        return float(cast(float, self._given(name, default)))

    def text(self, name: str, default: str | None = None) -> str:
        """A string attribute. Raises Unsupported if it is missing without a default."""
        found = self._given(name, default)
        return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)

    def list(self, name: str, default: Sequence[int] | None = None) -> list[int]:
        """A list of integers. Raises Unsupported if it is missing without a default."""
        return [int(v) for v in cast("Sequence[int]", self._given(name, default))]

    def numbers(self, name: str, default: Sequence[float] | None = None) -> list[float]:
        """A list of numbers. Raises Unsupported if it is missing without a default."""
        return [float(v) for v in cast("Sequence[float]", self._given(name, default))]

    def graph(self, name: str) -> GraphProto:
        """A body. Raises Unsupported if it is missing."""
        found = self.attribute(name)
        if not isinstance(found, GraphProto):
            raise Unsupported(f"attribute '{name}' is no graph")
        return found

    def _given(self, name: str, default: object) -> object:
        found = self.attribute(name)
        if found is None:
            if default is None:
                raise Unsupported(f"attribute '{name}' is missing")
            return default
        return found

    def axis(self, name: str, default: int | None, rank: int) -> int:
        """An axis attribute counted from the front. Raises Unsupported if it is outside the tensor."""
        return normalized(self.int(name, default), rank)

    def axes_operand(self, i: int, since: int, rank: int) -> list[int] | None:
        """Axes given by operand i from opset `since` on, by the attribute 'axes' before; None if not given."""
        if self.version >= since and self.has(i):
            return [normalized(a, rank) for a in self.ints(i, "the list of axes")]
        given = self.attribute("axes")
        return None if given is None else [normalized(int(a), rank) for a in given]


def _attribute_value(attribute: AttributeProto) -> Any:
    match attribute.type:
        case AttributeProto.FLOAT:
            return attribute.f
        case AttributeProto.INT:
            return attribute.i
        case AttributeProto.STRING:
            return attribute.s
        case AttributeProto.FLOATS:
            return list(attribute.floats)
        case AttributeProto.INTS:
            return list(attribute.ints)
        case AttributeProto.STRINGS:
            return list(attribute.strings)
        case AttributeProto.TENSOR:
            return numpy_helper.to_array(attribute.t)
        case AttributeProto.GRAPH:
            return attribute.g
        case _:
            raise Unsupported(f"attribute '{attribute.name}' is of a kind that is not supported")


def normalized(axis: int, rank: int) -> int:
    """`axis` counted from the front. Raises Unsupported if it is outside a tensor of that rank."""
    if not -rank <= axis < rank:
        raise Unsupported(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % rank
