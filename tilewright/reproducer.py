"""Crash reproducers: the program before the pass that failed, and the command that fails again."""

from __future__ import annotations

import shlex
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path

from tilewright.ir.diagnostics import SourceError
from tilewright.ir.source import print_module

from . import __version__
from .cli_options import Session
from .files import write_atomically


def write_reproducer(error: BaseException, session: Session, args: Sequence[str]) -> Path | None:
    """Writes the reproducer of an internal error into the current folder (or the one for temporary files).

    Returns its path, or None if neither can be written: the error itself is worth more than another about its report.
    """
    for folder in (Path(), Path(tempfile.gettempdir())):
        try:
            handle, name = tempfile.mkstemp(prefix="tilewright-crash-", suffix=".mlir", dir=folder)
            path = folder / Path(name).name
            open(handle, "wb").close()
            write_atomically(path, reproducer(path, session, error, args))
        except Exception:  # whatever goes wrong here must not hide the crash
            continue
        return path
    return None


def reproducer(path: Path, session: Session, error: BaseException, args: Sequence[str] = ()) -> str:
    """The text of a reproducer at `path`: the command that failed, the one that fails again, why, and the program."""
    comments = [f"tilewright {__version__} failed" + (" in this command:" if args else "")]
    if args:
        comments.append(f"  {shlex.join(['tilewright', *args])}")
    text = ""
    if session.snapshots:
        text = _module_text(session)
        left = session.left
        again = [*session.command, str(path), "-p", left] if left else ["run", str(path), "--random", "0"]
        comments += ["To see it again:", f"  {shlex.join(['tilewright', *again])}"]
    why = str(error) if isinstance(error, SourceError) else "".join(traceback.format_exception(error))
    comments += ["", *why.splitlines()]
    return "\n".join(f"// {line}".rstrip() for line in comments) + f"\n{text}"


def _module_text(session: Session) -> str:
    try:
        return print_module(session.snapshots[-1].module)
    except Exception as error:
        return f"// the program cannot be printed: {error}\n"
