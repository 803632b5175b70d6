"""Names of values: what the text calls them, what is kept, and what is printed."""

from __future__ import annotations

import re

_COUNTER = re.compile(r"(?:_[0-9]+)+$")
_NAME = re.compile(r"[A-Za-z_$.-][\w$.-]*", re.ASCII)


def base_name(name: str | None) -> str | None:
    """The part of a name that is kept as a hint: without the counters that made it unique, None if nothing is left.

    Printing appends counters again, so names depend only on bases and order, and a text reads back to the same names.
    xDSL itself drops one counter when a hint is set, which would turn `x_1_1` into `x_1` and then into `x`.

    >>> base_name("conv_1_2")
    'conv'
    """
    if name is None:
        return None
    base = _COUNTER.sub("", name)
    return base if _NAME.fullmatch(base) else None
