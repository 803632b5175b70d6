"""Pictures: their figures add up to those of the machine, whoever drew them; files are what their names say."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cli_runner import tilewright as cli
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_programs import product, row_pipeline
from test_machine_time import nests, on_chip
from test_profile import TWO
from tilewright.runtime.machine.trace import Span

import tilewright
from tilewright.pictures.all import PICTURES
from tilewright.pictures.layers import crossings, layered
from tilewright.pictures.picture import Picture
from tilewright.pictures.svg import Drawing
from tilewright.pictures.timeline import bars
from tilewright.profiling import Profile

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module", params=[False, True], ids=["fused", "unfused"])
def profile(request: pytest.FixtureRequest) -> Profile:
    return Profile.of(tilewright.compile(TWO, unfused=request.param))


def of_text(text: str) -> Profile:
    return Profile.of(tilewright.compile(tilewright.load(text)))


def figures(profile: Profile, name: str) -> Any:
    return json.loads(PICTURES[name](profile).json())


def test_spans_of_the_timeline_are_the_simulated_cycles(profile: Profile) -> None:
    data = figures(profile, "timeline")
    lanes: Counter[str] = Counter()
    for lane, start, end, step, *_ in data["spans"]:
        if data["steps"][step]["kind"] in ("instruction", "loop", "kernel"):
            lanes[data["lanes"][lane]] += end - start
    busy = {name: cycles for name, cycles in profile.result.engine_busy.items() if cycles}
    assert lanes == {"kernels": profile.result.cycles, **busy}
    moved = sum(span[4] for span in data["spans"])
    assert moved == sum(profile.result.links.values())
    places = {step["place"].split(":")[-2] for step in data["steps"] if step["place"]}
    assert places >= {"3", "4", "5", "6", "7"} and all(step["place"] for step in data["steps"])


@pytest.mark.parametrize("text", [row_pipeline(7), product(32, 640, 32, 20), on_chip(30, 40), None])
def test_bytes_of_all_pictures_are_those_of_the_machine(text: str | None, profile: Profile) -> None:
    found = profile if text is None else of_text(text)
    data = figures(found, "dataflow")
    assert sum(edge["bytes"] for edge in data["edges"]) == found.off_chip
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for edge in data["edges"]:
        start, end = (data["nodes"][edge[key]] for key in ("from", "to"))
        assert (start["kind"] == "kernel") != (end["kind"] == "kernel")
        (written if start["kind"] == "kernel" else read)[(end if start["kind"] == "kernel" else start)["name"]] += edge[
            "bytes"
        ]
    tensors = figures(found, "tensors")["tensors"]
    assert read == {one["name"]: one["read_bytes"] for one in tensors if one["read_bytes"]}
    assert written == {one["name"]: one["write_bytes"] for one in tensors if one["write_bytes"]}
    assert (read.total(), written.total()) == (
        sum(kernel.read_bytes for kernel in found.result.kernels),
        sum(kernel.write_bytes for kernel in found.result.kernels),
    )


def below_the_roof(profile: Profile) -> int:
    data = figures(profile, "roofline")
    for point in data["points"]:
        assert point["rate"] <= point["roof"] * (1 + 1e-9), point
        assert point["rate"] <= data["ceilings"][point["engine"]] * (1 + 1e-9)
        if point["intensity"] is not None:
            assert point["rate"] <= point["intensity"] * data["port_bytes_per_cycle"] * (1 + 1e-9)
    assert sum(point["operations"] for point in data["points"]) == profile.operations
    return len(data["points"])


@given(nests())
@settings(max_examples=25, deadline=None)
def test_no_dot_is_above_the_roof(text: str) -> None:
    below_the_roof(of_text(text))


def test_a_dot_per_kernel_and_engine(profile: Profile) -> None:
    engines = {(k.name, one.engine) for k in profile.kernels for one in k.instructions if one.operations}
    assert below_the_roof(profile) == len(engines) > 1


def test_the_memory_map_is_the_plan(profile: Profile) -> None:
    maps = figures(profile, "memory")["maps"]
    target = profile.program.target
    on_chip_ = {name for name in target.memories if name != target.offchip}
    assert {one["memory"] for one in maps} <= {*on_chip_, target.offchip} and len(maps) > 2
    for one in maps:
        assert one["peak_bytes"] == max(b["offset"] + b["bytes"] for b in one["buffers"])
        for first in one["buffers"]:
            for second in one["buffers"]:
                # An operation may write over an operand that ends with it.
                apart = first["start"] >= second["end"] - 1 or second["start"] >= first["end"] - 1
                above = first["offset"] >= second["offset"] + second["bytes"]
                below = second["offset"] >= first["offset"] + first["bytes"]
                assert first is second or apart or above or below, (first, second)


def test_the_memory_map_of_a_hardware_program_is_in_cycles() -> None:
    """row_pipeline: tiles come in, and go out, two slots each."""
    found = of_text(row_pipeline(6))
    (one,) = figures(found, "memory")["maps"]
    spans = [span for span in found.timeline.spans if span.kind == "instruction"]
    assert {(b["offset"], b["bytes"]) for b in one["buffers"]} == {(0, 1024), (1024, 1024)}
    assert min(b["start"] for b in one["buffers"]) == min(span.start for span in spans)
    assert max(b["end"] for b in one["buffers"]) == found.result.cycles


def test_every_picture_as_every_kind_of_file(profile: Profile, tmp_path: Path) -> None:
    for name, make in PICTURES.items():
        picture = make(profile)
        drawn = ET.fromstring(picture.svg())
        assert drawn.tag == f"{SVG}svg" and len(list(drawn.iter(f"{SVG}title"))) > 2
        for suffix in ("svg", "png", "json"):
            picture.save(tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"{name}.svg").read_text() == picture.svg()
        assert json.loads((tmp_path / f"{name}.json").read_text()) == picture.data
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG\r\n")
    with pytest.raises(tilewright.SourceError, match=r"ends in \.svg, \.png, \.json"):
        tilewright.picture(profile.program, "timeline").save(tmp_path / "t.gif")
    with pytest.raises(tilewright.SourceError, match="did you mean 'timeline'"):
        tilewright.picture(profile.program, "timelin")


def test_letters_are_in_the_pixels() -> None:
    """A renderer that finds no font leaves them out without a word."""
    blank, written = Drawing(200, 20, ""), Drawing(200, 20, "")
    written.text(2, 14, "letters")
    sizes = [len(Picture("p", "P", {}, drawing).png()) for drawing in (blank, written)]
    assert sizes[0] < sizes[1]


def test_names_cannot_break_out_of_a_drawing() -> None:
    drawing = Drawing(10, 10, '<script>"&')
    drawing.rect(0, 0, 1, 1, "#000", "<b>&")
    drawing.text(0, 0, "</svg>")
    found = ET.fromstring(str(drawing))
    assert [one.text for one in found.iter(f"{SVG}title")] == ['<script>"&', "<b>&"]


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 6)), max_size=60), st.integers(1, 10))
def test_bars_cover_their_spans(steps: list[tuple[int, int]], width: int) -> None:
    """Narrow spans are drawn together: nothing is lost, nothing drawn twice, and there are no more than pixels."""
    spans: list[Span] = []
    now = 0
    for gap, length in steps:
        spans.append(Span(0, "a", "instruction", now + gap, now + gap + length, "", {}, {}))
        now += gap + length
    made = list(bars(spans, width))
    assert sum(bar.busy for bar in made) == sum(span.end - span.start for span in spans)
    assert sum(bar.count for bar in made) == len(spans)
    assert all(one.end <= other.start for one, other in pairwise(made))
    assert len(made) <= 2 * now / width + 2


edges = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11)).filter(lambda e: e[0] < e[1]), max_size=30, unique=True
)


@given(edges)
def test_layers(found: list[tuple[int, int]]) -> None:
    layers = layered(12, found)
    depth = {node: number for number, layer in enumerate(layers) for node in layer}
    assert sorted(depth) == list(range(12))
    assert all(depth[start] < depth[end] for start, end in found)


def test_edges_that_need_not_cross_do_not() -> None:
    found = [(0, 5), (1, 4), (2, 3), (5, 6), (4, 7), (3, 8)]
    assert crossings([[0, 1, 2], [3, 4, 5], [6, 7, 8]], found) == 6
    assert crossings(layered(9, found), found) == 0


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.mlir").write_text(row_pipeline(5))
    wanted = [f"--picture={name}={name}.{form}" for name in PICTURES for form in ("svg", "json")]
    assert cli("analyze", "rows.mlir", *wanted[:1], *wanted[3:4]).code == 0
    assert Path("timeline.svg").exists() and json.loads(Path("memory.json").read_text())["maps"]
    for wrong, message in (("timelin=t.svg", "did you mean 'timeline'"), ("timeline=t.gif", "its name ends in"),
                           ("timeline=no/t.svg", "cannot write")):  # fmt: skip
        done = cli("analyze", "rows.mlir", "--picture", wrong)
        assert done.code == 1 and message in done.err and not done.out
    assert cli("analyze", "rows.mlir", "--picture", "timeline").code == 2
