"""Traffic by tensor: bytes read and written off chip, beside the bytes that the tensor has."""

from __future__ import annotations

from ..profiling import Profile
from ..render import bytes_text
from ..tensors import Tensor, Traffic
from .picture import Picture
from .svg import STRONG, Drawing, colour, fitting

WIDTH, LEFT, ROW, TOP, BOTTOM, RIGHT = 560, 170, 18, 30, 24, 190
READ, WRITTEN = colour(210), colour(30)


def tensors(profile: Profile) -> Picture:
    """A bar per tensor that anything moves, the most bytes first: their sum is the off-chip traffic."""
    found = profile.traffic
    return Picture("tensors", "Traffic by tensor", found.json(), _drawing(found, profile.off_chip))


def moved_tensors(found: Traffic) -> list[tuple[Tensor, int, int]]:
    """Tensors with the bytes read and written, the most moved first."""
    rows = [(tensor, *found.of(tensor)) for tensor in found.tensors]
    return sorted((row for row in rows if row[1] + row[2]), key=lambda row: -(row[1] + row[2]))


def _drawing(found: Traffic, total: int) -> Drawing:
    rows = moved_tensors(found)
    title = f"{bytes_text(total)} off chip by tensor; the line is the tensor's own size"
    drawing = Drawing(LEFT + WIDTH + RIGHT, TOP + max(len(rows), 1) * ROW + BOTTOM, title)
    drawing.text(LEFT, 16, title)
    most = max((max(read + written, tensor.size) for tensor, read, written in rows), default=1)
    for number, (tensor, read, written) in enumerate(rows):
        y, scale = TOP + number * ROW, WIDTH / most
        drawing.text(LEFT - 6, y + 13, fitting(f"{tensor.name} ({tensor.role})", LEFT - 10), "end")
        what = f"{tensor.name}: {tensor.size} bytes, {read} read, {written} written"
        if read:
            drawing.rect(LEFT, y + 2, read * scale, ROW - 4, READ, what)
        if written:
            drawing.rect(LEFT + read * scale, y + 2, written * scale, ROW - 4, WRITTEN, what)
        drawing.line(LEFT + tensor.size * scale, y, LEFT + tensor.size * scale, y + ROW, STRONG, 1.5)
        times = f", {(read + written) / tensor.size:.3g}×" if tensor.size else ""
        drawing.text(
            LEFT + max(read + written, tensor.size) * scale + 5, y + 13, f"{bytes_text(read + written)}{times}"
        )
    for number, (name, shade) in enumerate((("read", READ), ("written", WRITTEN))):
        drawing.rect(LEFT + number * 80, TOP + len(rows) * ROW + 8, 10, 10, shade)
        drawing.text(LEFT + number * 80 + 14, TOP + len(rows) * ROW + 17, name)
    return drawing
