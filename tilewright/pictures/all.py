"""All pictures of a program by name."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.ir.diagnostics import did_you_mean

from ..errors import plain_error
from ..profiling import Profile
from ..program import Program
from .dataflow import dataflow
from .memory import memory
from .picture import Picture
from .roofline import roofline
from .tensors import tensors
from .timeline import timeline

PICTURES: dict[str, Callable[[Profile], Picture]] = {
    "timeline": timeline,
    "memory": memory,
    "roofline": roofline,
    "tensors": tensors,
    "dataflow": dataflow,
}
"""Name of a picture → what makes it of a profile."""


def picture(program: Program, name: str) -> Picture:
    """A picture of a program at the hardware level: timeline, memory, roofline, tensors or dataflow.

    Raises SourceError for another name, or a program that is not at the hardware level.
    """
    check_name(name)
    return PICTURES[name](Profile.of(program))


def check_name(name: str) -> None:
    """Raises SourceError for a picture that does not exist."""
    if name not in PICTURES:
        hint = did_you_mean(name, PICTURES) or f"there are {', '.join(PICTURES)}"
        raise plain_error(f"there is no picture '{name}'; {hint}")
