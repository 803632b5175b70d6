"""Inlining of calls of private functions, the custom operators of a program."""

from __future__ import annotations

from xdsl.dialects.builtin import CallSiteLoc, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ..dialects.errors import UserError
from ..dialects.graph_functions import resolve_callee
from ..dialects.operators import KERNELS, MATCH
from .handwritten import choose_kernel, operator_group, tell_derived


def inline_calls(module: ModuleOp, kernels: bool = True) -> None:
    """Replaces every call by a copy of the callee's body, then erases private functions nothing calls any more, those
    apart which `match` looks for.

    With `kernels`, a call for which there is a hand-written kernel becomes a group that names it (see `handwritten`).

    A copied op's location is the call site: where it stands in the callee and who called. Raises UserError for an
    unknown callee, one without a body, and a function that calls itself.
    """
    done: set[FuncOp] = set()
    for function in _functions(module):
        if not function.is_declaration:
            _inline_into(function, [], done, module if kernels else None)
    for function in _functions(module):
        if _is_private(function) and function in done and not (kernels and MATCH in function.attributes):
            function.detach()
            function.erase()


def _is_looked_for(callee: FuncOp, module: ModuleOp) -> bool:
    """Whether `match` comes to what a call of this function means, and says itself why no kernel fits."""
    kernels = callee.attributes.get(KERNELS)
    return any(MATCH in f.attributes and f.attributes.get(KERNELS) == kernels for f in _functions(module))


def _is_private(function: FuncOp) -> bool:
    return function.sym_visibility is not None and function.sym_visibility.data == "private"


def _functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp)]


def _inline_into(function: FuncOp, callers: list[FuncOp], done: set[FuncOp], module: ModuleOp | None) -> None:
    if function in done:
        return
    for op in list(function.body.block.ops):
        if isinstance(op, CallOp):
            callee = resolve_callee(op)
            if callee is function or callee in callers:
                raise UserError(f"@{callee.sym_name.data} calls itself", op.location)
            # Inside of an operator there is its logic only: a kernel does it as a whole or not at all.
            _inline_into(callee, [*callers, function], done, None if _is_private(function) else module)
            if module is None or _is_private(function):
                _inline(op, callee)
                continue
            choice = choose_kernel(callee, [value.type for value in (*op.arguments, *op.res)], module)
            if choice.kernel is None:
                if not _is_looked_for(callee, module):
                    tell_derived(module, callee, choice, op.location)
                _inline(op, callee)
            else:
                Rewriter.replace_op(op, operator_group(callee, op.arguments, choice.kernel, op.location))
    done.add(function)


def _inline(call: CallOp, callee: FuncOp) -> None:
    values: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, call.arguments, strict=True))
    block = call.parent
    assert block is not None
    for op in callee.body.block.ops:
        if isinstance(op, ReturnOp):
            for old, new in zip(call.results, op.arguments, strict=True):
                old.replace_all_uses_with(values.get(new, new))
            break
        copy = op.clone(values)
        copy.location = CallSiteLoc(op.location, call.location)
        block.insert_op_before(copy, call)
    block.erase_op(call)
