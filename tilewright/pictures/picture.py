"""What a picture is: figures, a drawing of them, and the files both go to."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from tilewright.runtime.report import Json

from ..errors import plain_error
from ..files import write_atomically
from .svg import Drawing

SCALE = 2
"""Pixels of a PNG for each of the drawing's: sharp on dense screens and in print."""


@dataclass(frozen=True)
class Picture:
    """`data` has all figures that the drawing shows, as plain data. Notebooks show the drawing."""

    name: str
    title: str
    data: dict[str, Json] = field(repr=False)
    drawing: Drawing = field(repr=False)

    def json(self) -> str:
        """The figures as text."""
        return json.dumps(self.data) + "\n"

    def svg(self) -> str:
        """One SVG element, complete in itself."""
        return str(self.drawing)

    def png(self) -> bytes:
        """The drawing as pixels, on white. Raises SourceError without the extra `png`, or a font to write with."""
        return _pixels(self.drawing)

    def save(self, path: str | Path) -> None:
        """Writes a file of the kind that its name says: .svg, .png or .json. Raises SourceError for others."""
        write_atomically(Path(path), FORMS[form_of(Path(path))](self))

    def _repr_svg_(self) -> str:
        return self.svg()


FORMS: dict[str, Callable[[Picture], str | bytes]] = {".svg": Picture.svg, ".png": Picture.png, ".json": Picture.json}
"""Suffix of a file → its content."""


def form_of(path: Path) -> str:
    """The suffix of a file for a picture. Raises SourceError for one that is not known."""
    suffix = path.suffix.lower()
    if suffix not in FORMS:
        raise plain_error(f"'{path}' is no file for a picture: its name ends in {', '.join(FORMS)}")
    return suffix


def _pixels(drawing: Drawing) -> bytes:
    try:
        letters = _has_letters()
    except ImportError:
        raise plain_error("PNG needs the extra 'png': pip install 'tilewright[png]'") from None
    if not letters:
        raise plain_error("no font is installed to write PNG with: install one, say DejaVu Sans, or write SVG")
    return _rendered(drawing)


@cache
def _has_letters() -> bool:
    """Whether text becomes visible: the renderer leaves it out, without a word, where it finds no font."""
    blank, written = Drawing(20, 20, ""), Drawing(20, 20, "")
    written.text(2, 14, "Mm")
    return _rendered(blank) != _rendered(written)


def _rendered(drawing: Drawing) -> bytes:
    from resvg_py import svg_to_bytes

    return bytes(svg_to_bytes(svg_string=str(drawing), zoom=SCALE, background="white"))
