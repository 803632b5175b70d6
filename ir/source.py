"""Files and texts in, modules out; modules in, text out."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..dialects.registry import make_context
from .attributes import AttributeReader
from .builder import Builder
from .diagnostics import Diagnostic, SourceError, did_you_mean
from .parser import garbage_collection_paused, parse_syntax
from .printer import GenericPrinter, UniformPrinter
from .syntax_errors import diagnostic_at

_LOOKS_LIKE_TEXT = re.compile(r'\n|\bfunc\.func\b|\bmodule\s*[{@]|"[\w$.]+"\s*\(|=\s*[a-z]\w*\.\w')

ZIP = b"PK\x03\x04"
LARGEST_FILE = 256 << 20
"""Most bytes of a program's text."""

TEXT_NAME = "<text>"
"""The file name in locations and messages where the text was given directly."""


STDIN = Path("-")
"""The path that stands for the standard input."""


@dataclass(frozen=True)
class SourceMap:
    """Where a module came from.

    `texts` maps file names, as locations have them, to their text. Relative names of files inside the text (weights)
    are relative to `base_dir`.
    """

    file: str
    base_dir: Path
    texts: Mapping[str, str] = field(default_factory=dict[str, str])

    def resolve(self, name: str) -> Path:
        """The path of a file that the text names. Nothing is opened."""
        return self.base_dir / name


def file_name(path: Path) -> str:
    """The name of a file in locations and messages."""
    return "<stdin>" if path == STDIN else str(path)


def load_module(
    source: str | Path,
    dims: Mapping[str, int] | None = None,
    context: Context | None = None,
) -> tuple[ModuleOp, SourceMap]:
    """Reads a module from a file, or from a text if the string looks like one.

    `dims` binds symbolic dimensions to sizes. Raises SourceError for anything wrong with the file, its text or `dims`.
    """
    if isinstance(source, str) and _LOOKS_LIKE_TEXT.search(source):
        text, file, base = source, TEXT_NAME, Path()
    else:
        path = Path(source)
        text, file, base = read_text(path), file_name(path), path.parent
    return parse_module(text, file, dims, context), SourceMap(file, base, {file: text})


def parse_module(
    text: str,
    file: str = TEXT_NAME,
    dims: Mapping[str, int] | None = None,
    context: Context | None = None,
) -> ModuleOp:
    """The module that a text says. It is well-formed, but not verified (see dialects.verify).

    Raises SourceError with every error found (one, if it is an error of syntax).
    """
    for name, size in (dims or {}).items():
        if size < 1:
            raise SourceError([Diagnostic("error", f"dimension '{name}' must be at least 1, got {size}")])
    if "\0" in text:
        raise SourceError([diagnostic_at("a NUL byte: this is not a text", text, file, text.index("\0"), 1)])
    with garbage_collection_paused():
        reader = AttributeReader(context or make_context(), text, file, dims or {})
        module = Builder(reader.context, reader).module(parse_syntax(text, file))
    for name in reader.unused_dims():
        message = f"no symbolic dimension '{name}' in {file}"
        raise SourceError([Diagnostic("error", message, suggestion=did_you_mean(name, reader.dims_seen))])
    return module


def read_text(path: Path) -> str:
    """The text of a file, or of the standard input if the path is `-`.

    Raises SourceError if it cannot be read or is not UTF-8 text.
    """
    if path == STDIN and sys.stdin is None:
        raise SourceError([Diagnostic("error", "the standard input is closed")])
    try:
        # A bound: a device never ends. The standard input stays open: it is not ours.
        with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except IsADirectoryError:
        raise SourceError([Diagnostic("error", f"'{path}' is a directory, not a file")]) from None
    except FileNotFoundError:
        near = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        raise SourceError(
            [Diagnostic("error", f"no file '{path}'", suggestion=did_you_mean(path.name, near))]
        ) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError([Diagnostic("error", f"cannot read '{path}': {reason}")]) from None
    if len(data) > LARGEST_FILE:
        raise SourceError([Diagnostic("error", f"'{path}' is larger than {LARGEST_FILE >> 20} MiB")])
    nul = data.find(b"\0")
    if nul >= 0:
        message = f"a NUL byte at offset {nul}: this is not a text file"
        saved = "a saved program is read by tilewright.load_program" if data.startswith(ZIP) else ""
        raise SourceError([Diagnostic("error", message, str(path), suggestion=saved)])
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        message = f"byte 0x{data[error.start]:02X} is not valid UTF-8: this is not a text file"
        raise SourceError([Diagnostic("error", message, str(path), line, column)]) from None


def print_module(module: ModuleOp, generic: bool = False, locations: bool = False) -> str:
    """The text of a module, ending in a newline: the uniform form, or the generic form of MLIR.

    With `locations`, every operation and block argument is followed by its `loc(…)`.
    """
    stream = StringIO()
    if generic:
        printer = GenericPrinter(stream=stream, print_generic_format=True, print_debuginfo=locations)
        printer.print_op(module)
    else:
        UniformPrinter(stream=stream, print_debuginfo=locations).print_module(module)
    return stream.getvalue() + "\n"
