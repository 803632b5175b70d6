"""From an ONNX graph to a function of the graph dialect, node by node."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from onnx import GraphProto, NodeProto, TensorProto, numpy_helper
from xdsl.dialects.builtin import FunctionType, ModuleOp, NameLoc, StringAttr, UnknownLoc
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ..dialects.dtypes import by_name
from ..dialects.errors import UserError
from ..dialects.graph_functions import INPUT_NAMES, OUTPUT_NAMES
from ..dialects.graph_types import tensor_type
from ..ir.diagnostics import Diagnostic, SourceError
from ..ir.names import base_name
from .builder import Builder, strings
from .errors import Unsupported
from .fold import RANDOM, RESULT_LIMIT, fold, is_small, is_worth_it
from .functions import body_of, has_body
from .inference import objection, result_elements
from .model import Model, domain_of, key_of
from .node import Handler, Node, Result
from .operators import OPERATORS
from .values import Array, Value

_log = logging.getLogger(__name__)

INLINE_LIMIT = 64
"""Most elements of a constant that is written into the text; larger ones are stored beside it."""


class OnnxError(SourceError):
    """Nodes that cannot be imported, all of them. `constants` are inputs that importing would need the values of."""

    def __init__(self, diagnostics: Sequence[Diagnostic], constants: Sequence[str] = ()) -> None:
        super().__init__(diagnostics)
        self.constants = tuple(constants)


@dataclass(frozen=True)
class Imported:
    """A program and the weights it names: key → array, all in the file `weight_file`."""

    module: ModuleOp
    weights: Mapping[str, Array]
    weight_file: str


def import_onnx(
    path: Path,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, Array] | None = None,
    weight_file: str | None = None,
) -> Imported:
    """The program of an ONNX file.

    dims       sizes of symbolic dimensions
    constants  values of inputs that the program is made for; they are no inputs of it any more
    weight_file  what the program calls the file of its weights; default: the name of the model

    Raises SourceError for a broken file, OnnxError with every node that cannot be imported.
    """
    model = Model.read(path)
    model.check()
    inputs = model.bind(dims or {}, constants or {})
    model.inline()
    types = [tensor_type(by_name(i.kind).attribute, i.shape) for i in inputs]
    block = Block(arg_types=types)
    start = NameLoc(StringAttr(path.name), UnknownLoc())
    build = Builder(block, start, weight_file=weight_file or f"{path.stem}.safetensors")
    run = _Import(model, build, {"": None}, model.opsets)
    for arg, given in zip(block.args, inputs, strict=True):
        arg.location = start
        arg.name_hint = hint(given.name)
        run.scope[given.name] = Value(given.name, ssa=arg, roots=frozenset({given.name}))
    run.graph(model.proto.graph)
    names = [o.name for o in model.proto.graph.output]
    results = [run.output(name) for name in names]
    if run.problems:
        raise OnnxError(run.problems, sorted(run.needed))
    block.add_op(ReturnOp(*[r for r in results if r is not None]))
    kinds = [r.type for r in results if r is not None]
    function = FuncOp("main", FunctionType.from_lists(types, kinds), Region(block))
    function.location = start
    function.attributes[INPUT_NAMES] = strings([i.name for i in inputs])
    function.attributes[OUTPUT_NAMES] = strings(names)
    _log.info("'%s': %d nodes became %d operations", path, len(model.proto.graph.node), len(block.ops))
    return Imported(ModuleOp([function]), build.weights, build.weight_file)


def hint(name: str) -> str | None:
    """A value's name in the text for an ONNX name: the last part of its path, odd characters replaced."""
    last = re.sub(r"[^\w$.-]", "_", name.rsplit("/", 1)[-1], flags=re.ASCII)
    found = base_name(last) or base_name(f"v{last}")
    return found if found and SSAValue.is_valid_name(found) else None


class _Import:
    """The values known so far by name (None: a node before could not be imported), and what went wrong."""

    def __init__(self, model: Model, build: Builder, scope: dict[str, Value | None], opsets: Mapping[str, int]) -> None:
        self.model = model
        self.build = build
        self.scope = scope
        self.problems: list[Diagnostic] = []
        self.needed: set[str] = set()
        self.opsets = opsets

    def graph(self, graph: GraphProto) -> None:
        """Imports initializers and nodes."""
        for tensor in graph.initializer:
            self.scope[tensor.name] = self.initializer(tensor)
        if graph.sparse_initializer:
            self.problem("sparse initializers are not supported", "store them densely")
        for node in graph.node:
            self.node(node)

    def initializer(self, tensor: TensorProto) -> Value | None:
        try:
            return Value(tensor.name, array=numpy_helper.to_array(tensor), stored=True)
        except Exception as error:
            reason = " ".join(str(error).split())
            self.problem(f"initializer '{tensor.name}' cannot be read: {reason}")
            return None

    def problem(self, message: str, way_out: str = "") -> None:
        self.problems.append(Diagnostic("error", message, str(self.model.path), suggestion=way_out))

    def node(self, proto: NodeProto) -> None:
        """Imports one node, or notes why it cannot be."""
        name = proto.name or next((o for o in proto.output if o), "?")
        missing = [n for n in proto.input if n not in self.scope]
        if missing:
            self.problem(f"node '{name}' ({key_of(proto)}) uses '{missing[0]}', which nothing before it defines")
        operands = tuple(self.scope.get(n) for n in proto.input)
        broken = bool(missing) or any(n and self.scope.get(n) is None for n in proto.input)
        results: Sequence[Value | None] = [None] * len(proto.output)
        try:
            if not broken:
                results = self.results(proto, operands, name)
            elif key_of(proto) not in OPERATORS and not has_body(proto, self.opsets.get(domain_of(proto), 1)):
                raise _unknown(proto)
        except Unsupported as error:
            self.needed.update(error.inputs)
            self.problem(f"node '{name}' ({key_of(proto)}): {error.reason}", error.way_out)
        for output, value in zip(proto.output, results, strict=True):
            if output:
                self.scope[output] = value

    def results(self, proto: NodeProto, operands: tuple[Value | None, ...], name: str) -> list[Value | None]:
        self.build.location = NameLoc(StringAttr(name), UnknownLoc())
        given = [v for v in operands if v is not None]
        constant = all(v.array is not None for v in given) and proto.op_type not in _NEVER_FOLDED
        roots = frozenset(r for v in given for r in v.roots)
        foldable = constant and bool(given) and self.fits(proto, operands)
        if foldable and is_small(operands):
            try:
                found = self.fold(proto, operands)
                if is_worth_it(operands, found):
                    return [_value(o, a, roots) for o, a in zip(proto.output, found, strict=True)]
            except Unsupported:
                pass  # the program computes it, then
        handler = OPERATORS.get(key_of(proto))
        version = self.opsets.get(domain_of(proto), 1)
        try:
            if handler is None:
                return self.expanded(proto, operands, version)
            found = self.call(handler, proto, operands, version)
        except Unsupported:
            if not foldable:
                raise
            found = self.fold(proto, operands)
        padded = [*found, *[None] * (len(proto.output) - len(found))]
        return [_value(o, r, roots) for o, r in zip(proto.output, padded, strict=False)]

    def call(
        self, handler: Handler, proto: NodeProto, operands: tuple[Value | None, ...], version: int
    ) -> Sequence[Result | Value | None]:
        """What a node becomes. Raises Unsupported where its operands and attributes do not fit together."""
        # Handlers take a node to be as the standard wants it, and ONNX's checker looks at no shapes.
        broken = "its operands and attributes do not fit together: "
        try:
            found = handler(Node(proto, version, operands, self.build, self.materialize, self.subgraph))
        except UserError as error:
            raise Unsupported(error.message) from None
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            own = " ".join(str(error).split()) or type(error).__name__
            raise Unsupported(broken + (objection(proto, operands, self.opsets) or own)) from None
        against = objection(proto, operands, self.opsets)
        if against is not None:
            raise Unsupported(broken + against)
        return [found] if isinstance(found, SSAValue | np.ndarray) else found

    def fits(self, proto: NodeProto, operands: Sequence[Value | None]) -> bool:
        """Whether the results of a node, as far as they can be told beforehand, are small enough to be computed."""
        elements = result_elements(proto, operands, self.opsets)
        return elements is None or elements <= RESULT_LIMIT

    def expanded(self, proto: NodeProto, operands: Sequence[Value | None], version: int) -> list[Value | None]:
        """A node by the body that ONNX defines its operator by. Raises Unsupported if there is none."""
        found = body_of(proto, operands, version)
        if found is None:
            raise _unknown(proto)
        body, names, opsets = found
        inner = _Import(self.model, self.build, {"": None}, {**self.opsets, **opsets})
        inner.scope.update((n, v) for n, v in zip(names, operands, strict=False) if v is not None)
        inner.graph(body)
        self.adopt(inner)
        return [inner.scope.get(info.name) for info, _ in zip(body.output, proto.output, strict=False)]

    def adopt(self, inner: _Import) -> None:
        """Raises Unsupported with the first problem of a body; the others are kept."""
        if inner.problems:
            self.needed.update(inner.needed)
            self.problems.extend(inner.problems[1:])
            first = inner.problems[0]
            raise Unsupported(f"in its body, {first.message}", first.suggestion)

    def fold(self, proto: NodeProto, operands: Sequence[Value | None]) -> list[Array | None]:
        return fold(proto, operands, dict(self.opsets))

    def subgraph(self, graph: GraphProto, inputs: Sequence[Value]) -> list[Value]:
        """The outputs of a body on these inputs, imported in place. Raises Unsupported for what it cannot take."""
        inner = _Import(self.model, self.build, dict(self.scope), self.opsets)
        for info, value in zip(graph.input, inputs, strict=True):
            inner.scope[info.name] = value
        inner.graph(graph)
        self.adopt(inner)
        return [v for o in graph.output if (v := inner.scope.get(o.name)) is not None]

    def materialize(self, value: Value) -> SSAValue:
        """The value as an SSA value; a constant becomes an op at its first use. Raises Unsupported for its type."""
        if value.ssa is None:
            assert value.array is not None
            _ = value.element  # raises for what programs cannot hold
            if value.array.size == 0:
                raise Unsupported(f"'{value.name}' has no elements", "tensors without elements are not supported")
            small = value.array.size <= INLINE_LIMIT or bool(np.all(value.array == value.array.reshape(-1)[0]))
            value.ssa = self.build.constant(value.array) if small else self.build.weight(self.key(value), value.array)
            value.ssa.name_hint = hint(value.name)
        return value.ssa

    def key(self, value: Value) -> str:
        """A key that no other weight has."""
        key, number = value.name, 0
        while key in self.build.weights:
            number += 1
            key = f"{value.name}.{number}"
        return key

    def output(self, name: str) -> SSAValue | None:
        """A result of the function; None where a node before could not be imported."""
        value = self.scope.get(name)
        if value is None:
            if name not in self.scope:
                self.problem(f"output '{name}' is computed by no node")
            return None
        self.build.location = NameLoc(StringAttr(name), UnknownLoc())
        try:
            return self.materialize(value)
        except Unsupported as error:
            self.problem(f"output '{name}': {error.reason}", error.way_out)
            return None


_NEVER_FOLDED = RANDOM | {"If", "Loop", "Scan", "SequenceMap", "Constant"}


def _unknown(proto: NodeProto) -> Unsupported:
    if proto.op_type in RANDOM:
        return Unsupported("its result is random", "draw the numbers outside and pass them as an input")
    if domain_of(proto):
        return Unsupported(
            "the operator is not one of ONNX's own and is not supported",
            "export it as a function of the model, or without the fusions of a runtime",
        )
    return Unsupported("the operator is not supported", "docs/onnx.md lists the operators that are")


def _value(name: str, result: Result | Value | None, roots: frozenset[str]) -> Value | None:
    if result is None or isinstance(result, Value):
        return result
    if isinstance(result, SSAValue):
        if result.name_hint is None:
            result.name_hint = hint(name)
        return Value(name, ssa=result, roots=roots)
    return Value(name, array=result, roots=roots)
