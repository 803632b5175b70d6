"""The reference evaluator of the graph level: what a program computes, in float64 or as a framework would.

It runs named ops and primitives alike, regions of `graph.fused`, and calls of private functions, op by op in NumPy. It
is the oracle of every lowering step.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, Operation, SSAValue

from ..dialects.dtypes import common_compute_type, element
from ..dialects.errors import UserError
from ..dialects.graph_base import GraphOp
from ..dialects.graph_elementwise import CastOp, ElementwiseOp
from ..dialects.graph_functions import entry_function, resolve_callee
from ..dialects.graph_fused import FusedOp, YieldOp
from ..dialects.graph_index import IndexOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, TakeOp, ViewOp, WeightOp
from ..dialects.graph_types import static_shape
from . import reference_primitives as primitives
from .reference_named import FORMULAS
from .reference_numbers import Array, Numbers, Precision
from .reference_primitives import Loader

Handler: TypeAlias = Callable[[Operation, Sequence[Array], Numbers], Sequence[Array]]


def evaluate(
    program: ModuleOp | FuncOp,
    inputs: Sequence[Array],
    precision: Precision = "f64",
    loader: Loader | None = None,
    handlers: Mapping[str, Handler] | None = None,
) -> list[Array]:
    """The results of a function on `inputs`, one array for each argument.

    A module stands for its only public function, or the one called `main`. Inputs are rounded to the argument types.
    Results are float64 arrays for float types with precision "f64", arrays of the stored dtype with "native";
    integers and truth values are always in their stored dtype. `loader(file, key)` reads weights; `handlers` evaluate
    ops of other dialects by name. Raises UserError for inputs that do not fit, symbolic shapes, and ops without a
    meaning here.
    """
    func = program if isinstance(program, FuncOp) else entry_function(program)
    return _Evaluation(Numbers(precision), loader, handlers or {}, func).run(inputs)


@dataclass
class _Evaluation:
    numbers: Numbers
    loader: Loader | None
    handlers: Mapping[str, Handler]
    func: FuncOp
    depth: int = field(default=0)

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        types = list(self.func.function_type.inputs)
        if len(inputs) != len(types):
            raise UserError(
                f"@{self.func.sym_name.data} takes {len(types)} inputs, got {len(inputs)}", self.func.location
            )
        held: list[Array] = []
        for i, (value, type_) in enumerate(zip(inputs, types, strict=True)):
            array = np.asarray(value)
            if array.shape != static_shape(type_):
                raise UserError(f"input {i} has shape {list(array.shape)}, @{self.func.sym_name.data} takes {type_}")
            held.append(self.numbers.enter(array, type_))
        with np.errstate(all="ignore"):
            return self.block(self.func.body.block, held)

    def block(self, block: Block, inputs: Sequence[Array]) -> list[Array]:
        """Runs the ops of a block; values go as soon as nothing needs them any more."""
        values: dict[SSAValue, Array] = dict(zip(block.args, inputs, strict=True))
        waiting: dict[SSAValue, int] = {}
        for op in block.ops:
            arrays = [values[operand] for operand in op.operands]
            if isinstance(op, ReturnOp | YieldOp):
                return arrays
            for result, array in zip(op.results, self.op(op, arrays), strict=True):
                values[result] = array
            for operand in op.operands:
                waiting[operand] = waiting.get(operand, operand.uses.get_length()) - 1
                if not waiting[operand]:
                    values.pop(operand, None)
        raise UserError("a function ends with func.return", self.func.location)

    def op(self, op: Operation, arrays: list[Array]) -> Sequence[Array]:
        handler = self.handlers.get(op.name)
        if handler is not None:
            return handler(op, arrays, self.numbers)
        match op:
            case FusedOp():
                return self.block(op.body.block, arrays)
            case CallOp():
                return self.call(op, arrays)
            case GraphOp():
                return [self.graph_op(op, arrays)]
            case _:
                raise UserError(f"'{op.name}' has no meaning at the graph level", op.location)

    def call(self, op: CallOp, arrays: list[Array]) -> list[Array]:
        callee = resolve_callee(op)
        # A private function that reaches itself would never end; nesting deeper than the functions there are says so.
        if self.depth > 64:
            raise UserError(f"@{callee.sym_name.data} calls itself", op.location)
        inner = _Evaluation(self.numbers, self.loader, self.handlers, callee, self.depth + 1)
        return inner.block(callee.body.block, arrays)

    def graph_op(self, op: GraphOp, arrays: list[Array]) -> Array:
        types = [operand.type for operand in op.args]
        match op:
            case MapOp():
                return primitives.apply_scalar(self.numbers, op.fn.data, arrays, types, op.res.type, op.properties)
            case ElementwiseOp():
                return primitives.apply_scalar(self.numbers, op.SCALAR.name, arrays, types, op.res.type, op.properties)
            case CastOp():
                return primitives.apply_scalar(self.numbers, "cast", arrays, types, op.res.type, {})
            case ReduceOp():
                return primitives.reduce(self.numbers, op, arrays[0])
            case ContractOp():
                return primitives.contract(self.numbers, op, arrays[0], arrays[1])
            case ViewOp():
                return primitives.view(self.numbers, op, arrays)
            case TakeOp():
                return primitives.take(op, arrays[0], arrays[1])
            case IotaOp():
                return primitives.iota(self.numbers, op)
            case ConstantOp():
                return primitives.constant(self.numbers, op)
            case WeightOp():
                return primitives.weight(self.numbers, op, self.loader)
            case _:
                return self.named(op, arrays)

    def named(self, op: GraphOp, arrays: list[Array]) -> Array:
        """A formula of its own, in the common compute type of the operands that are neither conditions nor indices."""
        formula = FORMULAS.get(op.name)
        if formula is None:
            raise UserError(f"'{op.name}' has no reference", op.location)
        types = [operand.type for operand in op.args]
        static_shape(op.res.type)
        indices = {1} if isinstance(op, IndexOp) else set[int]()
        numeric = [t for i, t in enumerate(types) if element(t).kind != "bool" and i not in indices]
        compute = common_compute_type(numeric or types)
        lifted = [
            array if i in indices or (element(t).kind == "bool" and numeric) else self.numbers.lift(array, compute)
            for i, (array, t) in enumerate(zip(arrays, types, strict=True))
        ]
        return self.numbers.lower(np.asarray(formula(op, lifted)), op.res.type)
