"""Where the `tilewright` command starts: Ctrl-C ends it quietly also while the compiler is still being imported."""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The exit code of a command that the user ended: 128 + SIGINT, as shells have it."""


def main() -> None:
    """The `tilewright` command."""
    try:
        from .cli import main as run  # takes most of a second

        run()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
