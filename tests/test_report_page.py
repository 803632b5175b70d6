"""The page of `tilewright report` in a browser: it renders, clicks do what they say, nothing is logged or fetched."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from example_programs import FOLDER

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
