"""The syntax tree: what the grammar yields and the builder consumes. Names and types are still tokens.

A value list is a list of tokens, each holding one or more comma-separated `%names` (see grammar.lark).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from lark import Token


@dataclass(slots=True)
class Typed:
    """`4 : i32`, `0.5 : f16`, `dense<…> : tensor<…>`."""

    literal: Token
    type: Token


@dataclass(slots=True)
class Array:
    """`[value, …]`."""

    values: list[Value]


@dataclass(slots=True)
class Item:
    """`key = value`; without a value, a unit attribute."""

    key: Token
    value: Value | None


@dataclass(slots=True)
class Dict:
    """`{key = value, …}`."""

    items: list[Item]


Value: TypeAlias = Token | Typed | Array | Dict


@dataclass(slots=True)
class Param:
    """`%a: T {attrs} loc(…)`; declarations leave the name out."""

    name: Token | None
    type: Token
    attributes: Dict | None
    location: Token | None


@dataclass(slots=True)
class Output:
    """A result type of a function with its attributes."""

    type: Token
    attributes: Dict | None


@dataclass(slots=True)
class BlockNode:
    label: Token | None
    params: list[Param]
    ops: list[OpNode]


@dataclass(slots=True)
class RegionNode:
    """The first block has no label if it is written without one."""

    blocks: list[BlockNode]


@dataclass(slots=True)
class Bound:
    """A loop bound: an integer, or an affine map of counters."""

    map: Token
    operands: list[Token]


@dataclass(slots=True)
class OpNode:
    """One operation. `name` is the token that errors about the op as a whole point at.

    `signature` is the function type of the generic form; `types` the result types of the uniform form (None where
    left out). In the generic form `properties` and `attributes` are apart, in the uniform form all is `attributes`.
    """

    name: Token
    results: Token | None = None
    operands: list[Token] = field(default_factory=list[Token])
    successors: list[Token] = field(default_factory=list[Token])
    properties: Dict | None = None
    attributes: Dict | None = None
    regions: list[RegionNode] = field(default_factory=list[RegionNode])
    signature: Token | None = None
    types: list[Token] | None = None
    location: Token | None = None


@dataclass(slots=True)
class ConstantNode(OpNode):
    """An op whose `value` property is written in place of its operands."""

    value: Token | None = None


@dataclass(slots=True)
class ModuleNode(OpNode):
    symbol: Token | None = None


@dataclass(slots=True)
class CallableNode(OpNode):
    """A function or kernel: symbol, named inputs, and either output types (function) or named outputs (kernel)."""

    symbol: Token | None = None
    visibility: Token | None = None
    inputs: list[Param] = field(default_factory=list[Param])
    outputs: list[Output] = field(default_factory=list[Output])
    named_outputs: list[Param] = field(default_factory=list[Param])


@dataclass(slots=True)
class LoopNode(OpNode):
    """A counted loop with its carried values, written `%acc = %init`."""

    counter: Token | None = None
    lower: Bound | None = None
    upper: Bound | None = None
    carried: list[tuple[Token, Token]] = field(default_factory=list[tuple[Token, Token]])


@dataclass(slots=True)
class AliasNode:
    """`#name = attribute` or `!name = type` at the top of a file."""

    name: Token
    value: Value
