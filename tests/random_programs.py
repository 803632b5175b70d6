"""Random programs of primitives: maps, reductions, contractions and views over small awkward shapes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from tilewright.dialects.dtypes import element
from tilewright.dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, ViewOp
from tilewright.dialects.graph_types import static_shape, tensor_type
from tilewright.dialects.index_map import reshape_affine
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    DenseArrayBase,
    Float16Type,
    Float32Type,
    FloatAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr, AffineMap

F16, F32 = Float16Type(), Float32Type()
EXTENTS = (1, 2, 3, 5, 7, 8, 13, 16, 17, 24, 33)
UNARY = ("neg", "abs", "tanh", "sigmoid", "relu", "square", "exp")
BINARY = ("add", "sub", "mul", "max", "min")


class Case:
    """A generated program; hypothesis shows it as text."""

    def __init__(self, module: ModuleOp) -> None:
        self.module = module

    def __repr__(self) -> str:
        return f"\n{self.module}\n"


class Builder:
    """Appends ops to the body of a function."""

    def __init__(self) -> None:
        self.block = Block()
        self.values: list[SSAValue] = []

    def arg(self, shape: tuple[int, ...], kind: Float16Type | Float32Type) -> SSAValue:
        value = self.block.insert_arg(tensor_type(kind, shape), len(self.block.args))
        self.values.append(value)
        return value

    def add(self, op: Operation) -> SSAValue:
        self.block.add_op(op)
        self.values.append(op.results[0])
        return op.results[0]

    def map(self, fn: str, *operands: SSAValue) -> SSAValue:
        return self.add(MapOp.make(operands, None, {"fn": StringAttr(fn)}))

    def constant(self, value: float) -> SSAValue:
        op = ConstantOp.of(np.array(value, np.float32), F32)
        self.block.add_op(op)
        return op.results[0]

    def reduce(self, monoid: str, value: SSAValue, axes: list[int]) -> SSAValue:
        shape = tuple(1 if d in axes else e for d, e in enumerate(static_shape(value.type)))
        kind = tensor_type(F32, shape)
        props = {"monoid": StringAttr(monoid), "axes": DenseArrayBase.from_list(i64, axes)}
        return self.add(ReduceOp.make([value], kind, props))

    def contract(self, spec: str, left: SSAValue, right: SSAValue) -> SSAValue:
        return self.add(ContractOp.make([left, right], None, {"spec": StringAttr(spec)}))

    def view(self, value: SSAValue, shape: tuple[int, ...], map_: AffineMap, **box: object) -> SSAValue:
        props = {"maps": ArrayAttr([AffineMapAttr(map_)]), **box}
        kind = tensor_type(element(value.type).attribute, shape)
        return self.add(ViewOp.make([value], kind, props))

    def corner(self, value: SSAValue, extent: int) -> SSAValue:
        return self.view(value, (extent, extent), AffineMap.identity(2))

    def module(self, results: list[SSAValue]) -> ModuleOp:
        self.block.add_op(ReturnOp(*results))
        kinds = ([a.type for a in self.block.args], [r.type for r in results])
        return ModuleOp([FuncOp("main", kinds, Region(self.block))])


def ints(values: list[int]) -> DenseArrayBase:
    return DenseArrayBase.from_list(i64, values)


def dims(count: int) -> list[AffineExpr]:
    return [AffineExpr.dimension(d) for d in range(count)]


@st.composite
def programs(draw: st.DrawFn, max_ops: int = 7) -> Case:
    """A module with one function `main` of random primitives."""
    builder = Builder()
    kind = draw(st.sampled_from([F32, F32, F16]))
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.sampled_from(EXTENTS)) for _ in range(rank))
    builder.arg(shape, kind)
    for _ in range(draw(st.integers(1, max_ops))):
        ranked = [value for value in builder.values if static_shape(value.type)]
        step(draw, builder, ranked[draw(st.integers(0, len(ranked) - 1))])
    last = builder.values[-1]
    extra = builder.values[draw(st.integers(0, len(builder.values) - 1))]
    results = [last] if extra is last or draw(st.booleans()) else [last, extra]
    return Case(builder.module(results))


def step(draw: st.DrawFn, b: Builder, value: SSAValue) -> None:
    shape = static_shape(value.type)
    rank = len(shape)
    kind = draw(
        st.sampled_from(
            [
                "unary",
                "binary",
                "constant",
                "reduce",
                "reduce",
                "normalise",
                "contract",
                "contract",
                "transpose",
                "reshape",
                "slice",
                "pad",
                "window",
                "concat",
                "iota",
                "expand",
                "gram",
                "mirror",
                "project",
                "select",
                "product",
            ]
        )
    )
    match kind:
        case "unary":
            bounded = b.map("tanh", value)
            b.map(draw(st.sampled_from(UNARY)), bounded)
        case "binary":
            other_shape = tuple(e if draw(st.booleans()) else 1 for e in shape)
            same = [v for v in b.values if static_shape(v.type) in (shape, other_shape)]
            other = draw(st.sampled_from(same)) if draw(st.booleans()) else b.arg(other_shape, F32)
            b.map(draw(st.sampled_from(BINARY)), value, other)
        case "constant":
            b.map(draw(st.sampled_from(BINARY)), value, b.constant(draw(st.sampled_from([0.0, 0.5, -2.0]))))
        case "reduce":
            axes = sorted(draw(st.sets(st.integers(0, rank - 1), min_size=1)))
            b.reduce(draw(st.sampled_from(["sum", "max", "min"])), value, axes)
        case "normalise":
            axis = draw(st.integers(0, rank - 1))
            shifted = b.map("sub", value, b.reduce("max", value, [axis]))
            weights = b.map("exp", shifted)
            b.map("div", weights, b.reduce("sum", weights, [axis]))
        case "contract":
            contract(draw, b, value)
        case "transpose":
            order = draw(st.permutations(range(rank)))
            inverse = [order.index(d) for d in range(rank)]
            b.view(value, tuple(shape[d] for d in order), AffineMap(rank, 0, tuple(dims(rank)[i] for i in inverse)))
        case "reshape":
            new = draw(st.sampled_from(reshapes(shape)))
            b.view(value, new, reshape_affine(shape, new))
        case "slice":
            starts = [draw(st.integers(0, e - 1)) for e in shape]
            steps = [draw(st.sampled_from([1, 1, 1, 2, -1])) for _ in shape]
            left = [(e - s + t - 1) // t if t > 0 else s + 1 for e, s, t in zip(shape, starts, steps, strict=True)]
            sizes = tuple(draw(st.integers(1, n)) for n in left)
            exprs = [d * t + s for d, s, t in zip(dims(rank), starts, steps, strict=True)]
            b.view(value, sizes, AffineMap(rank, 0, tuple(exprs)))
        case "pad":
            low = [draw(st.integers(0, 2)) for _ in shape]
            high = [draw(st.integers(0, 2)) for _ in shape]
            if any(low + high):
                new = tuple(p + e + q for p, e, q in zip(low, shape, high, strict=True))
                map_ = AffineMap(rank, 0, tuple(d - p for d, p in zip(dims(rank), low, strict=True)))
                box = {
                    "lower": ArrayAttr([ints(low)]),
                    "upper": ArrayAttr([ints([p + e for p, e in zip(low, shape, strict=True)])]),
                    "fill": FloatAttr(0.25, element(value.type).attribute),
                }
                b.view(value, new, map_, **box)
        case "window":
            axis = draw(st.integers(0, rank - 1))
            taps = draw(st.integers(1, min(3, shape[axis])))
            step_ = draw(st.integers(1, 2))
            count = (shape[axis] - taps) // step_ + 1
            new = (*shape[:axis], count, *shape[axis + 1 :], taps)
            exprs = dims(rank)
            exprs[axis] = exprs[axis] * step_ + AffineExpr.dimension(rank)
            b.view(value, new, AffineMap(rank + 1, 0, tuple(exprs)))
        case "concat":
            axis = draw(st.integers(0, rank - 1))
            concat(b, value, value, axis, gap=draw(st.integers(0, 2)))
        case "iota":
            index = IotaOp.make([], tensor_type(F32, shape), {"dim": IntegerAttr(draw(st.integers(0, rank - 1)), i64)})
            b.map("add", value, b.add(index))
        case "gram":  # one value at two places of a contraction
            b.contract({1: "s,s->", 2: "as,bs->ab", 3: "das,dbs->dab"}[rank], value, value) if rank <= 3 else None
        case "mirror":  # a value and its transpose
            if rank <= 2:
                square = b.contract("a,b->ab", value, value) if rank == 1 else b.corner(value, min(shape))
                mirrored = b.view(square, static_shape(square.type), AffineMap(2, 0, tuple(dims(2)[::-1])))
                b.map(draw(st.sampled_from(BINARY)), square, mirrored)
        case "project":  # a reduction along one dimension, added along another
            axis = draw(st.integers(0, rank - 1))
            sums = b.reduce("sum", value, [axis])
            rest = (*shape[:axis], *shape[axis + 1 :])
            dropped = b.view(sums, rest, reshape_affine(static_shape(sums.type), rest))
            if all(e in (1, f) for e, f in zip(rest, shape[rank - len(rest) :], strict=True)):
                b.map("sub", value, dropped)
        case "select":
            other = b.map("tanh", value)
            less = b.map("lt", value, b.constant(0.1))
            b.values.remove(less)  # later ops take numbers
            b.map("select", less, value, other)
        case "product":
            b.reduce("prod", b.map("tanh", value), [draw(st.integers(0, rank - 1))])
        case _:
            extent = draw(st.sampled_from(EXTENTS))
            b.view(value, (extent, *shape), AffineMap(rank + 1, 0, tuple(dims(rank + 1)[1:])))


def concat(b: Builder, left: SSAValue, right: SSAValue, axis: int, gap: int) -> None:
    """One after another, with a gap between them that is filled."""
    shape, other = static_shape(left.type), static_shape(right.type)
    rank = len(shape)
    new = tuple(e + gap + other[d] if d == axis else e for d, e in enumerate(shape))
    shifted = dims(rank)
    shifted[axis] = shifted[axis] - shape[axis] - gap
    start = [shape[axis] + gap if d == axis else 0 for d in range(rank)]
    props: dict[str, Attribute] = {
        "maps": ArrayAttr([AffineMapAttr(AffineMap.identity(rank)), AffineMapAttr(AffineMap(rank, 0, tuple(shifted)))]),
        "lower": ArrayAttr([ints([0] * rank), ints(start)]),
        "upper": ArrayAttr([ints(list(shape)), ints(list(new))]),
    }
    if gap:
        props["fill"] = FloatAttr(-1.5, element(left.type).attribute)
    b.add(ViewOp.make([left, right], tensor_type(element(left.type).attribute, new), props))


def contract(draw: st.DrawFn, b: Builder, value: SSAValue) -> None:
    shape = static_shape(value.type)
    letters = "abcdef"[: len(shape)]
    summed = letters[-1]
    extent = draw(st.sampled_from(EXTENTS))
    batch = letters[0] if len(shape) >= 3 else ""
    other_shape = (*(shape[letters.index(c)] for c in batch + summed), extent)
    other = b.arg(other_shape, element(value.type).attribute)
    b.contract(f"{letters},{batch}{summed}n->{letters[:-1]}n", value, other)


def reshapes(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    total = int(np.prod(shape))
    found = [(total,), (1, *shape), (*shape, 1)]
    found += [(f, total // f) for f in (2, 3, 5, 7) if total % f == 0]
    if len(shape) >= 2:
        found += [(shape[0] * shape[1], *shape[2:])]
    for d, extent in enumerate(shape):
        found += [(*shape[:d], f, extent // f, *shape[d + 1 :]) for f in (2, 3) if extent % f == 0 and extent > f]
    return found


def inputs_of(module: ModuleOp, seed: int) -> list[npt.NDArray[np.generic]]:
    """Standard normal inputs of the element types of `main`."""
    rng = np.random.default_rng(seed)
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return [
        rng.standard_normal(static_shape(arg.type)).astype(element(arg.type).numpy) for arg in function.body.block.args
    ]
