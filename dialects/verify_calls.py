"""Whether what is called exists and takes what it is given: launches of kernels, groups by hand, calls of functions.

xDSL checks each operation by itself; these rules are about two, of which either may have been written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp, SymbolRefAttr
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from . import hardware, tile
from .errors import UserError
from .graph_fused import FusedOp
from .names import suggestion
from .operators import KERNEL, is_generic


def check_calls(module: ModuleOp) -> Iterator[UserError]:
    """Each call, launch and group by hand whose callee is missing or has other operands or results.

    1. `tile.launch`: the kernel's inputs, then results of its outputs' types; with `into`, its outputs as operands.
    2. `hardware.launch`: the buffers of a `hardware.kernel`: shape, element type, memory and layout.
    3. `graph.fused` that names a kernel (`tilewright.kernel`): as a launch in value form.
    4. `func.call`: the types of the function. One that is missing is reported by the pass that needs it: a library may
       bring it. One for several types is compared where the instance for the call is made.
    """
    tiles = {op.sym_name.data: op for op in module.ops if isinstance(op, tile.KernelOp)}
    kernels = {op.sym_name.data: op for op in module.ops if isinstance(op, hardware.KernelOp)}
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp) and not is_generic(op)}
    for top in module.ops:
        bodies = [block.ops for region in top.regions for block in region.blocks]
        for op in (inner for ops in bodies for inner in ops):
            match op:
                case tile.LaunchOp():
                    yield from _tile_launch(op, tiles)
                case hardware.LaunchOp():
                    yield from _hardware_launch(op, kernels)
                case FusedOp() if KERNEL in op.attributes:
                    yield from _group(op, op.attributes[KERNEL], tiles)
                case CallOp():
                    yield from _call(op, functions)
                case _:
                    pass


def _tile_launch(op: tile.LaunchOp, kernels: Mapping[str, tile.KernelOp]) -> Iterator[UserError]:
    kernel = kernels.get(op.callee.string_value())
    if kernel is None:
        yield _unknown(op, op.callee, kernels)
        return
    inputs, outputs = [value.type for value in kernel.inputs], [value.type for value in kernel.outputs]
    if op.into is not None:
        yield from _compare(op, kernel, "operand", op.args, [*inputs, *outputs])
    else:
        yield from _compare(op, kernel, "operand", op.args, inputs)
        yield from _compare(op, kernel, "result", op.res, outputs)


def _hardware_launch(op: hardware.LaunchOp, kernels: Mapping[str, hardware.KernelOp]) -> Iterator[UserError]:
    kernel = kernels.get(op.callee.string_value())
    if kernel is None:
        yield _unknown(op, op.callee, kernels)
    else:
        yield from _compare(op, kernel, "operand", op.args, [arg.type for arg in kernel.body.block.args])


def _group(op: FusedOp, name: Attribute, kernels: Mapping[str, tile.KernelOp]) -> Iterator[UserError]:
    if not isinstance(name, SymbolRefAttr):
        yield UserError(f"expected the name of a kernel, as in @k; got {name}", op.location)
    elif name.string_value() not in kernels:
        yield _unknown(op, name, kernels)
    else:
        kernel = kernels[name.string_value()]
        yield from _compare(op, kernel, "operand", op.args, [value.type for value in kernel.inputs])
        yield from _compare(op, kernel, "result", op.res, [value.type for value in kernel.outputs])


def _call(op: CallOp, functions: Mapping[str, FuncOp]) -> Iterator[UserError]:
    name = op.properties.get("callee")
    if not isinstance(name, SymbolRefAttr) or name.nested_references.data:
        yield UserError(f"expected the name of a function, as in callee = @f; got {name or 'nothing'}", op.location)
        return
    function = functions.get(name.string_value())
    if function is None:
        return
    types = function.function_type
    yield from _compare(op, function, "operand", op.arguments, types.inputs.data)
    yield from _compare(op, function, "result", op.res, types.outputs.data)


def _unknown(op: Operation, name: SymbolRefAttr, known: Mapping[str, Operation]) -> UserError:
    return UserError(
        f"there is no kernel @{name.string_value()}; {suggestion(name.string_value(), known)}", op.location
    )


def _compare(
    op: Operation, callee: Operation, what: str, given: Sequence[SSAValue], wanted: Sequence[Attribute]
) -> Iterator[UserError]:
    kind = "function" if isinstance(callee, FuncOp) else "kernel"
    name = f"{kind} @{callee.properties['sym_name'].data}"  # pyright: ignore
    note = ((f"the {kind}", callee.location),)
    if len(given) != len(wanted):
        verb = "takes" if what == "operand" else "gives"
        plural = "" if len(wanted) == 1 else "s"
        yield UserError(f"{name} {verb} {len(wanted)} {what}{plural}, '{op.name}' has {len(given)}", op.location, note)
        return
    for number, (value, type_) in enumerate(zip(given, wanted, strict=True)):
        if value.type != type_:
            yield UserError(
                f"{what} {number} of '{op.name}' is {value.type}, {name} has {type_}{_memories(value.type, type_)}",
                op.location,
                note,
            )


def _memories(have: Attribute, want: Attribute) -> str:
    """What is hard to see in two long types: that they lie in different memories."""
    if isinstance(have, tile.BufferType) and isinstance(want, tile.BufferType) and have.memory != want.memory:
        return f": the one lies in '{have.memory.data}', the other in '{want.memory.data}'"
    return ""
