"""Runs one command line in this process, as the shell would."""

from __future__ import annotations

import io
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

from tilewright.cli import invoke


@dataclass(frozen=True)
class Done:
    """Exit code and streams of a command."""

    code: int
    out: str
    err: str


def tilewright(*args: str | Path) -> Done:
    """`tilewright ARGS…`"""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = invoke([str(arg) for arg in args])
    return Done(code, out.getvalue(), err.getvalue())
