"""The `bufferize` pass: tile values become buffers, loops carry nothing, functions are given their outputs."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ..dialects import tile
from ..dialects.target import target_of
from ..dialects.tile_types import BufferType
from .bufferize_func import bufferize_function, copy_results, is_program
from .bufferize_kernel import KernelBufferizer


@dataclass(frozen=True)
class BufferizePass(ModulePass):
    """Requires placed kernels in value form; ensures buffer form.

    1. A loop's initial value, carried argument, yielded value and result are one buffer.
    2. An elementwise result takes the buffer of an operand of its type that dies there. (Where its elements are
       narrower it gets a `tile.alloc` of its own, which `plan` may put on the operand's bytes.)
    3. Where old and new are both alive there are two buffers, and a copy for a carried value.
    4. `tile.insert` disappears: what made the part writes into a `tile.slice` of the whole.
    5. `slots = N` on a load or move is on its `tile.alloc`, if that is in a loop.
    6. `tile.empty {valid}` → `tile.alloc`, and a `tile.slice` of all of it that states `valid`.
    7. `func.func @main(%x) -> T` → `func.func @main(%x, %o)` with `tilewright.outputs`; intermediates are
       `tile.alloc`s off chip; a constant or weight is read through a `tile.alias` to a buffer.
       A result that is an argument, a constant, or returned before is copied by a kernel of its own.

    What is valid in a buffer: in a slice, what `tile.slice` states; else what the `tile.load`, `tile.fill` or
    `tile.iota` that last wrote it states, or what another op derives from its inputs; before any, all of it.
    """

    name = "bufferize"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = target_of(op)
        functions = [f for f in op.ops if isinstance(f, FuncOp) and not f.is_declaration and is_program(f)]
        for function in functions:
            copy_results(function, target)
        for kernel in [k for k in op.ops if isinstance(k, tile.KernelOp)]:
            if any(not isinstance(arg.type, BufferType) for arg in kernel.body.block.args):
                made = KernelBufferizer(kernel, target).run()
                Rewriter.replace_op(kernel, made)
        for function in functions:
            bufferize_function(function, target)
