"""Whether a module is well-formed: xDSL's verifiers, and the rule that a value is defined before it is used.

xDSL checks each operation, but not that a definition dominates its uses: a use in front of its definition, a value
that leaves its region, or a kernel that refers to something outside pass it, print, and cannot be read again.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.dialects.func import CallOp
from xdsl.ir import Attribute, Block, Operation, OpResult, Region, SSAValue
from xdsl.ir.core import BlockArgument
from xdsl.irdl import IRDLOperation, OptPropertyDef
from xdsl.irdl.dominance import DominanceInfo
from xdsl.traits import IsolatedFromAbove, NoTerminator
from xdsl.utils.exceptions import VerifyException

from .errors import UserError, UserErrors
from .records import check_records
from .verify_calls import check_calls


def verify_module(module: ModuleOp) -> None:
    """Raises UserError, with the location of the operation at fault, unless the module is well-formed.

    Every use is checked first, then every operation, innermost first, then calls and launches against what they call;
    each of the three finds all mistakes of its kind (UserErrors, where there are several). Takes time linear in the
    module (a region with branches: quadratic in its blocks).
    """
    UserErrors.raise_any([*_check_symbols(module), *_check_uses(module, set())])
    UserErrors.raise_any(list(_verify(module)))
    UserErrors.raise_any(list(check_calls(module)))


def _check_symbols(module: ModuleOp) -> Iterator[UserError]:
    """Each name of the module's functions and kernels is given once."""
    seen: dict[str, Operation] = {}
    for op in module.ops:
        name = op.properties.get("sym_name")
        if isinstance(name, StringAttr):
            first = seen.setdefault(name.data, op)
            if first is not op:
                yield UserError(f"'@{name.data}' is defined twice", op.location, [("first here", first.location)])


def _verify(op: Operation) -> Iterator[UserError]:
    """What is wrong inside of an operation, or, where nothing is, with itself.

    What it lacks comes first: verifiers of inner operations look at the properties of those around them.
    """
    missing = _missing_properties(op)
    if missing:
        yield UserError(f"'{op.name}' lacks {', '.join(map(repr, missing))}", op.location)
        return
    sound = True
    for region in op.regions:
        for block in region.blocks:
            for inner in block.ops:
                for error in _verify(inner):
                    sound = False
                    yield error
        first = region.blocks.first
        if first is not None and first is region.blocks.last and first.is_empty and not op.has_trait(NoTerminator):
            sound = False
            yield UserError(f"the body of '{op.name}' is empty and needs a terminator", op.location)
    if not sound:
        return
    try:
        if not isinstance(op, CallOp):  # xDSL knows nothing of functions for several types: `check_calls` does
            op.verify(verify_nested_ops=False)
        check_records(op)
    except UserError as error:
        yield UserError(error.message, error.location or op.location, error.notes)
    except (VerifyException, ValueError) as error:
        what = _essence(error)
        yield UserError(what if what.startswith(f"'{op.name}'") else f"'{op.name}': {what}", op.location)


def _missing_properties(op: Operation) -> list[str]:
    if not isinstance(op, IRDLOperation):
        return []
    definition = op.get_irdl_definition()
    needed = (name for name, kind in definition.properties.items() if not isinstance(kind, OptPropertyDef))
    return [name for name in needed if name not in op.properties]


def _essence(error: Exception) -> str:
    """The message without the dump of the module that xDSL puts around it."""
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    return " ".join(str(cause).split("\n\n")[0].split())


def _check_uses(op: Operation, visible: set[SSAValue]) -> Iterator[UserError]:
    """The regions of `op`; `visible` are the values defined before it and is as it was on return."""
    if not op.regions:
        return
    isolated = op.has_trait(IsolatedFromAbove, value_if_unregistered=False)
    for region in op.regions:
        if region.blocks:
            yield from _check_region(region, set() if isolated else visible)


def _check_region(region: Region, visible: set[SSAValue]) -> Iterator[UserError]:
    blocks = region.blocks
    dominance = DominanceInfo(region) if blocks.first is not blocks.last else None
    for block in blocks:
        added: list[SSAValue] = list(block.args)
        if dominance is not None:
            for other in blocks:
                if other is not block and dominance.strictly_dominates(other, block):
                    added += _defined_in(other)
        visible.update(added)
        for op in block.ops:
            for index, operand in enumerate(op.operands):
                if operand not in visible:
                    yield _error(op, index, operand)
            if op.regions:
                yield from _check_uses(op, visible)
            if op.results:
                visible.update(op.results)
                added += op.results
        visible.difference_update(added)


def _defined_in(block: Block) -> Iterator[SSAValue]:
    yield from block.args
    for op in block.ops:
        yield from op.results


def _error(op: Operation, index: int, operand: SSAValue) -> UserError:
    """Why the operand is not visible: by where it is defined relative to its use."""
    what = f"'{op.name}' uses {_name(operand)} (operand {index})"
    owner = operand.owner
    home = owner if isinstance(owner, Block) else owner.parent
    note: tuple[tuple[str, Attribute | None], ...] = (("it is defined here", _location(operand)),)
    region = home.parent if home is not None else None
    if home is None or region is None or not _same_root(op, home):
        return UserError(f"{what}, which is not part of the module any more", op.location, note)
    crossed = _isolated_between(op, region)
    if crossed is not None:
        message = f"{what}, but '{crossed.name}' sees nothing of its surroundings"
        return UserError(message, op.location, note)
    if _is_inside(op, region):
        return UserError(f"{what} before its definition", op.location, note)
    return UserError(f"{what} outside of the region that defines it", op.location, note)


def _ancestors(op: Operation) -> Iterator[Operation]:
    current: Operation | None = op
    while current is not None:
        yield current
        current = current.parent_op()


def _is_inside(op: Operation, region: Region) -> bool:
    return any(ancestor.parent_region() is region for ancestor in _ancestors(op))


def _isolated_between(op: Operation, region: Region) -> Operation | None:
    """The isolated ancestor of `op` that separates it from an enclosing region."""
    if not _is_inside(op, region):
        return None
    for ancestor in _ancestors(op):
        if ancestor.parent_region() is region:
            if ancestor is not op and ancestor.has_trait(IsolatedFromAbove, value_if_unregistered=False):
                return ancestor
            return None
        if ancestor is not op and ancestor.has_trait(IsolatedFromAbove, value_if_unregistered=False):
            return ancestor
    return None


def _same_root(op: Operation, block: Block) -> bool:
    parent = block.parent_op()
    return parent is not None and op.get_toplevel_object() is parent.get_toplevel_object()


def _name(value: SSAValue) -> str:
    return f"%{value.name_hint}" if value.name_hint else "a value"


def _location(value: SSAValue) -> Attribute | None:
    if isinstance(value, OpResult):
        return value.op.location
    return value.location if isinstance(value, BlockArgument) else None
