"""Random masks over two axes, as text of the graph level and as NumPy: an independent oracle of what they mean."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

Array = npt.NDArray[np.float64]
COMPARE = {"le": np.less_equal, "lt": np.less, "ge": np.greater_equal, "gt": np.greater, "eq": np.equal}


@dataclass(frozen=True)
class Comparison:
    """a·i + b·j + c compared with 0; with a period, (a·i + b·j + c) mod period."""

    a: int
    b: int
    c: int
    fn: str
    period: int = 0

    def holds(self, i: Array, j: Array) -> npt.NDArray[np.bool_]:
        value = self.a * i + self.b * j + self.c
        return COMPARE[self.fn](value % self.period if self.period else value, 0)

    def text(self, name: str) -> tuple[str, list[str]]:
        lines = [
            f"%{name}a = graph.mul %i, {constant(f'{name}a', self.a)}",
            f"%{name}b = graph.mul %j, {constant(f'{name}b', self.b)}",
            f"%{name}s = graph.add %{name}a, %{name}b",
            f"%{name}t = graph.add %{name}s, {constant(f'{name}c', self.c)}",
        ]
        value = f"%{name}t"
        if self.period:
            lines.append(f"%{name}m = graph.mod %{name}t, {constant(f'{name}p', self.period)}")
            value = f"%{name}m"
        lines.append(f"%{name} = graph.{self.fn} {value}, {constant(f'{name}z', 0)}")
        numbers = {"a": self.a, "b": self.b, "c": self.c, "p": self.period, "z": 0}
        return f"%{name}", [constant_line(f"{name}{k}", n) for k, n in numbers.items()] + lines


@dataclass(frozen=True)
class Both:
    """`fn` ("and" or "or") of two predicates."""

    fn: str
    left: Predicate
    right: Predicate

    def holds(self, i: Array, j: Array) -> npt.NDArray[np.bool_]:
        sides = self.left.holds(i, j), self.right.holds(i, j)
        return sides[0] & sides[1] if self.fn == "and" else sides[0] | sides[1]

    def text(self, name: str) -> tuple[str, list[str]]:
        left, lines = self.left.text(name + "l")
        right, more = self.right.text(name + "r")
        return f"%{name}", [*lines, *more, f"%{name} = graph.{self.fn} {left}, {right}"]


Predicate = Comparison | Both


def constant(name: str, _: int) -> str:
    return f"%c{name}"


def constant_line(name: str, value: int) -> str:
    return f"%c{name} = graph.constant dense<{value}> : tensor<i32>"


def predicates(deep: int = 2) -> st.SearchStrategy[Predicate]:
    affine = st.builds(
        Comparison,
        st.integers(-2, 2), st.integers(-2, 2), st.integers(-40, 40), st.sampled_from(sorted(COMPARE)),
        st.sampled_from([0, 0, 0, 3, 8]),
    )  # fmt: skip
    band = st.builds(lambda w: Both("and", CAUSAL, Comparison(-1, 1, w, "gt")), st.integers(1, 20))
    base = st.one_of(affine, st.just(CAUSAL), band)
    if not deep:
        return base
    return st.one_of(base, st.builds(Both, st.sampled_from(["and", "or"]), base, predicates(deep - 1)))


CAUSAL = Comparison(-1, 1, 0, "le")
"""j ≤ i."""


def window(width: int) -> Predicate:
    """The `width` keys up to the row's own."""
    return Both("and", CAUSAL, Comparison(-1, 1, width, "gt"))


def attention(
    predicate: Predicate,
    rows: int,
    keys: int,
    heads: int = 1,
    depth: int = 8,
    kind: str = "f32",
    masked: str = "0xFF800000",
    additive: bool = False,
) -> str:
    """softmax(mask(q·kᵀ))·v from primitives; `masked` is what is in the place of masked scores."""
    keep, lines = predicate.text("p")
    joined = (
        [f"%zero = graph.constant dense<0.0> : tensor<{kind}>", f"%bias = graph.where {keep}, %zero, %masked",
         "%u = graph.add %s, %bias"]
        if additive
        else [f"%u = graph.where {keep}, %s, %masked"]
    )  # fmt: skip
    body = [
        "%s = graph.matmul %q, %k {transpose_b}",
        f"%i = graph.iota {{dim = 0 : i64}} : tensor<{rows}x1xi32>",
        f"%j = graph.iota {{dim = 1 : i64}} : tensor<1x{keys}xi32>",
        *lines,
        f"%masked = graph.constant dense<{masked}> : tensor<{kind}>",
        *joined,
        "%m = graph.reduce_max %u {axes = [-1], keepdims}",
        "%d = graph.sub %u, %m",
        "%e = graph.exp %d",
        "%l = graph.reduce_sum %e {axes = [-1], keepdims}",
        "%w = graph.div %e, %l",
        "%y = graph.matmul %w, %v",
    ]
    return function(body, rows, keys, heads, depth, kind)


def linear(predicate: Predicate, rows: int, keys: int, heads: int = 1, depth: int = 8, kind: str = "f32") -> str:
    """(q·kᵀ where the predicate holds, else 0)·v."""
    keep, lines = predicate.text("p")
    body = [
        "%s = graph.matmul %q, %k {transpose_b}",
        f"%i = graph.iota {{dim = 0 : i64}} : tensor<{rows}x1xi32>",
        f"%j = graph.iota {{dim = 1 : i64}} : tensor<1x{keys}xi32>",
        *lines,
        f"%zero = graph.constant dense<0.0> : tensor<{kind}>",
        f"%w = graph.where {keep}, %s, %zero",
        "%y = graph.matmul %w, %v",
    ]
    return function(body, rows, keys, heads, depth, kind)


def function(body: list[str], rows: int, keys: int, heads: int, depth: int, kind: str) -> str:
    q, k = f"tensor<{heads}x{rows}x{depth}x{kind}>", f"tensor<{heads}x{keys}x{depth}x{kind}>"
    inside = "\n".join(f"  {line}" for line in body)
    return f"func.func @main(%q: {q}, %k: {k}, %v: {k}) -> {q} {{\n{inside}\n  func.return %y : {q}\n}}\n"


def mask_of(predicate: Predicate, rows: int, keys: int) -> npt.NDArray[np.bool_]:
    i, j = np.meshgrid(np.arange(rows), np.arange(keys), indexing="ij")
    return predicate.holds(i, j)


def softmax_oracle(predicate: Predicate, q: Array, k: Array, v: Array, masked: float = -np.inf) -> Array:
    """What `attention` is, in float64."""
    scores = np.where(mask_of(predicate, q.shape[1], k.shape[1]), q @ k.swapaxes(1, 2), masked)
    with np.errstate(invalid="ignore"):
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
        return weights / weights.sum(axis=-1, keepdims=True) @ v
