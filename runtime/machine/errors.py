"""What the machine finds wrong with a program."""

from __future__ import annotations

from ...dialects.errors import UserError


class MachineError(UserError):
    """A program did what no machine may do; the message names instruction, engine, counters and bytes."""
