"""The one form in which programs and operators are compared: beyond canonicalization, products take no transposes."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.graph_primitives import ContractOp, ViewOp, parse_spec
from .canonicalize import CanonicalizePass


def normalize(ctx: Context, module: ModuleOp) -> None:
    """Brings a module of primitives into it, bit for bit.

    1. What `canonicalize` does.
    2. A product of a transposed operand, or transposed itself, is a product with its letters in another order:

        %t = graph.view %w {maps = [affine_map<(d0, d1) -> (d1, d0)>]}
        %y = graph.contract %x, %t {spec = "mk,kn->mn"}      →    %y = graph.contract %x, %w {spec = "mk,nk->mn"}
    """
    CanonicalizePass().apply(ctx, module)
    changed = False
    for op in list(module.walk()):
        if isinstance(op, ContractOp):
            changed |= _operands(op)
        elif isinstance(op, ViewOp):
            changed |= _result(op)
    if changed:
        CanonicalizePass().apply(ctx, module)


def _operands(op: ContractOp) -> bool:
    *parts, result = parse_spec(op.spec.data)
    changed = False
    for number, value in enumerate(op.args):
        order = _permutation(value)
        if order is not None:
            assert isinstance(value.owner, ViewOp)
            parts[number] = "".join(parts[number][dim] for dim in order)
            op.operands[number] = value.owner.args[0]
            changed = True
    op.properties["spec"] = StringAttr(f"{parts[0]},{parts[1]}->{result}")
    return changed


def _result(op: ViewOp) -> bool:
    order = _permutation(op.res)
    product = op.args[0].owner
    if order is None or not isinstance(product, ContractOp) or op.args[0].uses.get_length() != 1:
        return False
    left, right, result = parse_spec(product.spec.data)
    # The letter of a dimension of the product is that of the dimension of the view which it becomes.
    letters = dict(zip(order, result, strict=True))
    spec = f"{left},{right}->{''.join(letters[dim] for dim in range(len(order)))}"
    made = ContractOp.make(list(product.args), op.res.type, {"spec": StringAttr(spec)})
    made.location = op.location
    made.attributes.update(op.attributes)
    made.res.name_hint = op.res.name_hint
    Rewriter.insert_op(made, InsertPoint.before(op))
    op.res.replace_all_uses_with(made.res)
    Rewriter.erase_op(op)
    return True


def _permutation(value: SSAValue) -> tuple[int, ...] | None:
    """Per dimension of the operand the dimension of the view that it is, for a view that only permutes.

    Of `(d0, d1, d2) -> (d2, d0, d1)` (2, 0, 1): the operand's first dimension is the view's third.
    """
    view = value.owner
    if not isinstance(view, ViewOp) or len(view.args) != 1 or view.lower is not None:
        return None
    (map_,) = view.affine_maps
    dims = [expr.position for expr in map_.results if isinstance(expr, AffineDimExpr)]
    return tuple(dims) if sorted(dims) == [*range(map_.num_dims)] and len(dims) == len(map_.results) else None
