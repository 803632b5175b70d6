"""Drawings as SVG: shapes with titles that a browser shows where the pointer rests, put together by the standard
library, so that text is escaped and elements are closed."""

from __future__ import annotations

from colorsys import hls_to_rgb
from typing import Literal, TypeAlias
from xml.etree import ElementTree

Anchor: TypeAlias = Literal["start", "middle", "end"]

FONTS = "Arial, Helvetica, 'DejaVu Sans', 'Liberation Sans', 'Noto Sans', sans-serif"
"""By name: not every program that draws SVG knows what a sans-serif font is."""
FONT = 11
"""Pixels of the letters."""
LETTER = 6.2
"""Pixels that one takes across, on average, in a sans-serif font of that size."""
INK, FAINT, STRONG = "#000", "#8888", "#c00"
"""On filled shapes, which are light on dark pages too; of helping lines; of what counts."""

ElementTree.register_namespace("", "http://www.w3.org/2000/svg")


class Drawing:
    """A canvas of width × height pixels. Text and lines take the colour of what is around them, dark pages included."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self.root = ElementTree.Element(
            "svg",
            {
                "xmlns": "http://www.w3.org/2000/svg", "width": _number(width), "height": _number(height),
                "viewBox": f"0 0 {_number(width)} {_number(height)}",
                "font-family": FONTS, "font-size": str(FONT), "fill": "currentColor", "role": "img",
            },
        )  # fmt: skip
        ElementTree.SubElement(self.root, "title").text = title

    def rect(
        self, x: float, y: float, width: float, height: float, fill: str, title: str = "", stroke: str = ""
    ) -> None:
        """A rectangle; `title` is shown where the pointer rests."""
        shape = {"x": x, "y": y, "width": width, "height": height}
        self._shape("rect", shape, title, fill=fill, **({"stroke": stroke, "stroke-width": "0.5"} if stroke else {}))

    def circle(self, x: float, y: float, radius: float, fill: str, title: str = "") -> None:
        self._shape("circle", {"cx": x, "cy": y, "r": radius}, title, fill=fill)

    def line(
        self, x1: float, y1: float, x2: float, y2: float, colour: str = FAINT, width: float = 1, dashed: bool = False
    ) -> None:
        look = {"stroke": colour, "stroke-width": _number(width)}
        self._shape("line", {"x1": x1, "y1": y1, "x2": x2, "y2": y2}, "", **look, **_dashes(dashed))

    def curve(self, path: str, colour: str = FAINT, width: float = 1, title: str = "") -> None:
        """An SVG path that is not filled."""
        self._shape("path", {}, title, **{"d": path, "fill": "none", "stroke": colour, "stroke-width": _number(width)})

    def text(self, x: float, y: float, text: str, anchor: Anchor = "start", fill: str = "") -> None:
        """One line of text, its base line at y; the pointer looks through it."""
        look = {"x": _number(x), "y": _number(y), "pointer-events": "none"}
        look |= {"text-anchor": anchor} if anchor != "start" else {}
        look |= {"fill": fill} if fill else {}
        ElementTree.SubElement(self.root, "text", look).text = text

    def _shape(self, kind: str, numbers: dict[str, float], title: str, **look: str) -> None:
        made = ElementTree.SubElement(self.root, kind, {key: _number(n) for key, n in numbers.items()} | look)
        if title:
            ElementTree.SubElement(made, "title").text = title

    def __str__(self) -> str:
        return ElementTree.tostring(self.root, encoding="unicode") + "\n"


def stacked(drawings: list[Drawing]) -> Drawing:
    """One drawing of several, one below the other."""
    if len(drawings) == 1:
        return drawings[0]
    whole = Drawing(
        max((one.width for one in drawings), default=1), sum(one.height for one in drawings) or 1,
        "; ".join(one.root[0].text or "" for one in drawings),
    )  # fmt: skip
    top = 0.0
    for one in drawings:
        one.root.set("y", _number(top))
        whole.root.append(one.root)
        top += one.height
    return whole


def colour(hue: int, lightness: float = 0.7) -> str:
    """As six digits: not every program that shows SVG knows `hsl`."""
    return "#" + "".join(f"{round(part * 255):02x}" for part in hls_to_rgb(hue % 360 / 360, lightness, 0.6))


def distinct(number: int) -> int:
    """A hue for each of a list of things, neighbours far apart."""
    return number * 137 % 360


def fitting(text: str, width: float) -> str:
    """As much of a text as fits into so many pixels; a cut one ends in …; empty where hardly a letter does."""
    most = int(width / LETTER)
    return text if len(text) <= most else f"{text[: most - 1]}…" if most > 2 else ""


def _dashes(dashed: bool) -> dict[str, str]:
    return {"stroke-dasharray": "6 4"} if dashed else {}


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
