"""What other installed packages bring along: passes and dialects, found by xDSL's entry point `xdsl.universe`.

A package that defines a pass for its users registers an `xdsl.universe.Universe` in its pyproject.toml,

    [project.entry-points."xdsl.universe"]
    my_package = "my_package.universe:UNIVERSE"

and the pass can be named in every pipeline, of tilewright and of xdsl-opt. xDSL's own passes and dialects come the same
way. Nothing is looked up until a pipeline or a text names something that is not tilewright's.
"""

from __future__ import annotations

from collections.abc import Callable

from xdsl.context import Context
from xdsl.passes import ModulePass
from xdsl.universe import XDSL_UNIVERSE, Universe

from ..dialects.errors import UserError


def universe() -> Universe:
    """Everything that is installed. Raises UserError if a package's entry point cannot be loaded or names clash."""
    try:
        return Universe.get_multiverse()
    except Exception as error:  # whatever the code of another package raises while it is imported
        reason = " ".join(str(error).split()) or type(error).__name__
        raise UserError(f"an installed package's entry point 'xdsl.universe' cannot be loaded: {reason}") from error


def plugin_passes() -> dict[str, Callable[[], type[ModulePass]]]:
    """Pass name → what loads its class, of every package but xDSL itself."""
    return {name: load for name, load in universe().all_passes.items() if name not in XDSL_UNIVERSE.all_passes}


def register_dialects(context: Context) -> None:
    """Makes the dialects of all installed packages known to a context; each is loaded when it is first mentioned."""
    known = {*context.registered_dialect_names}
    for name, load in universe().all_dialects.items():
        if name not in known:
            context.register_dialect(name, load)
