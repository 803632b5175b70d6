"""tilewright's dialects for xDSL's own tools: `xdsl-opt` finds them by the entry point `xdsl.universe`.

Its passes are left out: names such as `canonicalize` are xDSL's there, and a clash is an error for every user of xDSL.
"""

from __future__ import annotations

from functools import partial

from xdsl.universe import Universe

from .registry import DIALECTS, load_dialect

UNIVERSE = Universe(all_dialects={name: partial(load_dialect, name) for name in DIALECTS})
