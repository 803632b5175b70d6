"""A program as it was loaded: the IR, where it came from, what goes in and what comes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, SSAValue

from tilewright.dialects.dtypes import ElementType, element
from tilewright.dialects.graph_functions import OUTPUTS, entry_function, output_arguments
from tilewright.dialects.graph_types import shape_of
from tilewright.dialects.hardware import BufferOp, ProgramOp
from tilewright.dialects.tile_types import BufferType
from tilewright.dialects.verify import verify_module
from tilewright.ir.source import SourceMap, load_module, print_module

from .errors import diagnosed, plain_error
from .notebook import ir_block


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


def load(source: str | Path, dims: Mapping[str, int] | None = None) -> Module:
    """Reads a program from a file, or from a text if the string looks like one.

    `dims` binds symbolic dimensions: `load("attention_any.mlir", dims={"seq": 512})`. Raises SourceError, with every
    error found and its place, for anything wrong with the file, its text or `dims`.
    """
    try:
        op, source_map = load_module(source, dims)
    except RecursionError:
        raise plain_error(f"{source if isinstance(source, Path) else 'the text'} is nested too deeply") from None
    with diagnosed(source_map.texts):
        verify_module(op)
    return Module(op, source_map)


def _specs(module: ModuleOp) -> tuple[tuple[TensorSpec, ...], tuple[TensorSpec, ...]]:
    program = next((op for op in module.ops if isinstance(op, ProgramOp)), None)
    if program is not None:
        return _buffers(program, "input"), _buffers(program, "output")
    function = entry_function(module)
    args = list(function.args)
    if OUTPUTS in function.attributes:
        count = output_arguments(function)
        return _named(args[: len(args) - count], "arg"), _named(args[len(args) - count :], "out")
    return _named(args, "arg"), _named(_returned(function), "out")


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
