"""Hand-written kernels: which of the kernels that a private function names does it on this target, if any.

    tile.kernel @gate_tile(%0: T) -> (%1: T) attributes {tilewright.targets = ["unified"]} {…}
    func.func private @gate(%a: T) -> T attributes {tilewright.kernels = [@gate_tile]} {…}

The function's body is the operator's reference logic on every target. A call of it becomes a `graph.fused` that holds
this logic and names the kernel (`tilewright.kernel`); nothing is fused into it. Where no kernel fits, the call is
inlined and a kernel is derived like any other.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp, YieldOp
from ..dialects.target import TARGET_ATTRIBUTE, target_of
from ..dialects.tile import KernelOp

KERNELS = "tilewright.kernels"
"""Attribute of a private function: the symbols of kernels that do what it says, the one to prefer first."""
TARGETS = "tilewright.targets"
"""Attribute of a kernel: the names of the targets that it is for; without it, any."""
KERNEL = "tilewright.kernel"
"""Attribute of a `graph.fused`: the kernel that does it."""


def kernel_of(fused: FusedOp) -> KernelOp | None:
    """The hand-written kernel of a group; None if it is to be derived. Raises UserError for an unknown name."""
    attr = fused.attributes.get(KERNEL)
    if attr is None:
        return None
    module: Operation = fused
    while (parent := module.parent_op()) is not None:
        module = parent
    assert isinstance(module, ModuleOp)
    return _kernel(attr, module, fused)


def find_kernel(call: CallOp, callee: FuncOp, module: ModuleOp) -> KernelOp | None:
    """The first kernel of an operator that fits the module's target and the call's types; None if none does.

    Raises UserError, at the function, for a list that names no kernel, and for a kernel that takes or gives something
    else than the function.
    """
    listed = callee.attributes.get(KERNELS)
    if listed is None:
        return None
    if not isinstance(listed, ArrayAttr):
        raise UserError(f"{KERNELS} is a list of kernels, as in [@k]; got {listed}", callee.location)
    for attr in cast(ArrayAttr[Attribute], listed):
        kernel = _kernel(attr, module, callee)
        types = callee.function_type
        wanted, found = [*types.inputs, *types.outputs], [arg.type for arg in kernel.body.block.args]
        if [*map(str, wanted)] != [*map(str, found)]:
            name, there = kernel.sym_name.data, ", ".join(map(str, found))
            raise UserError(
                f"kernel @{name} takes and gives {there}; @{callee.sym_name.data} {', '.join(map(str, wanted))}",
                kernel.location,
                [("the operator", callee.location)],
            )
        if _fits_target(kernel, module):
            return kernel
    return None


def fused_call(call: CallOp, callee: FuncOp, kernel: KernelOp) -> FusedOp:
    """A group that holds the logic of the callee, which has no calls itself, and names its kernel."""
    body = Region(Block(arg_types=[value.type for value in call.arguments]))
    fused = FusedOp(list(call.arguments), [result.type for result in call.results], body)
    values: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, body.block.args, strict=True))
    for old, new in zip(callee.body.block.args, body.block.args, strict=True):
        new.name_hint = old.name_hint
    for op in callee.body.block.ops:
        if isinstance(op, ReturnOp):
            body.block.add_op(YieldOp.create(operands=[values.get(value, value) for value in op.arguments]))
            break
        body.block.add_op(op.clone(values))
    fused.attributes[KERNEL] = SymbolRefAttr(kernel.sym_name)
    fused.location = call.location
    return fused


def _kernel(attr: Attribute, module: ModuleOp, named_by: Operation) -> KernelOp:
    if not isinstance(attr, SymbolRefAttr):
        raise UserError(f"expected the name of a kernel, as in @k; got {attr}", named_by.location)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    name = attr.string_value()
    if name not in kernels:
        close = difflib.get_close_matches(name, kernels, n=1)
        hint = f"did you mean '@{close[0]}'?" if close else f"there are {', '.join(f'@{k}' for k in kernels) or 'none'}"
        raise UserError(f"there is no kernel @{name}; {hint}", named_by.location)
    return kernels[name]


def _fits_target(kernel: KernelOp, module: ModuleOp) -> bool:
    attr = kernel.attributes.get(TARGETS)
    if attr is None:
        return True
    names = list(_names(attr, kernel))
    return TARGET_ATTRIBUTE in module.attributes and target_of(module).name in names


def _names(attr: Attribute, kernel: KernelOp) -> Iterator[str]:
    inner = list(cast(ArrayAttr[Attribute], attr)) if isinstance(attr, ArrayAttr) else [attr]
    for one in inner:
        if not isinstance(one, StringAttr):
            raise UserError(f'{TARGETS} is a list of target names, as in ["davinci"]; got {attr}', kernel.location)
        yield one.data
