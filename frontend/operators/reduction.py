"""Reductions over axes, extrema and their places, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Attribute, SSAValue

from ...dialects import graph
from ...dialects.dtypes import element
from ..builder import integer, kind_of, shape_of
from ..errors import Unsupported
from ..node import Handler, Node

Step = Callable[[Node, SSAValue], SSAValue]


def _keep(node: Node, x: SSAValue) -> SSAValue:
    return x


def _map(fn: str) -> Step:
    return lambda node, x: node.build.map(fn, x)


def reduction(kind: str, before: Step = _keep, after: Step = _keep, axes_since: int = 18) -> Handler:
    """before, then a monoid over the axes, then after. Axes are an operand since opset `axes_since`."""

    def handler(node: Node) -> SSAValue:
        rank = len(node.shape(0))
        axes = node.axes_operand(1, axes_since, rank)
        x = node.ssa(0)
        if not axes:
            if node.flag("noop_with_empty_axes"):
                return after(node, before(node, x))
            axes = list(range(rank))
        if not axes:
            return after(node, before(node, x))
        stored = kind_of(x)
        is_bool = stored == "i1"
        x = before(node, node.build.cast(x, "i32") if is_bool else x)
        whole_mean = kind == "mean" and element(x.type).kind != "float"
        total = node.build.reduce("sum" if whole_mean else kind, x, axes, node.flag("keepdims", True))
        if whole_mean:
            count = math.prod(shape_of(x)[a] for a in axes)
            total = node.build.map("div", total, node.build.scalar(count, total))
        return node.build.cast(after(node, total), stored)

    return handler


def log_sum_exp(node: Node) -> SSAValue:
    """m + ln Σ e^(x − m) with m = max x, which does not overflow; m counts as 0 where it is infinite."""
    rank = len(node.shape(0))
    axes = node.axes_operand(1, 18, rank)
    x = node.ssa(0)
    if not axes and node.flag("noop_with_empty_axes"):
        return x
    axes = axes or list(range(rank))
    build = node.build
    if not axes:
        return x
    top = build.reduce("max", x, axes)
    finite = build.map("lt", build.map("abs", top), build.scalar(float("inf"), top))
    top = build.where(finite, top, build.scalar(0, top))
    total = build.reduce("sum", build.map("exp", build.map("sub", x, top)), axes)
    result = build.map("add", build.map("log", total), top)
    kept = [1 if d in axes else s for d, s in enumerate(shape_of(x))]
    return build.reshape(
        result, kept if node.flag("keepdims", True) else [s for d, s in enumerate(kept) if d not in axes]
    )


def extremum_place(cls: type[graph.ArgMaxOp] | type[graph.ArgMinOp]) -> Handler:
    """The index of the first (or last) greatest or least element along an axis."""

    def handler(node: Node) -> SSAValue:
        x = node.ssa(0)
        axis = node.axis("axis", 0, len(shape_of(x)))
        properties: dict[str, Attribute] = {"axis": integer(axis)}
        if node.flag("select_last_index"):
            properties["last"] = UnitAttr()
        found = node.build.named(cls, x, **properties)
        return (
            found
            if node.flag("keepdims", True)
            else node.build.reshape(found, [s for d, s in enumerate(shape_of(found)) if d != axis])
        )

    return handler


def running(kind: str) -> Handler:
    """Sums or products of the elements up to each one along an axis."""

    def handler(node: Node) -> SSAValue:
        x = node.ssa(0)
        axes = node.ints(1, "the axis")
        if len(axes) != 1:
            raise Unsupported("the axis is one number")
        rank = len(shape_of(x))
        properties: dict[str, Attribute] = {"axis": integer(axes[0] % rank)}
        for name in ("exclusive", "reverse"):
            if node.flag(name):
                properties[name] = UnitAttr()
        return node.build.named(graph.CumSumOp if kind == "sum" else graph.CumProdOp, x, **properties)

    return handler


TABLE: dict[str, Handler] = {
    "ReduceSum": reduction("sum", axes_since=13),
    "ReduceMax": reduction("max"),
    "ReduceMin": reduction("min"),
    "ReduceProd": reduction("prod"),
    "ReduceMean": reduction("mean"),
    "ReduceL1": reduction("sum", before=_map("abs")),
    "ReduceL2": reduction("sum", before=_map("square"), after=_map("sqrt")),
    "ReduceSumSquare": reduction("sum", before=_map("square")),
    "ReduceLogSum": reduction("sum", after=_map("log")),
    "ReduceLogSumExp": log_sum_exp,
    "ArgMax": extremum_place(graph.ArgMaxOp),
    "ArgMin": extremum_place(graph.ArgMinOp),
    "CumSum": running("sum"),
    "CumProd": running("prod"),
}
