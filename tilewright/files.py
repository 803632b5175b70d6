"""Writing files whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from tilewright.ir.diagnostics import Diagnostic

from .errors import OutputError


def write_atomically(path: Path, content: str | bytes) -> None:
    """Writes a temporary file beside `path` and renames it, so that a reader never sees half of it.

    Devices and pipes are written directly. Raises OutputError if that is not possible.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            path.write_bytes(data)
            return
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(data)
            os.chmod(temporary, _mode(path))
            os.replace(temporary, path.resolve())
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise _unwritable(path, error) from None


def check_writable(path: Path) -> None:
    """Raises OutputError early, before long work, if a file at `path` cannot be made. Nothing is left behind."""
    try:
        if path.is_dir():
            raise IsADirectoryError(None, "it is a directory")
        if path.exists():
            if not os.access(path, os.W_OK):
                raise PermissionError(None, "permission denied")
            return
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.resolve().parent)
        os.close(handle)
        os.unlink(temporary)
    except OSError as error:
        raise _unwritable(path, error) from None


def make_directory(path: Path) -> None:
    """Makes a directory (and those above it) unless it is there. Raises OutputError if that is not possible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError([Diagnostic("error", f"cannot write '{path}': {(error.strerror or str(error)).lower()}")])


def _mode(path: Path) -> int:
    """The mode of the file that is replaced, or what the process gives new files."""
    if path.exists():
        return path.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
