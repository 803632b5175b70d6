"""Small graph programs built for tests: one op in a function, or a few lines of generic text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tilewright.dialects.dtypes import BY_NAME
from tilewright.dialects.graph import Graph
from tilewright.dialects.graph_types import tensor_type
from tilewright.runtime.reference import evaluate
from xdsl.context import Context
from xdsl.dialects.builtin import (
    Builtin,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    UnitAttr,
    f32,
    i64,
)
from xdsl.dialects.func import Func, FuncOp, ReturnOp
from xdsl.ir import Attribute
from xdsl.parser import Parser

CLASSES = {op.name.removeprefix("graph."): op for op in Graph.operations}


def context() -> Context:
    ctx = Context()
    for dialect in (Builtin, Func, Graph):
        ctx.load_dialect(dialect)
    return ctx


def parse(text: str, verify: bool = True) -> ModuleOp:
    module = Parser(context(), text).parse_module()
    if verify:
        module.verify()
    return module


def tensor(text: str) -> Attribute:
    """`2x3xf16` → the tensor type; a word in place of a number is a symbolic dimension."""
    *dims, element = text.split("x")
    return tensor_type(BY_NAME[element].attribute, [int(d) if d.isdigit() else d for d in dims])


def attribute(value: object) -> Attribute:
    match value:
        case Attribute():
            return value
        case bool():
            return UnitAttr()
        case int():
            return IntegerAttr(value, i64)
        case float():
            return FloatAttr(value, f32)
        case str():
            return StringAttr(value)
        case _:
            return DenseArrayBase.from_list(i64, list(value))


def properties(**values: object) -> dict[str, Attribute]:
    return {name: attribute(value) for name, value in values.items()}


def one_op(name: str, types: Sequence[str], result: str | None = None, **values: object) -> ModuleOp:
    """A module with a function of these argument types that returns one op of them."""
    operand_types = [tensor(t) for t in types]
    function = FuncOp("main", (operand_types, []))
    block = function.body.block
    op = CLASSES[name].make(block.args, tensor(result) if result else None, properties(**values))
    block.add_op(op)
    block.add_op(ReturnOp(op.res))
    function.function_type = type(function.function_type).from_lists(operand_types, [op.res.type])
    module = ModuleOp([function])
    module.verify()
    return module


def run(module: ModuleOp, *inputs: np.ndarray, precision: str = "f64") -> np.ndarray:
    """The one result of a module's function."""
    (result,) = evaluate(module, list(inputs), precision)
    return result


def sample(rng: np.random.Generator, type_: str, scale: float = 2.0) -> np.ndarray:
    """Random values of a tensor type; floats are exact in the type."""
    *dims, element = type_.split("x")
    row, shape = BY_NAME[element], [int(d) for d in dims]
    if row.kind == "float":
        return (rng.standard_normal(shape) * scale).astype(row.numpy)
    if row.kind == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    low = 0 if element == "ui8" else -9
    return rng.integers(low, 10, shape).astype(row.numpy)


def sample_all(module_types: Sequence[str], seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [sample(rng, t) for t in module_types]
