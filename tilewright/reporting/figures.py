"""Pictures in the page: drawings as they are, timelines to be zoomed into (timeline.js)."""

from __future__ import annotations

from ..pictures.picture import Picture
from .section import Html

HELP = (
    "Ctrl and the wheel, a double click, or the keys + − 0 ← → zoom and move; drag to move; rest on a span to see it."
)
_BUTTONS = (("+", "+", "closer"), ("-", "−", "farther"), ("0", "all", "everything"))


def figure(picture: Picture) -> Html:
    """The drawing; nothing in a terminal."""
    return Html(f'<figure class="{picture.name}">\n{picture.svg()}</figure>')


def timeline_figure(picture: Picture) -> Html:
    """A canvas with the spans beside it."""
    data = picture.json().strip().replace("</", "<\\/")
    buttons = "".join(f'<button value="{value}" title="{title}">{text}</button>' for value, text, title in _BUTTONS)
    return Html(
        f'<figure class="timeline">\n<figcaption>{buttons} {HELP}</figcaption>\n'
        f'<canvas tabindex="0" role="img" aria-label="{picture.title}"></canvas>\n<output></output>\n'
        f'<script type="application/json">{data}</script>\n</figure>'
    )
