"""What is said of a plan: figures against a count by hand, pictures, the command and the section of the report."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from cli_runner import tilewright
from hypothesis import given, settings
from hypothesis import strategies as st
from test_plan import NARROW, chain, plan
from tilewright.dialects.target import target_of
from tilewright.lowering.plan_interval import Interval
from tilewright.lowering.plan_large import first_fit_peak
from tilewright.lowering.plan_report import MemoryPlan, Placed, plans_of

import tilewright as tw
from tilewright.pictures.memory import map_of

SVG = "{http://www.w3.org/2000/svg}"
EXAMPLE = Path(__file__).parents[1] / "examples/mlp.mlir"

spans = st.builds(
    lambda start, length, size, align: Interval(start, start + length, size, align=align),
    st.integers(0, 12), st.integers(1, 6), st.integers(1, 9), st.sampled_from([1, 1, 4]),
)  # fmt: skip


@given(st.lists(spans, max_size=15))
@settings(deadline=None, max_examples=150)
def test_first_fit_is_what_an_allocator_would_do(given_: list[Interval]) -> None:
    held: list[tuple[Interval, int]] = []
    for one in sorted(given_, key=lambda one: one.start):  # stable: in the order given
        at = 0
        while any(
            one.start < other.end and other.start < one.end and at < there + other.size and there < at + one.size
            for other, there in held
        ):
            at += one.align
        held.append((one, at))
    assert first_fit_peak(given_) == max((at + one.size for one, at in held), default=0)


def test_figures_of_a_small_plan() -> None:
    placed = [("a", 0, 4, 4, 0), ("b", 2, 6, 6, 8), ("c", 4, 8, 4, 0)]
    made = MemoryPlan("", "m", tuple(Placed(n, Interval(s, e, z), at) for n, s, e, z, at in placed))
    assert (made.peak, made.max_live, made.separate, made.first_fit) == (14, 10, 14, 10)
    assert made.fragmentation == pytest.approx(4 / 14)
    assert [one.name for one in made.at_peak()] == ["b", "a"]
    nothing = MemoryPlan("", "m", ())
    assert (nothing.peak, nothing.fragmentation, nothing.first_fit) == (0, 0.0, 0)
    ET.fromstring(map_of([nothing]).svg())


def test_a_picture_has_one_rectangle_for_each_buffer() -> None:
    plans = plans_of(plan(NARROW))
    picture = ET.fromstring(map_of(plans).svg())
    shown = [one for one in picture.iter(f"{SVG}rect") if one.find(f"{SVG}title") is not None]
    assert len(shown) == sum(len(one.placed) for one in plans) > 4
    titles = [one.find(f"{SVG}title").text or "" for one in shown]  # pyright: ignore[reportOptionalMemberAccess]
    assert any("f16: " in title and "bytes 0 to " in title for title in titles)
    # In proportion: a rectangle is as high as its share of the peak.
    first = plans[0].placed[0]
    assert float(shown[0].get("height", 0)) == pytest.approx(260 * first.interval.size / plans[0].peak, abs=0.01)


def test_names_are_escaped() -> None:
    made = MemoryPlan("", "m&m", (Placed('<b> & "c"', Interval(0, 1, 4), 0),))
    assert ET.fromstring(map_of([made]).svg()) is not None and "<b>" not in map_of([made]).svg()


def test_off_chip_inputs_outputs_and_arena_lie_in_regions_of_their_own() -> None:
    module = plan(chain(4))
    (made,) = [one for one in plans_of(module) if one.memory == target_of(module).offchip]
    assert [one.region for one in made.placed] == ["input", "output", "", "", ""]
    ends = [one.offset + one.interval.size for one in made.placed if one.region]
    assert min(one.offset for one in made.placed if not one.region) == max(ends)
    assert made.peak == made.max_live


def test_the_command_sums_up_a_program_and_draws_it(tmp_path: Path) -> None:
    done = tilewright("plan", str(EXAMPLE), "--svg", str(tmp_path / "out.svg"))
    assert done.code == 0, done.err
    assert "fragmentation" in done.out and "largest at the peak" in done.out and "%w1: 128x512xf16" in done.out
    ET.parse(tmp_path / "out.svg")
    for wrong in (["--capacity", "1MiB"], ["-o", str(tmp_path / "x.csv")]):
        refused = tilewright("plan", str(EXAMPLE), *wrong)
        assert refused.code == 2 and "is for CSV" in refused.err
    (tmp_path / "a.csv").write_text("id,lower,upper,size\na,0,4,4\n")
    assert tilewright("plan", str(tmp_path / "a.csv"), "--target", "davinci").code == 2
    drawn = tilewright("plan", str(tmp_path / "a.csv"), "--svg", str(tmp_path / "a.svg"))
    assert drawn.code == 0 and "first fit 4, one each 4" in drawn.err
    assert len(list(ET.parse(tmp_path / "a.svg").iter(f"{SVG}rect"))) == 1


def test_a_program_that_is_planned_already_is_no_input(tmp_path: Path) -> None:
    (tmp_path / "low.mlir").write_text(tw.compile(EXAMPLE).ir())
    done = tilewright("plan", str(tmp_path / "low.mlir"))
    assert done.code == 1 and "error: " in done.err and "plan" in done.err


def test_the_report_has_the_pictures() -> None:
    made = tw.report(tw.compile(EXAMPLE), ["memory"])
    assert "fragmentation" in str(made) and "<svg " in made.html() and "<svg " not in str(made)
    (section,) = made.sections
    figures = section.data
    assert isinstance(figures, list) and {"l1", "ub", "gm"} <= {one["memory"] for one in figures}  # pyright: ignore
