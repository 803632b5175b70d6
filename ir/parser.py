"""Text to syntax tree: lark's LALR parser over grammar.lark, with the tree built during the parse.

The parser itself does not recurse, so deep nesting is found here, before anything that does recurse sees the tree.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from itertools import accumulate
from typing import Any, cast

from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedInput

from .diagnostics import SourceError
from .recovery import errors_of
from .syntax import (
    AliasNode,
    Array,
    BlockNode,
    Bound,
    CallableNode,
    ConstantNode,
    Dict,
    Item,
    LoopNode,
    ModuleNode,
    OpNode,
    Output,
    Param,
    RegionNode,
    Typed,
)
from .syntax_errors import diagnostic_at, explain

MAX_NESTING = 64
"""Braces within braces. Everything below the text (verifiers, printers, passes) recurses over regions."""

MAX_BRACKETS = 200
"""Brackets of any kind within one another."""

_BRACKET = re.compile(r'"(?:[^"\\\n]|\\.)*+"|//[^\n]*|[\[\](){}]')
_BRACE_STEP = {"{": 1, "}": -1}
_BRACKET_STEP = {"{": 1, "}": -1, "[": 1, "]": -1, "(": 1, ")": -1}


@contextmanager
def garbage_collection_paused() -> Generator[None]:
    """Reading creates many objects and frees few: collecting meanwhile costs about as much as the reading itself."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


# What lark hands to the rule functions below: tokens, nodes made by other rules, or None for an absent optional part.
Children = list[Any]


class _TreeBuilder(Transformer[Token, Any]):
    """One method per rule of the grammar, in its order."""

    def start(self, c: Children) -> Children:
        return c

    def alias(self, c: Children) -> AliasNode:
        return AliasNode(c[0], c[1])

    def op(self, c: Children) -> OpNode:
        results, name, values, successors, attributes, types, regions, location = c
        return OpNode(
            name, results, values or [], successors or [], None, attributes, regions or [], None, types, location
        )

    def constant(self, c: Children) -> ConstantNode:
        results, name, value, type_, location = c
        return ConstantNode(name, results, types=[type_], location=location, value=value)

    def generic(self, c: Children) -> OpNode:
        results, name, values, successors, properties, regions, attributes, signature, location = c
        return OpNode(
            name,
            results,
            values or [],
            successors or [],
            properties,
            attributes,
            regions or [],
            signature,
            None,
            location,
        )

    def module(self, c: Children) -> ModuleNode:
        keyword, symbol, attributes, region, location = c
        return ModuleNode(keyword, attributes=attributes, regions=[region], location=location, symbol=symbol)

    def function(self, c: Children) -> CallableNode:
        keyword, visibility, symbol, inputs, outputs, attributes, region, location = c
        return CallableNode(
            keyword,
            attributes=attributes,
            regions=[region] if region else [],
            location=location,
            symbol=symbol,
            visibility=visibility,
            inputs=inputs or [],
            outputs=outputs or [],
        )

    def kernel(self, c: Children) -> CallableNode:
        keyword, symbol, inputs, outputs, attributes, region, location = c
        return CallableNode(
            keyword,
            attributes=attributes,
            regions=[region],
            location=location,
            symbol=symbol,
            inputs=inputs or [],
            named_outputs=outputs or [],
        )

    def device(self, c: Children) -> CallableNode:
        keyword, symbol, inputs, attributes, region, location = c
        return CallableNode(
            keyword, attributes=attributes, regions=[region], location=location, symbol=symbol, inputs=inputs or []
        )

    def loop(self, c: Children) -> LoopNode:
        results, keyword, counter, lower, upper, carried, attributes, types, region, location = c
        return LoopNode(
            keyword,
            results,
            attributes=attributes,
            regions=[region],
            types=types,
            location=location,
            counter=counter,
            lower=lower,
            upper=upper,
            carried=carried or [],
        )

    def bound(self, c: Children) -> Bound:
        return Bound(c[0], c[1] or [] if len(c) > 1 else [])

    def carried(self, c: Children) -> list[tuple[Token, Token]]:
        return list(zip(c[::2], c[1::2], strict=True))

    def params(self, c: Children) -> list[Param]:
        return c

    def param(self, c: Children) -> Param:
        return Param(*c) if len(c) == 4 else Param(None, *c)

    def single_output(self, c: Children) -> list[Output]:
        return [Output(c[0], None)]

    def outputs(self, c: Children) -> list[Output]:
        return [output for output in c if output is not None]

    def output(self, c: Children) -> Output:
        return Output(c[0], c[1])

    def values(self, c: Children) -> list[Token]:
        return c

    types = successors = regions = entry = values

    def region(self, c: Children) -> RegionNode:
        entry, *blocks = c
        # An entry without ops in front of a labelled block is no block; alone, it is an empty region.
        return RegionNode([BlockNode(None, [], entry), *blocks] if entry else blocks)

    def block(self, c: Children) -> BlockNode:
        return BlockNode(c[0], c[1] or [], c[2:])

    def dict(self, c: Children) -> Dict:
        return Dict([item for item in c if item is not None])

    def item(self, c: Children) -> Item:
        return Item(c[0], c[1] if len(c) > 1 else None)

    def typed(self, c: Children) -> Typed:
        return Typed(c[0], c[1])

    dense = typed

    def array(self, c: Children) -> Array:
        return Array([value for value in c if value is not None])


@cache
def _lark() -> Lark:
    grammar = files("tilewright.ir").joinpath("grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", lexer="contextual", maybe_placeholders=True, transformer=_TreeBuilder())


def parse_syntax(text: str, file: str) -> list[OpNode | AliasNode]:
    """The top-level operations and aliases of a text.

    Raises SourceError with the syntax errors that are independent of one another, or for nesting beyond the limits.
    """
    try:
        nodes = _parse(text)
    except UnexpectedInput as error:
        spelled = {d.name: str(d.pattern.value) for d in _lark().terminals if d.pattern.type == "str"}
        raise SourceError([explain(one, text, file, spelled) for one in errors_of(text, _parse, error)]) from None
    _check_nesting(text, file)
    return nodes


def _parse(text: str) -> list[OpNode | AliasNode]:
    # With a transformer, lark returns what the start rule made, whatever its annotation says.
    return cast("list[OpNode | AliasNode]", _lark().parse(text))  # pyright: ignore[reportUnknownMemberType]


def _check_nesting(text: str, file: str) -> None:
    tokens = _BRACKET.findall(text)
    for step, limit, what in ((_BRACE_STEP, MAX_NESTING, "regions"), (_BRACKET_STEP, MAX_BRACKETS, "brackets")):
        depths = accumulate(step.get(token, 0) for token in tokens)
        if max(depths, default=0) <= limit:
            continue
        depth = 0
        for match in _BRACKET.finditer(text):
            depth += step.get(match.group(), 0)
            if depth > limit:
                message = f"nested too deeply: more than {limit} {what} within one another"
                raise SourceError([diagnostic_at(message, text, file, match.start(), 1)])
