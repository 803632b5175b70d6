"""Random programs of scalar operators, views and constants over special values, to be simplified."""

from __future__ import annotations

import numpy as np
from graph_build import properties
from tilewright.dialects.dtypes import BY_NAME, element
from tilewright.dialects.graph import ConstantOp, MapOp, ReshapeOp, TransposeOp, ViewOp, tensor_type
from tilewright.dialects.scalar import TABLE
from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineMap

SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan, 0.1]
SHAPE = (3, 4)


def random_program(seed: int, length: int = 14) -> tuple[ModuleOp, list[np.ndarray]]:
    """A function of 3x4 inputs (f32, f16, i32), and inputs for it: zeros of both signs, infinities, NaN."""
    rng = np.random.default_rng(seed)
    elements = [BY_NAME[n].attribute for n in ("f32", "f16", "i32")]
    function = FuncOp("main", ([tensor_type(e, SHAPE) for e in elements], []))
    block = function.body.block
    values: list[SSAValue] = list(block.args)
    for e in elements:
        for _ in range(2):
            array = rng.choice(SPECIAL, ()) if element(e).kind == "float" else rng.integers(-1, 3, ())
            op = ConstantOp.of(np.asarray(array), e)
            block.add_op(op)
            values.append(op.res)
    names = [n for n, row in TABLE.items() if n not in ("cast", "pow", "leaky_relu")]
    while length:
        row = TABLE[str(rng.choice(names))]
        operands = [values[int(rng.integers(len(values)))] for _ in range(row.arity)]
        made = [MapOp, TransposeOp, ViewOp, ReshapeOp][int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))]
        try:
            op = _make(made, row.name, operands)
        except Exception as error:
            if type(error).__name__ != "UserError":
                raise
            continue
        block.add_op(op)
        values.append(op.res)
        length -= 1
    results = values[-3:]
    block.add_op(ReturnOp(*results))
    types = [v.type for v in results]
    function.function_type = type(function.function_type).from_lists([a.type for a in block.args], types)
    module = ModuleOp([function])
    module.verify()
    inputs = [rng.choice(SPECIAL, SHAPE).astype(np.float32), rng.choice(SPECIAL, SHAPE).astype(np.float16)]
    return module, [*inputs, rng.integers(-2, 3, SHAPE).astype(np.int32)]


def _make(made: type, fn: str, operands: list[SSAValue]):
    type_ = operands[0].type
    shape = type_.get_shape()
    match made.__name__:
        case "MapOp":
            return MapOp.make(operands, None, properties(fn=fn))
        case "TransposeOp":
            return TransposeOp.make(operands[:1])
        case "ReshapeOp":
            return ReshapeOp.make(operands[:1], tensor_type(type_.element_type, shape[::-1]))
        case _:
            map_ = AffineMap.identity(len(shape))
            turned = AffineMap(len(shape), 0, map_.results[::-1])
            result = tensor_type(type_.element_type, shape[::-1])
            return ViewOp.make(operands[:1], result, {"maps": ArrayAttr([AffineMapAttr(turned)])})
