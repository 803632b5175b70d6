"""The table of scalar operators and the table of monoids: what every level means by "add" or "exp".

Adding an operator is one row here and one test. A row's function works on NumPy arrays of one compute dtype (see
`dtypes.compute_type`); who calls it rounds the result to the type the op writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

from . import scalar_math
from .dtypes import ElementType, Kind, by_name, element, promote
from .errors import UserError

Array: TypeAlias = npt.NDArray[Any]
Function: TypeAlias = Callable[..., Array]
Domain: TypeAlias = Literal["float", "int", "number", "bool", "any"]
ResultKind: TypeAlias = Literal["same", "bool", "cast"]
Direction: TypeAlias = Literal["inc", "dec"] | None
CostClass: TypeAlias = Literal["add", "mul", "exp", "div", "sqrt", "reciprocal"]
Value: TypeAlias = float | int | bool

_DOMAIN_KINDS: dict[Domain, tuple[Kind, ...]] = {
    "float": ("float",),
    "int": ("int",),
    "number": ("float", "int"),
    "bool": ("bool",),
    "any": ("float", "int", "bool"),
}
_DOMAIN_WORDS: dict[Domain, str] = {
    "float": "floating-point numbers",
    "int": "integers",
    "number": "numbers",
    "bool": "truth values (i1)",
    "any": "elements of any type",
}


@dataclass(frozen=True)
class ScalarOp:
    """One scalar operator.

    operands       what each operand may be; its length is the arity
    function       NumPy meaning on arrays of one compute dtype (the i1 condition of select apart)
    result         "same" as the operands, "bool", or "cast" to the written type
    cost           start-up class of the vector engine; `passes` instructions of that class make up a composite
    commutative    f(a, b) = f(b, a) (the sign of a zero from max and min of ±0 apart)
    identity       per kind, a value e with f(x, e) = x bit for bit, for every x (NaN, infinities and −0 included)
    absorbing      per kind, a value z with f(x, z) = z for every x
    idempotent     f(f(x)) = f(x) for one operand, f(x, x) = x for two
    involution     f(f(x)) = x
    zero_preserving  f(0, …, 0) = 0
    monotonic      per operand, the others fixed: never decreasing, never increasing, or neither
    params         names of the numeric parameters an op must give in `params`
    """

    name: str
    operands: tuple[Domain, ...]
    function: Function
    cost: CostClass
    passes: int = 1
    result: ResultKind = "same"
    commutative: bool = False
    identity: Mapping[Kind, Value] = field(default_factory=dict[Kind, Value])
    absorbing: Mapping[Kind, Value] = field(default_factory=dict[Kind, Value])
    idempotent: bool = False
    involution: bool = False
    zero_preserving: bool = False
    monotonic: tuple[Direction, ...] = ()
    params: tuple[str, ...] = ()

    @property
    def arity(self) -> int:
        """Number of operands."""
        return len(self.operands)

    def direction(self, operand: int) -> Direction:
        """How the result moves when `operand` grows and the others stay."""
        return self.monotonic[operand] if self.monotonic else None


_F: tuple[Domain, ...] = ("float",)
_N: tuple[Domain, ...] = ("number",)
_NN: tuple[Domain, ...] = ("number", "number")
_II: tuple[Domain, ...] = ("int", "int")
_UP: tuple[Direction, ...] = ("inc",)
_UP2: tuple[Direction, ...] = ("inc", "inc")

# Start-up classes follow the published table of the default machine; the number of passes of a composite is assumed
# (tanh = 1 − 2/(exp(2x) + 1), sigmoid = 1/(1 + exp(−x)), pow = exp(b·log a), erf and sin as polynomials).
_ROWS: tuple[ScalarOp, ...] = (
    # arithmetic. −0 and not +0 is the neutral element of a floating-point sum: (−0) + (+0) = +0.
    ScalarOp("add", _NN, np.add, "add", commutative=True, identity={"float": -0.0, "int": 0}, zero_preserving=True,
             monotonic=_UP2),
    ScalarOp("sub", _NN, np.subtract, "add", identity={"float": 0.0, "int": 0}, zero_preserving=True,
             monotonic=("inc", "dec")),
    ScalarOp("mul", _NN, np.multiply, "mul", commutative=True, identity={"float": 1.0, "int": 1},
             absorbing={"int": 0}, zero_preserving=True),
    ScalarOp("div", _NN, scalar_math.divide, "div", identity={"float": 1.0, "int": 1}),
    ScalarOp("pow", _NN, scalar_math.power, "exp", passes=3, identity={"float": 1.0, "int": 1}),
    ScalarOp("mod", _NN, scalar_math.modulo, "div", passes=4),
    ScalarOp("rem", _NN, scalar_math.remainder, "div", passes=4),
    ScalarOp("max", _NN, np.maximum, "add", commutative=True, identity={"float": -np.inf}, idempotent=True,
             zero_preserving=True, monotonic=_UP2),
    ScalarOp("min", _NN, np.minimum, "add", commutative=True, identity={"float": np.inf}, idempotent=True,
             zero_preserving=True, monotonic=_UP2),
    # one number to one number
    ScalarOp("neg", _N, np.negative, "add", involution=True, zero_preserving=True, monotonic=("dec",)),
    ScalarOp("abs", _N, np.abs, "add", idempotent=True, zero_preserving=True),
    ScalarOp("sign", _N, np.sign, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
    ScalarOp("square", _N, np.square, "mul", zero_preserving=True),
    ScalarOp("relu", _N, scalar_math.relu, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
    ScalarOp("leaky_relu", _F, scalar_math.leaky_relu, "mul", passes=2, zero_preserving=True, params=("alpha",)),
    ScalarOp("floor", _F, np.floor, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
    ScalarOp("ceil", _F, np.ceil, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
    ScalarOp("round", _F, np.rint, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
    ScalarOp("exp", _F, np.exp, "exp", monotonic=_UP),
    ScalarOp("exp2", _F, np.exp2, "exp", passes=2, monotonic=_UP),
    ScalarOp("expm1", _F, np.expm1, "exp", passes=3, zero_preserving=True, monotonic=_UP),
    ScalarOp("log", _F, np.log, "exp", monotonic=_UP),
    ScalarOp("log1p", _F, np.log1p, "exp", passes=3, zero_preserving=True, monotonic=_UP),
    ScalarOp("sqrt", _F, np.sqrt, "sqrt", zero_preserving=True, monotonic=_UP),
    ScalarOp("rsqrt", _F, scalar_math.rsqrt, "reciprocal", monotonic=("dec",)),
    ScalarOp("reciprocal", _F, np.reciprocal, "reciprocal"),
    ScalarOp("tanh", _F, np.tanh, "exp", passes=5, zero_preserving=True, monotonic=_UP),
    ScalarOp("sigmoid", _F, scalar_math.sigmoid, "exp", passes=4, monotonic=_UP),
    ScalarOp("erf", _F, scalar_math.erf, "mul", passes=12, zero_preserving=True, monotonic=_UP),
    ScalarOp("sin", _F, np.sin, "mul", passes=10, zero_preserving=True),
    ScalarOp("cos", _F, np.cos, "mul", passes=10),
    ScalarOp("tan", _F, np.tan, "mul", passes=12, zero_preserving=True),
    ScalarOp("asin", _F, np.arcsin, "mul", passes=12, zero_preserving=True, monotonic=_UP),
    ScalarOp("acos", _F, np.arccos, "mul", passes=12, monotonic=("dec",)),
    ScalarOp("atan", _F, np.arctan, "mul", passes=12, zero_preserving=True, monotonic=_UP),
    ScalarOp("sinh", _F, np.sinh, "exp", passes=4, zero_preserving=True, monotonic=_UP),
    ScalarOp("cosh", _F, np.cosh, "exp", passes=3),
    ScalarOp("asinh", _F, np.arcsinh, "exp", passes=4, zero_preserving=True, monotonic=_UP),
    ScalarOp("acosh", _F, np.arccosh, "exp", passes=4, monotonic=_UP),
    ScalarOp("atanh", _F, np.arctanh, "exp", passes=4, zero_preserving=True, monotonic=_UP),
    # bits of two's complement
    ScalarOp("bit_and", _II, np.bitwise_and, "add", commutative=True, absorbing={"int": 0},
             idempotent=True, zero_preserving=True),
    ScalarOp("bit_or", _II, np.bitwise_or, "add", commutative=True, identity={"int": 0},
             idempotent=True, zero_preserving=True),
    ScalarOp("bit_xor", _II, np.bitwise_xor, "add", commutative=True, identity={"int": 0}, zero_preserving=True),
    ScalarOp("bit_not", ("int",), np.bitwise_not, "add", involution=True, monotonic=("dec",)),
    ScalarOp("shift_left", _II, scalar_math.shift_left, "mul", identity={"int": 0}, zero_preserving=True),
    ScalarOp("shift_right", _II, scalar_math.shift_right, "mul", identity={"int": 0}, zero_preserving=True),
    # comparison and logic
    ScalarOp("eq", ("any", "any"), np.equal, "add", result="bool", commutative=True),
    ScalarOp("ne", ("any", "any"), np.not_equal, "add", result="bool", commutative=True, zero_preserving=True),
    ScalarOp("lt", _NN, np.less, "add", result="bool", zero_preserving=True),
    ScalarOp("le", _NN, np.less_equal, "add", result="bool"),
    ScalarOp("gt", _NN, np.greater, "add", result="bool", zero_preserving=True),
    ScalarOp("ge", _NN, np.greater_equal, "add", result="bool"),
    ScalarOp("isnan", _F, np.isnan, "add", result="bool", zero_preserving=True),
    ScalarOp("and", ("bool", "bool"), np.logical_and, "add", result="bool", commutative=True, identity={"bool": True},
             absorbing={"bool": False}, idempotent=True, zero_preserving=True, monotonic=_UP2),
    ScalarOp("or", ("bool", "bool"), np.logical_or, "add", result="bool", commutative=True, identity={"bool": False},
             absorbing={"bool": True}, idempotent=True, zero_preserving=True, monotonic=_UP2),
    ScalarOp("not", ("bool",), np.logical_not, "add", result="bool", involution=True, monotonic=("dec",)),
    # choice and movement
    ScalarOp("select", ("bool", "any", "any"), np.where, "add", zero_preserving=True),
    ScalarOp("cast", ("any",), scalar_math.same, "add", result="cast", zero_preserving=True, monotonic=_UP),
    ScalarOp("identity", ("any",), scalar_math.same, "add", idempotent=True, zero_preserving=True, monotonic=_UP),
)  # fmt: skip
TABLE: dict[str, ScalarOp] = {row.name: row for row in _ROWS}


@dataclass(frozen=True)
class Monoid:
    """An associative, commutative combination of many values into one.

    combine is the scalar operator of two values, ufunc its NumPy form. The identity depends on the element type:
    the least (greatest) value of it for max (min), the infinities for floats.
    """

    name: str
    combine: ScalarOp
    ufunc: np.ufunc

    def identity(self, row: ElementType) -> Value:
        """The value that changes nothing, for elements of `row`."""
        match self.name:
            case "sum":
                return 0.0 if row.kind == "float" else 0
            case "prod":
                return 1.0 if row.kind == "float" else 1
            case _:
                return _extreme(row, lowest=self.name == "max")


def _extreme(row: ElementType, lowest: bool) -> Value:
    if row.kind == "bool":
        return not lowest
    if row.kind == "float":
        return -np.inf if lowest else np.inf
    info = np.iinfo(row.numpy)
    return int(info.min if lowest else info.max)


MONOIDS: dict[str, Monoid] = {
    "sum": Monoid("sum", TABLE["add"], np.add),
    "prod": Monoid("prod", TABLE["mul"], np.multiply),
    "max": Monoid("max", TABLE["max"], np.maximum),
    "min": Monoid("min", TABLE["min"], np.minimum),
}


def lookup(name: str) -> ScalarOp:
    """The scalar operator called `name`. Raises UserError for an unknown one."""
    if name not in TABLE:
        raise UserError(f"scalar operator '{name}' is not known; known are {', '.join(TABLE)}")
    return TABLE[name]


def monoid(name: str) -> Monoid:
    """The monoid called `name`. Raises UserError for an unknown one."""
    if name not in MONOIDS:
        raise UserError(f"monoid '{name}' is not known; known are {', '.join(MONOIDS)}")
    return MONOIDS[name]


def apply(op: ScalarOp, arrays: Sequence[Array], params: Mapping[str, Value] | None = None) -> Array:
    """The operator on arrays of one compute dtype (broadcast as NumPy does), silently on floating-point exceptions.

    Integers wrap around. `cast` returns its operand: converting is `dtypes.convert`.
    """
    with np.errstate(all="ignore"):
        return np.asarray(op.function(*arrays, **dict(params or {})))


def infer_element(op: ScalarOp, types: Sequence[Attribute], what: str) -> Attribute:
    """The default result element type of `op` on operands of element types `types`.

    `what` names the op in messages. Raises UserError for a wrong number of operands or an operand of a wrong type,
    and for `cast`, whose result type must be written.
    """
    if len(types) != op.arity:
        raise UserError(f"{what} takes {op.arity} operand{'s' * (op.arity != 1)}, got {len(types)}")
    for i, (domain, type_) in enumerate(zip(op.operands, types, strict=True)):
        if element(type_).kind not in _DOMAIN_KINDS[domain]:
            raise UserError(f"{what} takes {_DOMAIN_WORDS[domain]}, got {element(type_).name} as operand {i}")
    data = types[1:] if op.name == "select" else types
    if len({element(t).kind == "bool" for t in data}) > 1:
        names = " and ".join(element(t).name for t in data)
        raise UserError(f"{what} mixes truth values and numbers ({names}); convert one with graph.cast")
    if op.result == "bool":
        return by_name("i1").attribute
    if op.result == "cast":
        raise UserError(f"{what} needs its result type written")
    return promote(data)
