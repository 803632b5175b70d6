"""How two primitives differ, in words; spelling that changes nothing is no difference."""

from __future__ import annotations

from collections.abc import Callable

from xdsl.ir import Operation, SSAValue

from ..dialects.dtypes import dense_array, splat
from ..dialects.graph_base import GraphOp
from ..dialects.graph_primitives import ConstantOp, ContractOp, IotaOp, MapOp, ReduceOp, ViewOp, parse_spec
from ..dialects.graph_types import (
    get_int,
    get_ints,
    get_numbers,
    normalize_axes,
    normalize_axis,
    shape_of,
    static_shape,
)
from ..dialects.index_map import IndexMap


def difference(op: GraphOp, other: GraphOp) -> str | None:
    """What `other` does, and `op` instead; None if they do the same to the same operands (a product: in some order)."""
    if op.name != other.name:
        return f"'{other.name}', the operator has '{op.name}'"
    found = [describe(one) for one in (op, other)]
    same = found[0] == found[1] if not isinstance(op, ContractOp) else bool(product_orders(op, other))
    if not same:
        return f"{found[1]}, the operator has {found[0]}"
    if len(op.args) != len(other.args):
        return f"{len(other.args)} operands, the operator has {len(op.args)}"
    if op.res.type != other.res.type:
        return f"a value of {other.res.type}, the operator has {op.res.type}"
    return None


def describe(op: GraphOp) -> str:
    """A primitive without its operands and type: equal texts for equal meanings."""
    row = _DESCRIPTIONS.get(type(op))
    return row(op) if row is not None else f"'{op.name}' {sorted(map(str, op.properties.items()))}"


def product_orders(op: ContractOp, other: GraphOp) -> list[tuple[SSAValue, ...]]:
    """The orders in which the operands of another product may stand for those of this one."""
    if not isinstance(other, ContractOp):
        return []
    left, right, result = parse_spec(other.spec.data)
    wanted = _letters(*parse_spec(op.spec.data))
    first, second = other.args
    orders = ((_letters(left, right, result), (first, second)), (_letters(right, left, result), (second, first)))
    return [order for letters, order in orders if letters == wanted]


def same_elements(value: SSAValue, other: SSAValue) -> bool:
    """Whether two constants are the same wherever they are broadcast to the same shape."""
    if not isinstance(value.owner, ConstantOp) or not isinstance(other.owner, ConstantOp):
        return False
    if value.type == other.type:
        return _constant(value.owner) == _constant(other.owner)
    one, two = splat(value.owner.value), splat(other.owner.value)
    return one is not None and two is not None and (one.dtype, one.tobytes()) == (two.dtype, two.tobytes())


def is_static(op: Operation) -> bool:
    """Whether an operation is made from constants and positions only: computed anywhere at no traffic."""
    return (
        isinstance(op, GraphOp)
        and op.name != "graph.weight"
        and all(isinstance(value.owner, Operation) and is_static(value.owner) for value in op.args)
    )


def _letters(left: str, right: str, result: str) -> tuple[tuple[int, ...], ...]:
    """A contraction whatever its letters are called: numbers in the order of their first use."""
    numbers = {letter: number for number, letter in enumerate(dict.fromkeys(left + right))}
    return tuple(tuple(numbers[letter] for letter in part) for part in (left, right, result))


def _map(op: MapOp) -> str:
    params = get_numbers(op.properties, "params", op.what())
    return f"'{op.fn.data}'" + (f" {params}" if params else "")


def _reduce(op: ReduceOp) -> str:
    axes = normalize_axes(get_ints(op.properties, "axes", None, op.what()), len(shape_of(op.args[0].type)), op.what())
    return f"'{op.monoid.data}' over axes {list(axes)}"


def _contract(op: ContractOp) -> str:
    return f'"{op.spec.data}"'


def _view(op: ViewOp) -> str:
    shape = static_shape(op.res.type)
    maps = [IndexMap.try_affine(map_, shape) for map_ in op.affine_maps]
    texts = [str(m if n is None else n.to_affine()) for m, n in zip(op.affine_maps, maps, strict=True)]
    boxes = "" if op.lower is None else f" in {op.boxes}"
    fill = "" if op.fill_value is None else f", {op.fill_value} elsewhere"
    return f"a view by {'; '.join(texts)}{boxes}{fill}"


def _iota(op: IotaOp) -> str:
    dim = get_int(op.properties, "dim", None, op.what())
    return f"positions along {normalize_axis(dim, len(shape_of(op.res.type)), op.what())}"


def _constant(op: ConstantOp) -> str:
    one = splat(op.value)
    if one is not None:
        return f"the constant {one} ({one.tobytes().hex()})"
    return f"a constant of {dense_array(op.value).tobytes().hex()}"


_DESCRIPTIONS: dict[type[GraphOp], Callable[..., str]] = {
    MapOp: _map,
    ReduceOp: _reduce,
    ContractOp: _contract,
    ViewOp: _view,
    IotaOp: _iota,
    ConstantOp: _constant,
}
