"""Putting an affine expression in the place of a loop counter, in every map that an op of the hardware level has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, i32
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineConstantExpr, AffineDimExpr, AffineExpr, AffineMap

from ..dialects import hardware
from .bufferize_layout import linear
from .emit_views import simplified


@dataclass(frozen=True)
class Linear:
    """An affine expression over counters: dimension n is `counters[n]`."""

    counters: tuple[SSAValue, ...]
    expr: AffineExpr

    @staticmethod
    def of(bound: AffineMapAttr, counters: Sequence[SSAValue]) -> Linear:
        """The value of a bound."""
        return Linear(tuple(counters), bound.data.results[0])

    @property
    def constant(self) -> int | None:
        """The number, if no counter takes part."""
        found = linear(self.expr)
        return found[0] if found is not None and not found[1] else None

    def plus(self, number: int) -> Linear:
        return Linear(self.counters, folded(self.expr + AffineConstantExpr(number)))

    def over(self, counters: Sequence[SSAValue]) -> AffineExpr:
        """The expression with the dimensions numbered as in `counters`, which has all of its own."""
        places: list[AffineExpr] = [AffineDimExpr(list(counters).index(counter)) for counter in self.counters]
        return self.expr.replace_dims_and_symbols(places, [])

    def attr(self) -> AffineMapAttr:
        return AffineMapAttr(AffineMap(len(self.counters), 0, (self.expr,)))


def replace_counter(op: Operation, counter: SSAValue, value: Linear) -> None:
    """Puts `value` in the place of `counter` among the operands of an op and in its maps.

    View over (%j, %i) with offset `((d0 · 4 + d1) mod 2) · 64` and %i → %i' + 1: `((d0 · 4 + d1 + 1) mod 2) · 64`.
    """
    if not any(operand is counter for operand in op.operands):
        return
    match op:
        case hardware.ForOp():
            lower, low = _replaced(op.lower_operands, op.lower, counter, value)
            upper, high = _replaced(op.upper_operands, op.upper, counter, value)
            op.operands = [*lower, *upper]
            op.properties["operandSegmentSizes"] = DenseArrayBase.from_list(i32, [len(lower), len(upper)])
            op.lower, op.upper = low, high
        case hardware.ViewOp():
            counters = op.counters
            for name in ("offset", "valid", "start"):
                attr = op.properties.get(name)
                if isinstance(attr, AffineMapAttr):
                    new, op.properties[name] = _replaced(counters, attr, counter, value)
                    op.operands = [op.buffer, *new]
        case hardware.InstructionOp():
            counters = op.counters
            attr = op.properties.get("init") or op.properties.get("map")
            assert isinstance(attr, AffineMapAttr)
            new, made = _replaced(counters, attr, counter, value)
            op.properties["init" if "init" in op.properties else "map"] = made
            op.operands = [*op.views, *new]
        case _:
            raise AssertionError(f"'{op.name}' has a counter")


def _replaced(
    counters: Sequence[SSAValue], attr: AffineMapAttr, counter: SSAValue, value: Linear
) -> tuple[list[SSAValue], AffineMapAttr]:
    """Counters and map of an op afterwards. Dimensions behind those of the counters keep their order."""
    kept = [other for other in counters if other is not counter]
    kept += [other for other in value.counters if other not in kept]
    rest = attr.data.num_dims - len(counters)
    dims = [value.over(kept) if other is counter else AffineDimExpr(kept.index(other)) for other in counters]
    dims += [AffineDimExpr(len(kept) + n) for n in range(rest)]
    results = tuple(folded(expr.replace_dims_and_symbols(dims, [])) for expr in attr.data.results)
    return kept, AffineMapAttr(AffineMap(len(kept) + rest, 0, results))


def folded(expr: AffineExpr) -> AffineExpr:
    """Constants folded and terms collected, inside of `mod` and `floordiv` as well."""
    if linear(expr) is not None:
        return simplified(expr)
    if isinstance(expr, AffineBinaryOpExpr):
        left, right = folded(expr.lhs), folded(expr.rhs)
        made = AffineBinaryOpExpr(expr.kind, left, right)
        if isinstance(left, AffineConstantExpr) and isinstance(right, AffineConstantExpr):
            return AffineConstantExpr(made.eval([], []))
        return made
    return expr
