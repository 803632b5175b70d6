"""A program as it was loaded: the IR, where it came from, what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy.typing as npt
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Operation, SSAValue

from tilewright.dialects.dtypes import ElementType, element
from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import (
    INPUT_NAMES,
    OUTPUT_NAMES,
    OUTPUTS,
    entry_function,
    output_arguments,
)
from tilewright.dialects.graph_types import shape_of
from tilewright.dialects.hardware import BufferOp, ProgramOp
from tilewright.dialects.tile_types import BufferType
from tilewright.dialects.verify import verify_module
from tilewright.ir.source import SourceMap, load_module, print_module
from tilewright.runtime.weights import WeightReader, weight_reader

from .array_like import as_array
from .errors import diagnosed, plain_error
from .notebook import ir_block

Array: TypeAlias = npt.NDArray[Any]


@dataclass(frozen=True)
class TensorSpec:
    """An input or output: its name, shape and element type. A symbolic dimension is its name."""

    name: str
    shape: tuple[int | str, ...]
    element: ElementType

    def __str__(self) -> str:
        return f"{self.name}: {'x'.join([*map(str, self.shape), self.element.name])}"


@dataclass(frozen=True)
class Module:
    """A loaded program at any level. `op` is the xDSL module; it is not to be changed in place."""

    op: ModuleOp
    source: SourceMap
    weights: Mapping[tuple[str, str], Array] = field(default_factory=dict[tuple[str, str], Array], repr=False)
    """(file, key) → weights that came with the program and lie in no file yet."""

    def weight_reader(self) -> WeightReader:
        """Reads the weights that the program names."""
        return weight_reader(self.source.resolve, self.weights)

    @property
    def texts(self) -> Mapping[str, str]:
        """File name → text, for messages."""
        return self.source.texts

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """What the program takes, in order."""
        with diagnosed(self.texts):
            return _specs(self.op)[0]

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """What the program returns, in order. Names are those of the returned values, `out0`… where they have none."""
        with diagnosed(self.texts):
            return _specs(self.op)[1]

    def ir(self, generic: bool = False) -> str:
        """The text of the program: the uniform form, or the generic form of MLIR."""
        return print_module(self.op, generic)

    def __str__(self) -> str:
        return self.ir()

    def _repr_html_(self) -> str:
        return ir_block(self.ir())

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, specs)) for specs in (self.inputs, self.outputs))
        return f"<tilewright.Module {self.source.file}: ({inputs}) -> ({outputs})>"


def load(
    source: str | Path,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
) -> Module:
    """Reads a program from a file, or from a text if the string looks like one. A file called `….onnx` is imported.

    `dims` binds symbolic dimensions: `load("attention_any.mlir", dims={"seq": 512})`. `constants` fixes inputs of an
    ONNX model to values, where it computes shapes, axes or sizes from them. Raises SourceError, with every error found
    and its place, for anything wrong with the file, its text, `dims` or `constants`.
    """
    if not isinstance(cast(object, source), str | Path):
        raise plain_error(f"a program is a path or a text, got {source!r}")
    if not isinstance(cast(object, dims), Mapping | None):
        raise plain_error(f"'dims' gives a size to each name, as in {{\"seq\": 512}}, got {dims!r}")
    if str(source).endswith(".onnx") and "\n" not in str(source):
        return load_onnx(Path(source), dims, constants)
    if constants:
        raise plain_error("'constants' fix inputs of ONNX models; a text has its constants in itself")
    try:
        op, source_map = load_module(source, dims)
    except RecursionError:
        raise plain_error(f"{source if isinstance(source, Path) else 'the text'} is nested too deeply") from None
    with diagnosed(source_map.texts):
        verify_module(op)
    return Module(op, source_map)


def load_onnx(
    path: Path,
    dims: Mapping[str, int] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    weight_file: str | None = None,
) -> Module:
    """Imports an ONNX model; `weight_file` is what the program calls the file of its weights.

    Raises SourceError without the package `onnx`, and as `load` does.
    """
    try:
        from tilewright.frontend.importer import import_onnx
    except ModuleNotFoundError as error:
        if error.name != "onnx":
            raise
        message = f"reading '{path}' needs the package onnx: pip install 'tilewright[onnx]'"
        raise plain_error(message) from None
    values = {name: as_array(value, f"constant '{name}'") for name, value in (constants or {}).items()}
    imported = import_onnx(path, dims, values, weight_file)
    with diagnosed({}):
        verify_module(imported.module)
    weights = {(imported.weight_file, key): array for key, array in imported.weights.items()}
    return Module(imported.module, SourceMap(str(path), path.parent), weights)


def _specs(module: ModuleOp) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    program = next((op for op in module.ops if isinstance(op, ProgramOp)), None)
    if program is not None:
        found = _buffers(program, "input"), _buffers(program, "output")
        return _called(program, INPUT_NAMES, found[0]), _called(program, OUTPUT_NAMES, found[1])
    function = entry_function(module)
    args, results = list(function.args), _returned(function)
    if OUTPUTS in function.attributes:
        count = output_arguments(function)
        args, results = args[: len(args) - count], args[len(args) - count :]
    inputs, outputs = _named(args, "arg"), _named(results, "out")
    return _called(function, INPUT_NAMES, inputs), _called(function, OUTPUT_NAMES, outputs)


def _called(op: Operation, attribute: str, specs: tuple[TensorSpec, ...]) -> tuple[TensorSpec, ...]:
    """The tensors under the names that an attribute gives them, if it is there."""
    given = op.attributes.get(attribute)
    if given is None:
        return specs
    entries = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    names = [e.data for e in entries if isinstance(e, StringAttr)]
    if len(names) != len(specs) or len(set(names)) != len(names):
        raise UserError(f"{attribute} does not name each of {len(specs)} tensors once", op.location)
    return tuple(replace(spec, name=name) for spec, name in zip(specs, names, strict=True))


def _returned(function: FuncOp) -> list[SSAValue]:
    last = function.body.blocks[-1].last_op if function.body.blocks else None
    return list(last.operands) if isinstance(last, ReturnOp) else []


def _buffers(program: ProgramOp, role: str) -> tuple[TensorSpec, ...]:
    found = [op for op in program.body.block.ops if isinstance(op, BufferOp) and op.role.data == role]
    found.sort(key=lambda op: op.index.value.data if op.index else 0)
    prefix = {"input": "arg", "output": "out"}[role]
    names = [op.label.data if op.label else op.res.name_hint or f"{prefix}{n}" for n, op in enumerate(found)]
    return tuple(_spec(name, op.res.type) for name, op in zip(_distinct(names), found, strict=True))


def _named(values: Sequence[SSAValue], prefix: str) -> tuple[TensorSpec, ...]:
    names = _distinct([value.name_hint or f"{prefix}{n}" for n, value in enumerate(values)])
    return tuple(_spec(name, value.type) for name, value in zip(names, values, strict=True))


def _distinct(names: list[str]) -> list[str]:
    taken: list[str] = []
    for name in names:
        number, free = 0, name
        while free in taken:
            number, free = number + 1, f"{name}_{number + 1}"
        taken.append(free)
    return taken


def _spec(name: str, type_: Attribute) -> TensorSpec:
    if isinstance(type_, BufferType):
        return TensorSpec(name, type_.shape, element(type_.element_type))
    tensor: TensorType[Any] = type_  # pyright: ignore
    return TensorSpec(name, tuple(shape_of(tensor)), element(tensor))
