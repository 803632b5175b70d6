"""What an importer cannot take: one exception for one node, and where its constants could have come from."""

from __future__ import annotations

from collections.abc import Sequence


class Unsupported(Exception):
    """One node cannot be imported.

    `reason` says why, `way_out` what the user can do. `inputs` are graph inputs that would have to be constants for
    the node to be importable.
    """

    def __init__(self, reason: str, way_out: str = "", inputs: Sequence[str] = ()) -> None:
        super().__init__(reason)
        self.reason = reason
        self.way_out = way_out
        self.inputs = tuple(inputs)
