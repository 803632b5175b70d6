"""Matrix products and Einstein sums."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from ..builder import kind_of, shape_of
from ..errors import Unsupported
from ..node import Handler, Node


def matmul(node: Node) -> SSAValue:
    """The product of matrices, leading dimensions broadcast."""
    return node.build.matmul(node.ssa(0), node.ssa(1))


def gemm(node: Node) -> SSAValue:
    """alpha · A·B + beta · C, A and B transposed on demand."""
    build, a, b = node.build, node.ssa(0), node.ssa(1)
    product = build.matmul(a, b, transpose_a=node.flag("transA"), transpose_b=node.flag("transB"))
    alpha, beta = node.float("alpha", 1.0), node.float("beta", 1.0)
    if alpha != 1.0:
        product = build.map("mul", product, build.scalar(alpha, product))
    if not node.has(2) or beta == 0.0:
        return product
    bias = node.ssa(2)
    if beta != 1.0:
        bias = build.map("mul", bias, build.scalar(beta, bias))
    return build.map("add", product, bias)


def einsum(node: Node) -> SSAValue:
    """Two operands at a time, in the order given; a letter that occurs twice in one operand is its diagonal."""
    equation = node.text("equation").replace(" ", "")
    operands, arrow, out = equation.partition("->")
    terms = operands.split(",")
    values = node.all()
    if len(terms) != len(values):
        raise Unsupported(f"equation '{equation}' has {len(terms)} operands, the node {len(values)}")
    terms, out = _without_ellipsis(terms, out if arrow else None, [len(shape_of(v)) for v in values])
    if not arrow:
        letters = "".join(terms)
        dots = [c for c in dict.fromkeys(letters) if not c.isascii()]
        out = "".join(dots) + "".join(sorted(c for c in set(letters) if c.isascii() and letters.count(c) == 1))
    pairs = [_diagonal(node, v, t) for v, t in zip(values, terms, strict=True)]
    value, letters = pairs[0]
    for i, (other, other_letters) in enumerate(pairs[1:], 1):
        later = set(out).union(*(t for _, t in pairs[i + 1 :]))
        value, letters = _pair(node, value, letters, other, other_letters, later)
    value, letters = _summed(node, value, letters, set(out))
    return node.build.transpose(value, [letters.index(c) for c in out])


def _without_ellipsis(terms: Sequence[str], out: str | None, ranks: Sequence[int]) -> tuple[list[str], str]:
    """Ellipses written as letters beyond ASCII, aligned at their last dimension."""
    widths = [
        rank - len(term.replace("...", "")) if "..." in term else 0 for term, rank in zip(terms, ranks, strict=True)
    ]
    dots = "".join(chr(0xC0 + i) for i in range(max(widths, default=0)))
    plain = [t.replace("...", dots[len(dots) - w :]) for t, w in zip(terms, widths, strict=True)]
    return plain, (dots if out is None else out.replace("...", dots))


def _diagonal(node: Node, value: SSAValue, letters: str) -> tuple[SSAValue, str]:
    build = node.build
    for letter in [c for c in dict.fromkeys(letters) if letters.count(c) > 1]:
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            shape = shape_of(value)
            same = build.map("eq", build.iota(shape, first, "i32"), build.iota(shape, second, "i32"))
            value = build.reduce("sum", build.where(same, value, build.full(shape, 0, kind_of(value))), [second], False)
            letters = letters[:second] + letters[second + 1 :]
    return value, letters


def _summed(node: Node, value: SSAValue, letters: str, keep: set[str]) -> tuple[SSAValue, str]:
    axes = [i for i, c in enumerate(letters) if c not in keep]
    if not axes:
        return value, letters
    return node.build.reduce("sum", value, axes, False), "".join(c for c in letters if c in keep)


def _pair(node: Node, a: SSAValue, left: str, b: SSAValue, right: str, keep: set[str]) -> tuple[SSAValue, str]:
    """The product of two operands, summed over the letters that nobody needs later."""
    a, left = _summed(node, a, left, keep | set(right))
    b, right = _summed(node, b, right, keep | set(left))
    sizes: dict[str, int] = {}
    for letters, value in ((left, a), (right, b)):
        for letter, size in zip(letters, shape_of(value), strict=True):
            sizes[letter] = max(size, sizes.get(letter, 1))
    # Contractions do not broadcast: a dimension of 1 beside a larger one goes.
    a, left = _squeezed(node, a, left, sizes)
    b, right = _squeezed(node, b, right, sizes)
    letters = "".join(c for c in dict.fromkeys(left + right) if c in keep)
    names = {c: chr(97 + i) for i, c in enumerate(dict.fromkeys(left + right))}
    spec = [("".join(names[c] for c in part)) for part in (left, right, letters)]
    return node.build.contract(f"{spec[0]},{spec[1]}->{spec[2]}", a, b), letters


def _squeezed(node: Node, value: SSAValue, letters: str, sizes: dict[str, int]) -> tuple[SSAValue, str]:
    shape = shape_of(value)
    kept = [i for i, c in enumerate(letters) if shape[i] == sizes[c]]
    return node.build.reshape(value, [shape[i] for i in kept]), "".join(letters[i] for i in kept)


TABLE: dict[str, Handler] = {"MatMul": matmul, "Gemm": gemm, "Einsum": einsum}
