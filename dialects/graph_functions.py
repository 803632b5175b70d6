"""Functions of a module: the one it stands for, and the one a call names."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, ModuleOp
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Operation

from .errors import UserError
from .names import suggestion

OUTPUTS = "tilewright.outputs"
"""Attribute of a function after `bufferize`: how many of its last arguments are outputs."""

INPUT_NAMES = "tilewright.inputs"
"""Attribute of a function or program: the names that callers know its inputs by."""

OUTPUT_NAMES = "tilewright.results"
"""The same for what it returns."""


def output_arguments(function: FuncOp) -> int:
    """How many of a function's last arguments are outputs; 0 before `bufferize`. Raises UserError for another."""
    attr = function.attributes.get(OUTPUTS)
    if attr is None:
        return 0
    count: int = attr.value.data if isinstance(attr, IntegerAttr) else -1  # pyright: ignore[reportUnknownMemberType]
    arguments = len(function.function_type.inputs)
    if not 0 <= count <= arguments:
        raise UserError(f"{OUTPUTS} of @{function.sym_name.data} is not a number up to {arguments}", function.location)
    return count


def entry_function(module: ModuleOp) -> FuncOp:
    """The function a module stands for: `main`, or the only public one. Raises UserError if there is none."""
    functions = [op for op in module.ops if isinstance(op, FuncOp)]
    public = [f for f in functions if f.sym_visibility is None or f.sym_visibility.data != "private"]
    named = [f for f in public if f.sym_name.data == "main"]
    if len(named or public) != 1:
        names = ", ".join(f"@{f.sym_name.data}" for f in public) or "none"
        raise UserError(f"a program needs one public function or one called @main; public are {names}", module.location)
    found = (named or public)[0]
    if found.is_declaration:
        raise UserError(f"@{found.sym_name.data} has no body: there is nothing to compile", found.location)
    return found


def has_graph_work(module: ModuleOp) -> bool:
    """Whether a function still has something to be lowered from the graph level; kernels may be there all the same."""
    functions = [op for op in module.ops if isinstance(op, FuncOp) and not op.is_declaration]
    ops = [op for function in functions for block in function.body.blocks for op in block.ops]
    stored = ("graph.constant", "graph.weight")
    return any(isinstance(op, CallOp) or (op.name.startswith("graph.") and op.name not in stored) for op in ops)


def resolve_callee(op: CallOp) -> FuncOp:
    """The function a call names, in the enclosing module. Raises UserError if there is none or it has no body."""
    name = op.callee.root_reference.data
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    functions = [f for f in module.ops if isinstance(f, FuncOp)] if module is not None else []
    for candidate in functions:
        if candidate.sym_name.data == name:
            if candidate.is_declaration:
                raise UserError(f"@{name} has no body", op.location, [("declared here", candidate.location)])
            return candidate
    known = suggestion(name, (f.sym_name.data for f in functions))
    raise UserError(f"there is no function @{name}; {known}", op.location)
