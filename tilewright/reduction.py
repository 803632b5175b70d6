"""From a graph-level program that fails to a small one that still fails: fewer results, fewer operations, less data.

Four kinds of steps, each tried until none of them helps: keep one result; return an earlier value instead, so that
what follows it goes; make a value an input, so that what leads to it goes; make an extent smaller wherever it stands.
A step is kept if the program that it leads to still fails in the way that is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from tilewright.dialects.errors import UserError
from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_primitives import ConstantOp, WeightOp
from tilewright.dialects.verify import verify_module
from tilewright.ir.diagnostics import SourceError
from tilewright.ir.source import load_module, print_module

Fails = Callable[[ModuleOp], bool]
TRIES = 150
"""Programs that are run at most."""


@dataclass
class Reduction:
    """The smallest program so far. `fails` is asked of `tries` programs at most."""

    module: ModuleOp
    fails: Fails
    tries: int = TRIES

    def run(self) -> ModuleOp:
        """Takes steps until none helps or the tries are spent."""
        again = True
        while again and self.tries > 0:
            helped = [self._steps(step) for step in (_one_result, _earlier_results, _inputs, _extents)]
            again = any(helped)
        return self.module

    def _steps(self, step: Callable[[ModuleOp], Iterator[ModuleOp]]) -> bool:
        """Takes one kind of step as often as it helps."""
        helped, again = False, True
        while again:
            again = False
            for candidate in step(self.module):
                if self.tries <= 0:
                    return helped
                if self._fails(candidate):
                    self.module, helped, again = candidate, True, True
                    break
        return helped

    def _fails(self, candidate: ModuleOp) -> bool:
        self.tries -= 1
        try:
            verify_module(candidate)
            return self.fails(candidate)
        except (SourceError, UserError):
            return False  # no program, or one that fails in another way


def _one_result(module: ModuleOp) -> Iterator[ModuleOp]:
    count = len(_last(entry_function(module)).operands)
    for number in range(count if count > 1 else 0):
        yield _edited(module, lambda function, n=number: _return(function, [_last(function).operands[n]]))


def _earlier_results(module: ModuleOp) -> Iterator[ModuleOp]:
    """The earliest first: what still fails drops the most."""
    ops = _ops(entry_function(module))
    returned = set(_last(entry_function(module)).operands)
    for number, op in enumerate(ops):
        if not isinstance(op, ConstantOp | WeightOp) and not returned <= set(op.results):
            yield _edited(module, lambda function, n=number: _return(function, list(_ops(function)[n].results)))


def _inputs(module: ModuleOp) -> Iterator[ModuleOp]:
    """The latest first: an input in place of the last value but the result drops the most."""
    ops = _ops(entry_function(module))
    for number in reversed(range(len(ops) - 1)):
        if not isinstance(ops[number], ConstantOp):
            yield _edited(module, lambda function, n=number: _make_input(function, _ops(function)[n]))


def _extents(module: ModuleOp) -> Iterator[ModuleOp]:
    """Each extent of the program's tensors becomes 1, a prime, a block, its half, everywhere at once."""
    text = print_module(module)
    shapes = _SHAPE.findall(text)
    for extent in sorted({int(e) for shape in shapes for e in shape.rstrip("x").split("x")}, reverse=True):
        for smaller in (1, 3, 16, extent // 2):
            if smaller < extent:
                for attributes in (False, True):
                    resized = _resized(text, extent, smaller, attributes)
                    if resized != text:
                        try:
                            yield load_module(resized)[0]
                        except (SourceError, UserError):
                            continue  # another extent follows from this one, or an attribute says the old one


_SHAPE = re.compile(r"(?<=tensor<)(?:\d+x)+")
_LIST = re.compile(r"(?<=array<i64: )[-\d, ]+(?=>)")


def _resized(text: str, old: int, new: int, attributes: bool) -> str:
    number = re.compile(rf"(?<!\d){old}(?!\d)")
    text = _SHAPE.sub(lambda found: number.sub(str(new), found.group()), text)
    return _LIST.sub(lambda found: number.sub(str(new), found.group()), text) if attributes else text


# --- edits of the function --------------------------------------------------------------------------------------------


def _edited(module: ModuleOp, edit: Callable[[FuncOp], None]) -> ModuleOp:
    copy = module.clone()
    function = entry_function(copy)
    edit(function)
    _clean(function)
    return copy


def _ops(function: FuncOp) -> list[Operation]:
    """The operations of the body but its end."""
    return list(function.body.block.ops)[:-1]


def _last(function: FuncOp) -> ReturnOp:
    last = function.body.block.last_op
    assert isinstance(last, ReturnOp)
    return last


def _return(function: FuncOp, values: list[SSAValue]) -> None:
    last = _last(function)
    new = ReturnOp(*values)
    new.location = last.location
    last.detach()
    last.erase()
    function.body.block.add_op(new)


def _make_input(function: FuncOp, op: Operation) -> None:
    block = function.body.block
    for result in op.results:
        if result.uses.get_length():
            arg = block.insert_arg(result.type, len(block.args))
            arg.name_hint = result.name_hint
            result.replace_all_uses_with(arg)


def _clean(function: FuncOp) -> None:
    """Without what nothing needs; the type of the function follows."""
    block = function.body.block
    for op in reversed(_ops(function)):
        if not any(result.uses.get_length() for result in op.results):
            op.detach()
            op.erase()
    for arg in list(block.args):
        if not arg.uses.get_length():
            block.erase_arg(arg)
    kinds = [arg.type for arg in block.args], [value.type for value in _last(function).operands]
    function.properties["function_type"] = FunctionType.from_lists(*kinds)
