"""Random modules of xDSL's test dialect: attributes of every kind, nested regions, names that clash."""

from __future__ import annotations

from hypothesis import strategies as st
from random_programs import Case
from tilewright.dialects.registry import make_context
from xdsl.context import Context
from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    BoolAttr,
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    DictionaryAttr,
    FileLineColLoc,
    FloatAttr,
    FunctionType,
    FusedLoc,
    IntAttr,
    IntegerAttr,
    LocationAttr,
    ModuleOp,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    UnknownLoc,
    f16,
    f32,
    f64,
    i1,
    i8,
    i32,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.dialects.test import Test, TestOp, TestTermOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineMap


def context() -> Context:
    """tilewright's dialects and the test dialect."""
    result = make_context()
    result.load_dialect(Test)
    return result


KEYS = st.sampled_from(["a", "b", "key", "graph.target", "x y", "1", "tile.x", "loc", "module", "dense"])
NAMES = st.sampled_from([None, "x", "x_1", "x_1_1", "scale", "a.b", "a-b", "y$", "_", "z"])
SYMBOLS = st.sampled_from(["f", "a.b", "x y", 'quo"te', "back\\slash"])
# Escaped characters beside others than ASCII would make bytes of a text; see the next strategy for each alone.
TEXTS = st.one_of(
    st.text(st.characters(codec="ascii"), max_size=6),
    st.text(st.characters(codec="utf-8", categories=("L", "N")), max_size=6),
)
FLOATS = st.one_of(
    st.floats(allow_nan=False, width=16), st.sampled_from([float("inf"), float("-inf"), 0.1, -0.0, 1e300, 3.14159274])
)


@st.composite
def types(draw: st.DrawFn) -> Attribute:
    scalar = st.sampled_from([f16, f32, f64, i1, i8, i32, i64])
    shape = st.lists(st.sampled_from([1, 2, 16, 4096]), max_size=3)
    match draw(st.integers(0, 3)):
        case 0:
            return draw(scalar)
        case 1 | 2:
            return TensorType(draw(scalar), draw(shape))
        case _:
            return FunctionType.from_lists(draw(st.lists(scalar, max_size=2)), draw(st.lists(scalar, max_size=2)))


@st.composite
def leaves(draw: st.DrawFn) -> Attribute:
    match draw(st.integers(0, 11)):
        case 0:
            return IntegerAttr(draw(st.integers(-(2**31), 2**31 - 1)), draw(st.sampled_from([i32, i64])))
        case 1:
            kind = draw(st.sampled_from([f32, f64, f16]))
            value = draw(FLOATS)
            return FloatAttr(value if abs(value) < 6e4 or kind is f64 or value in (float("inf"),) else 0.5, kind)
        case 2 | 3:
            return StringAttr(draw(TEXTS))
        case 4:
            return BoolAttr.from_bool(draw(st.booleans()))
        case 5:
            return UnitAttr()
        case 6:
            return draw(types())
        case 7:
            return SymbolRefAttr(draw(SYMBOLS), draw(st.lists(SYMBOLS, max_size=1)))
        case 8:
            return DenseArrayBase.from_list(i64, draw(st.lists(st.integers(-9, 9), max_size=3)))
        case 9:
            values = draw(st.lists(st.integers(-9, 9), min_size=4, max_size=4))
            return DenseIntOrFPElementsAttr.from_list(TensorType(i32, [2, 2]), values)
        case 10:
            return DenseIntOrFPElementsAttr.from_list(
                TensorType(f32, [200]), [draw(FLOATS.filter(lambda v: v < 9))] * 200
            )
        case _:
            return AffineMapAttr(AffineMap.from_callable(lambda i, j: (i + j * 2, (i * 4) // 3)))


ATTRIBUTES = st.recursive(
    leaves(),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(ArrayAttr), st.dictionaries(KEYS, inner, max_size=3).map(DictionaryAttr)
    ),
    max_leaves=5,
)


@st.composite
def locations(draw: st.DrawFn) -> LocationAttr:
    line = st.integers(0, 99).map(IntAttr)
    one = FileLineColLoc(StringAttr(draw(st.sampled_from(["a.mlir", "b c"]))), draw(line), draw(line))
    match draw(st.integers(0, 3)):
        case 0:
            return UnknownLoc()
        case 1:
            return FusedLoc((one, UnknownLoc()), NoneAttr())
        case _:
            return one


@st.composite
def blocks(draw: st.DrawFn, visible: list[SSAValue], depth: int) -> Block:
    block = Block(arg_types=draw(st.lists(types(), max_size=2)))
    for arg in block.args:
        arg.name_hint = draw(NAMES)
        arg.location = draw(locations())
    values = [*visible, *block.args]
    for _ in range(draw(st.integers(0, 4))):
        block.add_op(op := draw(operations(values, depth)))
        values += op.results
    if visible or depth:
        block.add_op(TestTermOp(draw(st.lists(st.sampled_from(values), max_size=2)) if values else []))
    return block


@st.composite
def operations(draw: st.DrawFn, values: list[SSAValue], depth: int) -> Operation:
    regions = [Region(draw(blocks(values, depth + 1))) for _ in range(draw(st.integers(0, 2 if depth < 2 else 0)))]
    op = TestOp(
        operands=draw(st.lists(st.sampled_from(values), max_size=3)) if values else [],
        result_types=draw(st.lists(types(), max_size=2)),
        attributes=draw(st.dictionaries(KEYS, ATTRIBUTES, max_size=3)),
        properties=draw(st.dictionaries(st.sampled_from(["prop1", "prop2"]), ATTRIBUTES, max_size=2)),
        regions=regions,
    )
    op.location = draw(locations())
    for result in op.results:
        result.name_hint = draw(NAMES)
    return op


@st.composite
def functions(draw: st.DrawFn) -> FuncOp:
    inputs, outputs = draw(st.lists(types(), max_size=2)), draw(st.lists(types(), max_size=2))
    region = Region()
    if draw(st.booleans()):
        region.add_block(block := Block(arg_types=inputs))
        for op in [draw(operations(list(block.args), 1)) for _ in range(draw(st.integers(0, 2)))]:
            block.add_op(op)
        block.add_op(TestTermOp())
    members = draw(st.sampled_from([None, DictionaryAttr({}), DictionaryAttr({"a": UnitAttr()})]))
    return FuncOp(
        draw(SYMBOLS),
        (inputs, outputs),
        region,
        draw(st.sampled_from([None, "private", "public"])),
        arg_attrs=None if members is None else ArrayAttr([members] * len(inputs)),
    )


@st.composite
def modules(draw: st.DrawFn) -> Case:
    ops: list[Operation] = list(draw(blocks([], 0)).ops)
    block = Block()
    for op in ops:
        op.detach()
    # Arguments belong to the dropped block: only ops without operands from it may stay.
    block.add_ops(op for op in ops if not op.operands and not op.regions)
    for _ in range(draw(st.integers(0, 2))):
        block.add_op(draw(functions()))
    block.add_op(draw(operations([], 0)))
    module = ModuleOp(Region(block), draw(st.dictionaries(st.sampled_from(["t.x", "k"]), ATTRIBUTES, max_size=1)))
    if draw(st.booleans()):
        module.properties["sym_name"] = StringAttr(draw(SYMBOLS))
    return Case(module)
