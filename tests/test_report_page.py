"""The page of `tilewright report` in a browser: it renders, clicks do what they say, nothing is logged or fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_programs import FOLDER
from machine_programs import row_pipeline

import tilewright

playwright_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Headless Chromium: one on the path, else playwright's own; the tests are skipped where there is none."""
    found = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    with playwright_api.sync_playwright() as running:
        if found is None and not Path(running.chromium.executable_path).exists():
            pytest.skip("no Chromium is installed")
        # Chromium has no sandbox for root, as whom containers run.
        flags = ["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []
        started = running.chromium.launch(executable_path=found, args=flags)
        yield started
        started.close()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a program with a long constant."""
    folder = tmp_path_factory.mktemp("report")
    numbers = ", ".join(f"{n}.0" for n in range(128))
    added = f"  %c = graph.constant dense<[{numbers}]> : tensor<128xf16>\n  %z = graph.add %y, %c\n"
    text = (FOLDER / "mlp.mlir").read_text().replace("  func.return %y", f"{added}  func.return %z")
    (folder / "mlp.mlir").write_text(text)
    made = tilewright.report(tilewright.compile(folder / "mlp.mlir", "unified"))
    (folder / "report.html").write_text(made.html())
    return folder / "report.html"


@pytest.fixture
def page(browser: Any, report: Path) -> Iterator[Any]:
    """The report, opened."""
    opened = browser.new_page()
    said: list[str] = []
    opened.on("console", lambda message: said.append(message.text))
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.on(
        "request", lambda request: said.append(request.url) if not request.url.startswith(("file", "data")) else 0
    )
    opened.goto(report.as_uri())
    yield opened
    assert [text for text in said if not text.startswith(("file:", "data:"))] == []
    opened.close()


def test_a_click_marks_one_operation_on_every_level(page: Any) -> None:
    assert page.locator("section").count() >= 5 and page.locator("h1").inner_text() == "mlp.mlir on unified"
    source = page.locator("[data-level=source] .line", has_text="graph.gelu")
    source.click()
    for level, what in (("graph", "erf"), ("tile", "erf"), ("hardware", "erf")):
        hits = page.locator(f"[data-level={level}] .line.hit", has_text=what)
        assert hits.count() >= 1
        assert not page.locator(f"[data-level={level}] .line.hit", has_text='spec = "').count()
        assert hits.first.bounding_box() is not None
    marked = page.locator(".line.hit").count()
    page.locator("[data-level=source] .line", has_text="graph.matmul").first.click()
    assert "hit" not in source.get_attribute("class")
    assert page.locator("[data-level=tile] .line.hit", has_text="tile.contract").count() == 1
    source.click()
    assert page.locator(".line.hit").count() == marked
    source.click()
    assert page.locator(".line.hit").count() == 0


def test_a_click_below_leads_back_to_the_source(page: Any) -> None:
    page.locator("[data-level=hardware] .line", has_text='fn = "erf"').first.click()
    hits = page.locator("[data-level=source] .line.hit")
    assert [text.strip() for text in hits.all_inner_texts()] == ["%h = graph.gelu %s1 : tensor<64x512xf16>"]


def test_long_constants_open(page: Any) -> None:
    long = page.locator("[data-level=source] .long")
    assert "127.0" not in long.inner_text() and "…" in long.inner_text()
    long.click()
    assert "127.0" in long.inner_text() and "…" not in long.inner_text()
    long.click()
    assert "127.0" not in long.inner_text()


def test_unchanged_passes_are_hidden_until_asked_for(page: Any) -> None:
    hidden = page.locator("details.unchanged").first
    assert not hidden.is_visible()
    page.locator("#all-passes").check()
    assert hidden.is_visible()
    page.locator("#all-passes").uncheck()
    assert not hidden.is_visible()
    schedule = page.locator("details", has=page.locator("summary", has_text="schedule"))
    assert not schedule.locator(".added").first.is_visible()
    schedule.locator("summary").click()
    assert schedule.locator(".added").first.is_visible() and "strategy" in schedule.locator(".added").inner_text()


def test_links_lead_to_their_sections(page: Any) -> None:
    for link in page.locator("nav a").all():
        link.click()
        assert page.locator(link.get_attribute("href")).bounding_box()["y"] < page.viewport_size["height"]


def reach(page: Any) -> tuple[float, float]:
    """The cycles that the first timeline shows."""
    page.wait_for_timeout(100)  # a frame
    shown = page.locator("figure.timeline").first
    return float(shown.get_attribute("data-from")), float(shown.get_attribute("data-to"))


def test_a_timeline_zooms_and_says_what_the_pointer_rests_on(page: Any) -> None:
    shown = page.locator("figure.timeline").first
    canvas, said = shown.locator("canvas"), shown.locator("output")
    canvas.scroll_into_view_if_needed()
    start, end = reach(page)
    assert start == 0 and end > 1000
    box = canvas.bounding_box()
    canvas.hover(position={"x": box["width"] / 2, "y": 6 + 10})  # the lane of kernels
    assert "mlp_0" in said.inner_text() and f"{int(end)} cycles from 0" in said.inner_text()
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)  # twice twice as close
    page.keyboard.up("Control")
    near = reach(page)
    assert near[1] - near[0] == pytest.approx(end / 4, rel=0.01) and near[0] > 0
    page.mouse.wheel(0, -100)  # without Ctrl the page scrolls
    assert reach(page) == near
    shown.locator("button", has_text="all").click()
    assert reach(page) == (start, end)
    canvas.focus()
    page.keyboard.press("+")
    assert reach(page)[1] - reach(page)[0] == pytest.approx(end / 2)
    middle = reach(page)
    page.keyboard.press("ArrowRight")
    assert reach(page)[0] > middle[0]
    page.keyboard.press("0")
    canvas.dblclick(position={"x": 200, "y": 20})
    assert reach(page)[1] - reach(page)[0] == pytest.approx(end / 4)
    before = reach(page)
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 400, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.up()
    assert reach(page)[0] > before[0]


def test_instructions_name_their_place_and_counters(page: Any) -> None:
    """Somewhere on the vector engine's lane something of the source runs."""
    shown = page.locator("figure.timeline").first
    canvas, said = shown.locator("canvas"), shown.locator("output")
    canvas.scroll_into_view_if_needed()
    names = page.evaluate("JSON.parse(document.querySelector('figure.timeline script').textContent).lanes")
    width, texts = canvas.bounding_box()["width"], set[str]()
    for x in range(100, int(width) - 10, 25):
        canvas.hover(position={"x": x, "y": 6 + names.index("vector") * 26 + 10})
        texts.add(said.inner_text())
    assert any("vector " in text and "mlp.mlir:" in text and "cycles from" in text for text in texts)


def test_pictures_say_what_they_show(page: Any) -> None:
    for name, what in (
        ("roofline", "operations per byte"),
        ("tensors", "bytes, "),
        ("dataflow", "→"),
        ("memory", "time"),
    ):
        titles = page.locator(f"figure.{name} title").all_text_contents()
        assert any(what in title for title in titles), name
    edges = page.locator("figure.dataflow path").count()
    assert edges >= 5 and page.locator("figure.timeline").count() == 2  # the other one is of the unfused program


def test_tens_of_thousands_of_spans_can_be_zoomed_into(browser: Any, tmp_path: Path) -> None:
    """Each frame draws pixels, not spans."""
    program = tilewright.compile(tilewright.load(row_pipeline(15_000)))
    made = tilewright.report(program, ["profile"])
    (tmp_path / "long.html").write_text(made.html())
    opened = browser.new_page()
    said: list[str] = []
    opened.on("pageerror", lambda error: said.append(str(error)))
    opened.goto((tmp_path / "long.html").as_uri())
    spans = opened.evaluate("JSON.parse(document.querySelector('figure.timeline script').textContent).spans.length")
    assert spans > 40_000
    cycles = reach(opened)[1]
    for _ in range(10):
        opened.locator("figure.timeline button").first.click()
    start, end = reach(opened)
    assert end - start == pytest.approx(cycles / 1024, abs=1)
    canvas = opened.locator("figure.timeline canvas")
    canvas.hover(position={"x": 400, "y": 40})
    assert said == []
    opened.close()
