"""Hand-written kernels: which of the kernels that a private function names does it for these types on this target.

    tile.kernel @gate_tile(%0: T) -> (%1: T) attributes {tilewright.targets = ["unified"]} {…}
    func.func private @gate(%a: T) -> T attributes {tilewright.kernels = [@gate_tile]} {…}

The function's body is the operator's reference logic on every target. A call of it becomes a `graph.fused` that holds
this logic and names the kernel (`tilewright.kernel`); nothing is fused into it. Where no kernel fits, the call is
inlined and a kernel is derived like any other.

A kernel fits if its types can be those of the call (see `instances`: symbolic dimensions, `tilewright.elements`), the
target is one of `tilewright.targets`, and its dimensions lie in `tilewright.shapes`. The first one that fits is taken.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import AffineSetAttr, ArrayAttr, ModuleOp, StringAttr, SymbolRefAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstraintKind, AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from ..dialects.errors import UserError
from ..dialects.graph_fused import FusedOp, YieldOp
from ..dialects.graph_types import symbols_of
from ..dialects.names import suggestion
from ..dialects.operators import CONSTRAINTS, KERNEL, KERNELS, SHAPES, TARGETS, is_generic, types_of
from ..dialects.target import TARGET_ATTRIBUTE, target_of
from ..dialects.tile import KernelOp
from .instances import Binding, free_name, instantiate, unify
from .remarks import Placed, remark


@dataclass(frozen=True)
class Choice:
    """The kernel that fits, if one does, and why those that come before it in the list do not."""

    kernel: KernelOp | None
    rejected: tuple[tuple[KernelOp, str], ...] = ()

    @property
    def reasons(self) -> list[Placed]:
        return [(f"@{kernel.sym_name.data}: {reason}", kernel.location) for kernel, reason in self.rejected]


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


def listed_kernels(operator: FuncOp, module: ModuleOp) -> list[KernelOp]:
    """The kernels that an operator names. Raises UserError, at the operator, for a list that names no kernel."""
    listed = operator.attributes.get(KERNELS)
    if listed is None:
        return []
    if not isinstance(listed, ArrayAttr):
        raise UserError(f"{KERNELS} is a list of kernels, as in [@k]; got {listed}", operator.location)
    return [_kernel(attr, module, operator) for attr in cast(ArrayAttr[Attribute], listed)]


def check_kernels(module: ModuleOp) -> None:
    """Raises UserError for an operator that names a kernel which could never do it, and for constraints of no sense."""
    for operator in [op for op in module.ops if isinstance(op, FuncOp)]:
        for kernel in listed_kernels(operator, module):
            _check_names(kernel)
            list(_targets(kernel))
            _constraints(kernel)
            wanted, found = types_of(operator), types_of(kernel)
            if not is_generic(operator) and isinstance(unify(kernel, wanted), str):
                raise UserError(
                    f"kernel @{kernel.sym_name.data} takes and gives {', '.join(map(str, found))}; "
                    f"@{operator.sym_name.data} {', '.join(map(str, wanted))}",
                    kernel.location,
                    [("the operator", operator.location)],
                )


def _check_names(kernel: KernelOp) -> None:
    """Raises UserError for an attribute that says nothing, but whose name is almost that of a constraint."""
    for name in kernel.attributes:
        meant = difflib.get_close_matches(name, CONSTRAINTS, n=1, cutoff=0.9)
        if meant and name not in CONSTRAINTS:
            raise UserError(
                f"kernel @{kernel.sym_name.data} has '{name}', which says nothing; did you mean '{meant[0]}'?",
                kernel.location,
            )


def choose_kernel(operator: FuncOp, types: Sequence[Attribute], module: ModuleOp) -> Choice:
    """The first kernel of an operator that fits these types (operands, then results) and the module's target.

    A kernel for several types becomes one for these, put beside it. Raises UserError as `check_kernels` does.
    """
    rejected: list[tuple[KernelOp, str]] = []
    for kernel in listed_kernels(operator, module):
        binding = unify(kernel, types)
        reason = binding if isinstance(binding, str) else _unfit(kernel, binding, module)
        if reason is None:
            assert isinstance(binding, Binding)
            return Choice(_instance(kernel, binding, module) if is_generic(kernel) else kernel, tuple(rejected))
        rejected.append((kernel, reason))
    return Choice(None, tuple(rejected))


def tell_derived(module: ModuleOp, operator: FuncOp, choice: Choice, at: Attribute) -> None:
    """Says why none of an operator's kernels is used at a place, where it has any."""
    if choice.rejected:
        message = f"no kernel of @{operator.sym_name.data} fits here: one is derived"
        remark(module, message, at, choice.reasons)


def operator_group(logic: FuncOp, arguments: Sequence[SSAValue], kernel: KernelOp, location: Attribute) -> FusedOp:
    """A group that holds the logic of a function, which has no calls itself, and names its kernel."""
    body = Region(Block(arg_types=[value.type for value in arguments]))
    fused = FusedOp(list(arguments), list(logic.function_type.outputs), body)
    values: dict[SSAValue, SSAValue] = dict(zip(logic.body.block.args, body.block.args, strict=True))
    for old, new in zip(logic.body.block.args, body.block.args, strict=True):
        new.name_hint = old.name_hint
    for op in logic.body.block.ops:
        if isinstance(op, ReturnOp):
            body.block.add_op(YieldOp.create(operands=[values.get(value, value) for value in op.arguments]))
            break
        body.block.add_op(op.clone(values))
    fused.attributes[KERNEL] = SymbolRefAttr(kernel.sym_name)
    fused.location = location  # pyright: ignore[reportAttributeAccessIssue]
    return fused


def erase_unused_kernels(module: ModuleOp) -> None:
    """Takes away the kernels by hand that nothing names."""
    named = {attr.string_value() for op in module.walk() for attr in _symbols(op)}
    for kernel in [op for op in module.ops if isinstance(op, KernelOp)]:
        if kernel.sym_name.data not in named:
            Rewriter.erase_op(kernel)


def _symbols(op: Operation) -> Iterator[SymbolRefAttr]:
    for attr in (op.attributes.get(KERNEL), op.attributes.get(KERNELS), op.properties.get("callee")):
        for one in cast("ArrayAttr[Attribute]", attr) if isinstance(attr, ArrayAttr) else [attr]:
            if isinstance(one, SymbolRefAttr):
                yield one


def _instance(kernel: KernelOp, binding: Binding, module: ModuleOp) -> KernelOp:
    """The kernel for one binding; the same one for the same binding."""
    made = instantiate(kernel, binding, kernel.sym_name.data + binding.suffix())
    assert isinstance(made, KernelOp)
    names = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp | FuncOp)}
    there = names.get(made.sym_name.data)
    if there is not None and there.is_structurally_equivalent(made):
        assert isinstance(there, KernelOp)
        return there
    made.properties["sym_name"] = StringAttr(free_name(made.sym_name.data, names))
    Rewriter.insert_op(made, InsertPoint.after(kernel))
    return made


def _kernel(attr: Attribute, module: ModuleOp, named_by: Operation) -> KernelOp:
    if not isinstance(attr, SymbolRefAttr):
        raise UserError(f"expected the name of a kernel, as in @k; got {attr}", named_by.location)
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, KernelOp)}
    name = attr.string_value()
    if name not in kernels:
        raise UserError(f"there is no kernel @{name}; {suggestion(name, kernels)}", named_by.location)
    return kernels[name]


def _unfit(kernel: KernelOp, binding: Binding, module: ModuleOp) -> str | None:
    """Why a kernel of fitting types is not for this target or these sizes."""
    target = target_of(module).name if TARGET_ATTRIBUTE in module.attributes else None
    if TARGETS in kernel.attributes and target not in (names := list(_targets(kernel))):
        return f"it is for target {', '.join(names) or 'none'}, not {target or 'for a program without one'}"
    names = symbols_of(types_of(kernel))
    sizes = [binding.dims[name] for name in names]
    for kind, expression in _constraints(kernel):
        value = expression.eval([], cast("list[int]", sizes))
        if not {"==": value == 0, ">=": value >= 0, "<=": value <= 0}[kind.value]:
            text = re.sub(r"\bs(\d+)", lambda found: names[int(found[1])], str(expression))
            given = ", ".join(f"{name} = {size}" for name, size in zip(names, sizes, strict=True))
            return f"it needs {text} {kind.value} 0; here {given}"
    return None


def _constraints(kernel: KernelOp) -> list[tuple[AffineConstraintKind, AffineExpr]]:
    """Each expression of `tilewright.shapes`, which compares with 0. Raises UserError for another attribute."""
    attr = kernel.attributes.get(SHAPES)
    if attr is None:
        return []
    count = len(symbols_of(types_of(kernel)))
    if not isinstance(attr, AffineSetAttr) or attr.data.num_dims or attr.data.num_symbols > count:
        example = "affine_set<()[s0] : (s0 mod 16 == 0)>"
        raise UserError(
            f"{SHAPES} is a set over the {count} symbolic dimensions of the kernel, as in {example}; got {attr}",
            kernel.location,
        )
    return [(one.kind, one.lhs - one.rhs) for one in attr.data.constraints]


def _targets(kernel: KernelOp) -> Iterator[str]:
    attr = kernel.attributes.get(TARGETS)
    for one in cast("ArrayAttr[Attribute]", attr) if isinstance(attr, ArrayAttr) else [attr]:
        if isinstance(one, StringAttr):
            yield one.data
        elif attr is not None:
            raise UserError(f'{TARGETS} is a list of target names, as in ["davinci"]; got {attr}', kernel.location)
