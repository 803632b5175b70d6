"""Which dialects exist, loaded when a text first mentions them."""

from __future__ import annotations

from functools import partial
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.ir import Dialect

DIALECTS: dict[str, str] = {"graph": "Graph", "tile": "Tile", "hardware": "Hardware"}
"""Dialect name (and module of this package) → name of its Dialect object."""


def load_dialect(name: str) -> Dialect:
    """One of `DIALECTS`, imported."""
    dialect = getattr(import_module(f".{name}", __package__), DIALECTS[name])
    assert isinstance(dialect, Dialect)
    return dialect


def make_context(allow_unregistered: bool = False) -> Context:
    """A context of builtin, func and tilewright's dialects.

    With `allow_unregistered`, operations and attributes of other dialects are accepted as opaque.
    """
    context = Context(allow_unregistered=allow_unregistered)
    context.load_dialect(Builtin)
    context.load_dialect(Func)
    for name in DIALECTS:
        context.register_dialect(name, partial(load_dialect, name))
    return context


def operation_names(context: Context) -> list[str]:
    """The names of tilewright's operations and of those loaded so far, for suggestions."""
    for name in DIALECTS:
        context.get_optional_dialect(name)
    return [op.name for op in context.loaded_ops]
