"""Syntax tree to operations: names are resolved, types inferred or checked, every operation gets its location.

Errors do not stop the building: an operation in error is left out, its results count as unknown, and what uses them
is left out silently, so that independent errors are all reported at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from ..dialects.errors import UserError
from ..dialects.registry import operation_names
from .attributes import AttributeReader
from .diagnostics import MAX_ERRORS, Diagnostic, SourceError, did_you_mean
from .headers import header_parts, unknown_arguments
from .op_info import OpInfo
from .parts import Argument, Parts, plain_parts
from .scope import Scope
from .syntax import AliasNode, BlockNode, CallableNode, OpNode, RegionNode

_SHORT = {"module": "builtin.module", "return": "func.return", "call": "func.call"}


class _TooManyErrors(Exception):
    pass


class Builder:
    """Builds the module of one text."""

    def __init__(self, context: Context, reader: AttributeReader) -> None:
        self.context = context
        self.reader = reader
        self.scope = Scope(reader.error, reader.file, reader.text)
        self.errors: list[Diagnostic] = []
        self._infos: dict[str, OpInfo] = {}

    def module(self, nodes: Sequence[OpNode | AliasNode]) -> ModuleOp:
        """The module written, or one around the operations written. Raises SourceError with all errors found."""
        ops: list[Operation] = []
        try:
            for node in nodes:
                if isinstance(node, AliasNode):
                    self._alias(node)
                elif op := self._op(node):
                    ops.append(op)
        except _TooManyErrors:
            pass
        if self.errors:
            self.errors.sort(key=lambda diagnostic: (diagnostic.line, diagnostic.column))
            raise SourceError(self.errors)
        if not ops:
            raise SourceError([Diagnostic("error", "the text contains no operation", self.reader.file, 1, 1)])
        first = ops[0]
        return first if len(ops) == 1 and isinstance(first, ModuleOp) else ModuleOp(ops)

    def _report(self, error: SourceError) -> None:
        self.errors.extend(error.diagnostics)
        if len(self.errors) >= MAX_ERRORS:
            raise _TooManyErrors

    def _alias(self, node: AliasNode) -> None:
        try:
            self.reader.define_alias(node.name, node.value)
        except SourceError as error:
            self._report(error)

    # --- operations

    def _op(self, node: OpNode) -> Operation | None:
        info: OpInfo | None = None
        parts: Parts | None = None
        location = None
        try:
            info = self._info(node.name)
            parts = header_parts(node, info, self.reader, self.scope) or plain_parts(
                node, info, self.reader, self.scope
            )
            location = self.reader.here(node.name) if node.location is None else self.reader.location(node.location)
        except SourceError as error:
            self._report(error)
        except UserError as error:
            self._report(self.reader.error(error.message, node.name))
        regions: Sequence[Region] = ()
        if node.regions:
            arguments = unknown_arguments(node) if parts is None else parts.arguments
            isolated = info is not None and info.isolated
            regions = [self._region(region, isolated, arguments) for region in node.regions]
        elif isinstance(node, CallableNode):
            regions = [Region()]  # A declaration has a region without blocks.
        op: Operation | None = None
        if info is not None and parts is not None and location is not None and not parts.unknown:
            op = info.cls.create(
                operands=parts.operands,
                result_types=parts.types,
                properties=parts.properties,
                attributes=parts.attributes,
                location=location,
                successors=parts.successors,
                regions=regions,
            )
        if node.results is not None:
            try:
                self.scope.define_results(node.results, op.results if op is not None else None)
            except SourceError as error:
                self._report(error)
        return op

    def _info(self, name: Token) -> OpInfo:
        text = name.value
        info = self._infos.get(text)
        if info is None:
            plain = self.reader.string(name) if name.type == "STRING" else text
            plain = _SHORT.get(plain, plain)
            cls = self.context.get_optional_op(plain)
            if cls is None:
                suggestion = did_you_mean(plain, operation_names(self.context))
                raise self.reader.error(f"unknown operation '{plain}'", name, suggestion)
            info = self._infos[text] = OpInfo.of(cls)
        return info

    # --- regions

    def _region(self, node: RegionNode, isolated: bool, arguments: Sequence[Argument] | None) -> Region:
        """A region; `arguments` are those of its one block where a header gives them."""
        with self.scope.region(isolated):
            if arguments is not None:
                return Region(self._body(node, arguments))
            return self._blocks(node)

    def _body(self, node: RegionNode, arguments: Sequence[Argument]) -> Block:
        block = Block()
        self._arguments(block, arguments)
        self.scope.labels.append({})
        for part in node.blocks:
            if part.label is not None:
                self._report(self.reader.error("a body with a header of its own has one block, unlabelled", part.label))
            self._fill(block, part.ops)
        self.scope.labels.pop()
        return block

    def _blocks(self, node: RegionNode) -> Region:
        """All blocks exist before the first is filled, since branches go forward too."""
        blocks = [Block() for _ in node.blocks]
        labels: dict[str, Block] = {}
        for block, part in zip(blocks, node.blocks, strict=True):
            if part.label is None:
                continue
            name = part.label.value[1:]
            if part.label.value in labels:
                self._report(self.reader.error(f"block '{part.label}' is already defined", part.label))
            labels[part.label.value] = block
            if Block.is_valid_name(name) and not Block.is_default_block_name(name):
                block.name_hint = name
        self.scope.labels.append(labels)
        for block, part in zip(blocks, node.blocks, strict=True):
            self._arguments(block, self._block_arguments(part))
            self._fill(block, part.ops)
        self.scope.labels.pop()
        return Region(blocks)

    def _block_arguments(self, node: BlockNode) -> list[Argument]:
        reader = self.reader
        result: list[Argument] = []
        for param in node.params:
            try:
                if param.name is None:
                    raise reader.error("a block argument needs a name, as in '%x: T'", param.type)
                result.append(Argument(param.name, None))
                if param.attributes is not None:
                    raise reader.error("block arguments have no attributes", param.name)
                location = reader.here(param.name) if param.location is None else reader.location(param.location)
                result[-1] = Argument(param.name, reader.type(param.type), location)
            except SourceError as error:
                self._report(error)
        return result

    def _arguments(self, block: Block, arguments: Sequence[Argument]) -> None:
        for argument in arguments:
            value = None
            if argument.type is not None:
                value = block.insert_arg(argument.type, len(block.args), argument.location)
            try:
                self.scope.define_argument(argument.name, value)
            except SourceError as error:
                self._report(error)

    def _fill(self, block: Block, nodes: Sequence[OpNode]) -> None:
        for node in nodes:
            op = self._op(node)
            if op is not None:
                block.add_op(op)
