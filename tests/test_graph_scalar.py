"""The table of scalar operators: every algebraic claim of a row is checked on values that break false ones."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tilewright.dialects import dtypes
from tilewright.dialects.dtypes import BY_NAME, common_compute_type, convert, dense, dense_array, element, promote
from tilewright.dialects.errors import UserError
from tilewright.dialects.scalar import MONOIDS, TABLE, ScalarOp, apply, lookup
from xdsl.dialects.builtin import IndexType, IntegerType, Signedness

FLOATS = np.array([0.0, -0.0, 1, -1, 0.5, -2.5, 3, 1e30, -1e-30, np.inf, -np.inf, np.nan], np.float32)
INTS = np.array([0, 1, -1, 2, -3, 7, 2**31 - 1, -(2**31)], np.int32)
BOOLS = np.array([False, True])
VALUES = {"float": FLOATS, "int": INTS, "bool": BOOLS}
KINDS = {
    "float": ["float"],
    "int": ["int"],
    "number": ["float", "int"],
    "bool": ["bool"],
    "any": ["float", "int", "bool"],
}
ROWS = [row for row in TABLE.values() if row.name not in ("cast", "select")]


def params(row: ScalarOp) -> dict[str, float]:
    return dict.fromkeys(row.params, 0.25)


def call(row: ScalarOp, *arrays: np.ndarray) -> np.ndarray:
    return apply(row, arrays, params(row))


def bits(array: np.ndarray) -> bytes:
    """The bytes, with every NaN the same."""
    return (
        np.where(np.isnan(array), np.float32(np.nan), array).tobytes() if array.dtype.kind == "f" else array.tobytes()
    )


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_result_has_the_compute_dtype(row: ScalarOp) -> None:
    for kind in KINDS[row.operands[0]]:
        result = call(row, *[VALUES[kind]] * row.arity)
        assert result.dtype == (np.bool_ if row.result == "bool" else VALUES[kind].dtype)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_identity_and_absorbing_values(row: ScalarOp) -> None:
    for kind, value in row.identity.items():
        x = VALUES[kind]
        e = np.full_like(x, value)
        assert bits(call(row, x, e)) == bits(x)
        assert not row.commutative or bits(call(row, e, x)) == bits(x)
    for kind, value in row.absorbing.items():
        x = VALUES[kind]
        z = np.full_like(x, value)
        assert bits(call(row, x, z)) == bits(z)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_algebra(row: ScalarOp) -> None:
    for kind in KINDS[row.operands[0]]:
        x = VALUES[kind]
        if row.zero_preserving:
            assert not call(row, *[np.zeros(1, x.dtype)] * row.arity).any()
        if row.arity == 1:
            once = call(row, x)
            if row.idempotent:
                assert bits(call(row, once)) == bits(once)
            if row.involution:
                assert bits(call(row, once)) == bits(x)
            continue
        if row.idempotent:
            assert bits(call(row, x, x)) == bits(x)
        a, b = (g.reshape(-1) for g in np.meshgrid(x, x))
        if row.commutative:
            assert np.array_equal(call(row, a, b), call(row, b, a), equal_nan=x.dtype.kind == "f")


@pytest.mark.parametrize("row", [r for r in ROWS if r.monotonic], ids=lambda row: row.name)
def test_monotonic_directions(row: ScalarOp) -> None:
    assert len(row.monotonic) == row.arity
    kind = KINDS[row.operands[0]][0]
    grid = np.linspace(0.01, 30, 300).astype(np.float32) if kind == "float" else np.sort(VALUES[kind])
    if kind == "float" and row.name not in ("log", "log1p", "sqrt", "rsqrt"):
        grid = np.concatenate([-grid[::-1], grid])
    for operand, other in itertools.product(range(row.arity), [grid[3 % len(grid)], grid[-1]]):
        direction = row.direction(operand)
        if direction is None:
            continue
        arrays = [grid if i == operand else np.full_like(grid, other) for i in range(row.arity)]
        with np.errstate(all="ignore"):
            steps = np.diff(call(row, *arrays).astype(np.float64))
        steps = steps[~np.isnan(steps)]
        assert (steps >= 0).all() if direction == "inc" else (steps <= 0).all()


PYTHON = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "max": max, "min": min,
    "neg": lambda a: -a, "abs": abs, "square": lambda a: a * a, "floor": math.floor, "ceil": math.ceil, "round": round,
    "exp": math.exp, "exp2": lambda a: 2.0**a, "expm1": math.expm1, "sin": math.sin, "cos": math.cos,
    "tanh": math.tanh, "erf": math.erf, "sigmoid": lambda a: 1 / (1 + math.exp(-a)), "relu": lambda a: max(a, 0.0),
    "sign": lambda a: (a > 0) - (a < 0), "leaky_relu": lambda a: a if a >= 0 else 0.25 * a,
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "isnan": math.isnan, "identity": lambda a: a,
    "mod": lambda a, b: a % b if b else math.nan, "rem": lambda a, b: math.fmod(a, b) if b else math.nan,
    "tan": math.tan, "atan": math.atan, "sinh": math.sinh, "cosh": math.cosh, "asinh": math.asinh,
    "asin": lambda a: math.asin(a) if abs(a) <= 1 else math.nan,
    "acos": lambda a: math.acos(a) if abs(a) <= 1 else math.nan,
    "acosh": lambda a: math.acosh(a) if a >= 1 else math.nan,
    "atanh": lambda a: math.nan if abs(a) > 1 else math.copysign(math.inf, a) if abs(a) == 1 else math.atanh(a),
}  # fmt: skip
POSITIVE = {
    "log": math.log, "log1p": math.log1p, "sqrt": math.sqrt, "rsqrt": lambda a: 1 / math.sqrt(a),
    "div": lambda a, b: a / b,
    "reciprocal": lambda a: 1 / a, "pow": lambda a, b: a**b,
}  # fmt: skip
BITS = {
    "bit_and": lambda a, b: a & b, "bit_or": lambda a, b: a | b, "bit_xor": lambda a, b: a ^ b, "bit_not": lambda a: ~a,
    "shift_left": lambda a, b: ((a << b if 0 <= b < 64 else 0) + 2**63) % 2**64 - 2**63,
    "shift_right": lambda a, b: a >> (b if 0 <= b < 64 else 63),
}  # fmt: skip
LOGIC = {"and": lambda a, b: a and b, "or": lambda a, b: a or b, "not": lambda a: not a}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_values_against_python(row: ScalarOp) -> None:
    if row.name in LOGIC:
        function, grid = LOGIC[row.name], [False, True]
    elif row.name in BITS:
        function, grid = BITS[row.name], [-(2**63), -7, -1, 0, 1, 2, 5, 63, 64, 2**62 + 3]
    elif row.name in POSITIVE:
        function, grid = POSITIVE[row.name], [0.125, 0.5, 1.0, 1.5, 3.0, 7.75]
    else:
        function, grid = PYTHON[row.name], [-7.5, -2.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.0, 2.5, 6.0]
    for values in itertools.product(grid, repeat=row.arity):
        result = call(row, *(np.array([v]) for v in values))[0]
        np.testing.assert_allclose(result, function(*values), rtol=1e-14, atol=1e-300)


def test_erf_to_the_last_places() -> None:
    x = np.concatenate([np.linspace(-7, 7, 20001), [0.46875, 4.0, 5.9, 1e-300, -1e-8]])
    exact = np.array([math.erf(v) for v in x])
    error = np.abs(apply(TABLE["erf"], [x]) - exact) / np.maximum(np.abs(exact), 1e-300)
    assert error.max() < 4 * np.finfo(np.float64).eps
    ends = apply(TABLE["erf"], [np.array([np.inf, -np.inf, np.nan, -0.0])])
    assert ends[:2].tolist() == [1, -1] and np.isnan(ends[2]) and np.signbit(ends[3])


def test_integer_division_modulo_and_power() -> None:
    a, b = (g.reshape(-1).astype(np.int32) for g in np.meshgrid([-7, -1, 0, 1, 2, 9], [-3, -1, 0, 1, 2, 4]))
    quotient, rest, powers = (apply(TABLE[n], [a, b]).tolist() for n in ("div", "mod", "pow"))
    for x, y, q, r, p in zip(a.tolist(), b.tolist(), quotient, rest, powers, strict=True):
        assert q == (math.trunc(x / y) if y else 0)
        assert r == (x % y if y else 0)
        assert p == (x**y if y >= 0 else math.trunc(1 / x**-y) if x else 0)


def test_select_takes_values_by_the_condition() -> None:
    result = apply(TABLE["select"], [np.array([[True], [False]]), np.array([1.0, 2.0]), np.array(-1.0)])
    assert result.tolist() == [[1, 2], [-1, -1]]


@pytest.mark.parametrize("name", MONOIDS)
@pytest.mark.parametrize("kind", ["f32", "f16", "i8", "ui8", "i64"])
def test_monoid_identities(name: str, kind: str) -> None:
    row = BY_NAME[kind]
    x = np.array([0, 1, 100, 5]).astype(row.numpy)
    e = np.full_like(x, MONOIDS[name].identity(row))
    assert np.array_equal(apply(MONOIDS[name].combine, [x, e]), x)
    assert np.array_equal(MONOIDS[name].ufunc(x, e), x)


def test_an_unknown_operator_is_named() -> None:
    with pytest.raises(UserError, match="'expo' is not known"):
        lookup("expo")


def test_element_types() -> None:
    attributes = {name: row.attribute for name, row in BY_NAME.items()}
    assert [row.bytes for row in BY_NAME.values()] == [8, 4, 2, 2, 8, 4, 1, 1, 1]
    assert element(common_compute_type([attributes["f16"], attributes["i64"]])).name == "f32"
    assert element(common_compute_type([attributes["i8"], attributes["ui8"]])).name == "i32"
    assert element(promote([attributes["i8"], attributes["ui8"]])).name == "i32"
    for name, row in BY_NAME.items():
        array = convert(np.array([[1.0, 0.0, 3.0]]), row)
        assert array.dtype == row.numpy
        assert np.array_equal(dense_array(dense(array)), array), name


def test_element_types_are_found_by_what_they_are() -> None:
    """The table is searched without hashing: each row by itself, and nothing that looks like a row."""
    for name in dtypes.NAMES:
        assert dtypes.element(dtypes.by_name(name).attribute) is dtypes.by_name(name)
        assert dtypes.is_supported(dtypes.by_name(name).attribute)
    others = [IntegerType(8, Signedness.SIGNED), IntegerType(32, Signedness.UNSIGNED), IntegerType(16), IndexType()]
    for other in others:
        assert not dtypes.is_supported(other)
        with pytest.raises(UserError, match="is not supported"):
            dtypes.element(other)
