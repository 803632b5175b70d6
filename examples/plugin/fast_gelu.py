"""A pass from outside: every exact GELU becomes its approximation by tanh.

The class is a frozen dataclass whose fields are its options; the entry point in pyproject.toml makes it known by name.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.dialects.errors import UserError
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass
from xdsl.universe import Universe


@dataclass(frozen=True)
class FastGeluPass(ModulePass):
    """Sets `approximate` of every `graph.gelu`; with `strict`, a program without one is an error."""

    name = "fast-gelu"
    approximate: str = "tanh"
    strict: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [inner for inner in op.walk() if inner.name == "graph.gelu"]
        if self.strict and not found:
            raise UserError("no 'graph.gelu' to approximate", op.location)
        for gelu in found:
            gelu.properties["approximate"] = StringAttr(self.approximate)


UNIVERSE = Universe(all_passes={"fast-gelu": lambda: FastGeluPass})
