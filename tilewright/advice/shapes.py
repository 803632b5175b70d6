"""Dimensions without a size: nothing that has them can be tiled or given a place."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from tilewright.dialects.graph_functions import entry_function
from tilewright.dialects.graph_types import shape_of

from ..module import Module
from ..profiling import place
from .base import Advice

NAMED = 4
"""Tensors that are named at most."""


def dynamic_shapes(module: Module) -> list[Advice]:
    """One entry for each dimension of a program that has no size, that which most tensors have first."""
    function = entry_function(module.op)
    block = function.body.block
    values: list[SSAValue] = [*block.args, *(result for op in block.ops for result in op.results)]
    having: dict[str, list[SSAValue]] = {}
    for value in values:
        for name in dict.fromkeys(d for d in shape_of(value.type) if isinstance(d, str)):
            having.setdefault(name, []).append(value)
    return [_advice(name, found, len(values)) for name, found in sorted(having.items(), key=lambda item: -len(item[1]))]


def _advice(name: str, found: list[SSAValue], count: int) -> Advice:
    named = [f"%{value.name_hint}" for value in found if value.name_hint]
    more = f" and {len(found) - NAMED} more" if len(found) > NAMED else ""
    first = next((value.owner for value in found if isinstance(value.owner, Operation)), None)
    return Advice(
        "dynamic shapes",
        f"dimension '{name}' has no size: {len(found)} of {count} tensors have it ({', '.join(named[:NAMED])}{more}), "
        "and no buffer of them can be planned",
        f"fix it: --dim {name}=512, or dims={{'{name}': 512}}; a program may be compiled for several sizes",
        0,
        place(first.location) if first is not None else "",
    )
