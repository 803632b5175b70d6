"""`tilewright tune`: ranked schedules, one written in, and sweeps with their points, files and messages."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from cli_runner import tilewright as command
from tilewright.dialects.schedule import Schedule
from tilewright.ir.diagnostics import SourceError

import tilewright
from tilewright import Point, Variation
from tilewright.sweeping import pareto, with_overrides

PRODUCT = """func.func @main(%x: tensor<64x48xf16>, %w: tensor<48x80xf16>) -> tensor<64x80xf16> {
  %p = graph.matmul %x, %w
  func.return %p : tensor<64x80xf16>
}
"""
ROWS = """func.func @main(%x: tensor<?x40xf32, #graph.dims<["rows"]>>) -> tensor<?x40xf32, #graph.dims<["rows"]>> {
  %y = graph.exp %x
  func.return %y
}
"""
SMALL = "unified{memory.scratchpad.bytes=8KiB}"


@pytest.fixture
def product(tmp_path: Path) -> Path:
    path = tmp_path / "product.mlir"
    path.write_text(PRODUCT)
    return path


def test_schedules_are_ranked_and_each_can_be_written_in(product: Path, tmp_path: Path) -> None:
    done = command("tune", product, "--target", SMALL, "--objective", "traffic", "--top", "5", "--json", "-")
    assert done.code == 0, done.err
    rows = json.loads(done.out)["schedules"]
    assert [row["rank"] for row in rows] == [1, 2, 3, 4, 5] and len({row["schedule"] for row in rows}) == 5
    keys = [(row["bytes"], row["cycles"]) for row in rows]
    assert keys == sorted(keys)
    for row in (rows[0], rows[3]):
        out = tmp_path / "applied.mlir"
        done = command(
            "tune", product, "--target", SMALL, "--objective", "traffic", "--apply", str(row["rank"]), "-o", out
        )
        assert done.code == 0, done.err
        analysis = tilewright.compile(out).analyze()
        assert analysis.cycles == row["cycles"]
        assert sum(kernel.read_bytes + kernel.write_bytes for kernel in analysis.kernels) == row["bytes"]


def test_what_is_listed_is_what_is_said(product: Path) -> None:
    few = command("tune", product, "--target", SMALL, "--top", "2").out
    more = command("tune", product, "--target", SMALL, "--top", "4").out
    assert [line.split() for line in more.splitlines()[2:4]] == [line.split() for line in few.splitlines()[2:]]


def test_the_same_from_python() -> None:
    program = tilewright.compile(tilewright.load(PRODUCT), SMALL, to="fuse")
    found = tilewright.candidates(program, top=3)
    chosen = tilewright.compile(tilewright.with_schedules(program, found[2:]))
    assert chosen.analyze().cycles == found[2].cycles
    assert isinstance(found[2].schedule, Schedule)
    with pytest.raises(SourceError, match="there is no kernel 1: the program has 1, counted from 0"):
        tilewright.candidates(program, kernel=1)


def test_a_sweep_has_a_row_for_every_point_and_says_why_one_fails(product: Path, tmp_path: Path) -> None:
    table, figures = tmp_path / "points.csv", tmp_path / "points.json"
    done = command(
        "tune", product, "--target", "unified", "--jobs", "1", "--vary", "memory.scratchpad.bytes=64,8KiB..16KiB",
        "--csv", table, "--json", figures,
    )  # fmt: skip
    assert done.code == 0, done.err
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [row["memory.scratchpad.bytes"] for row in rows] == ["64", "8192", "16384"]
    assert rows[0]["cycles"] == "" and "do not fit" in rows[0]["reason"] and "do not fit" in done.out
    points = json.loads(figures.read_text())["points"]
    for row, point in zip(rows[1:], points[1:], strict=True):
        spec = f"unified{{memory.scratchpad.bytes={row['memory.scratchpad.bytes']}}}"
        assert int(row["cycles"]) == point["cycles"] == tilewright.compile(product, spec).analyze().cycles


@pytest.mark.slow
def test_processes_find_what_one_finds() -> None:
    vary = [Variation.parse("dim.rows=16,32"), Variation.parse("cores=1,2")]
    told: list[tuple[int, int]] = []
    many = tilewright.sweep(ROWS, vary, SMALL, jobs=2, progress=lambda done, total: told.append((done, total)))
    assert many == tilewright.sweep(ROWS, vary, SMALL, jobs=1)
    assert [point.settings[0][1] for point in many] == ["16", "16", "32", "32"]
    assert told[0] == (0, 4) and told[-1] == (4, 4)


def test_left_out_parts_have_rows_of_their_own() -> None:
    text = PRODUCT.replace("func.return %p", "%y = graph.exp %p\n  func.return %y")
    points = tilewright.sweep(text, [], "davinci", without=["fuse", "skew", "canonicalize"], jobs=1)
    assert [point.without for point in points] == ["", "fuse", "skew", "canonicalize"]
    whole, unfused = points[:2]
    assert (whole.kernels, unfused.kernels) == (1, 2)
    assert whole.bytes is not None and unfused.bytes is not None and whole.bytes < unfused.bytes


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--vary", "memory.scratchpat.bytes=1KiB"], "did you mean 'scratchpad'?"),
        (["--vary", "core=1"], "did you mean 'cores'?"),
        (["--vary", "cores"], "is not FIELD=VALUES"),
        (["--vary", "cores=1,,2"], "has an empty value"),
        (["--vary", "cores=1,1..2"], "has 1 twice"),
        (["--vary", "cores=1", "--vary", "cores=2"], "'cores' is varied twice"),
        (["--vary", "cores=4..1"], "does not go from a positive number up"),
        (["--vary", "cores=few..many"], "is not LOW..HIGH"),
        (["--vary", "dim.rows=x"], "the size of 'dim.rows' is a positive integer, got 'x'"),
        (["--vary", "dim.rows=4"], "rows"),
        (["--without", "plan"], "'plan' cannot be left out; what can: canonicalize, fuse, skew"),
        (["--vary", "cores=1", "--apply", "1"], "--apply is for one machine and size"),
        (["--vary", "cores=1", "--plot", "x.gif"], "--plot draws .svg, .png, .pdf"),
        (["--csv", "x.csv"], "--csv is for a sweep"),
        (["-o", "x.mlir"], "--output is for the program that --apply makes"),
        (["--apply", "30", "--top", "2"], "there is no schedule 30 among the best"),
    ],
)
def test_mistakes_are_said_and_nothing_is_written(args: list[str], message: str, product: Path, tmp_path: Path) -> None:
    before = sorted(tmp_path.iterdir())
    done = (
        command("tune", product, "--target", "unified", "--jobs", "1", *args)
        if "--vary" in args
        else command("tune", product, "--target", "unified", *args)
    )
    assert done.code in (1, 2) and message in done.err, done.err
    assert "Traceback" not in done.err and sorted(tmp_path.iterdir()) == before


def test_ranges_double_and_end_where_they_are_told_to() -> None:
    assert Variation.parse("memory.ub.bytes=64KiB..256KiB").values == ("65536", "131072", "262144")
    assert Variation.parse("cores=1,3..10").values == ("1", "3", "6", "10")


def test_overrides_join_those_that_are_there() -> None:
    assert with_overrides("unified", [("cores", "2")]) == "unified{cores=2}"
    assert with_overrides("unified{cores=2}", [("clock_hz", "5")]) == "unified{cores=2 clock_hz=5}"
    assert with_overrides("unified{cores=2}", []) == "unified{cores=2}"


def test_the_front_has_what_nothing_beats() -> None:
    figures = [(10, 5), (8, 9), (12, 4), (12, 6), (8, 12), (None, None)]
    points = [Point((("n", str(n)),), bytes=b, cycles=c) for n, (b, c) in enumerate(figures)]
    assert [(point.bytes, point.cycles) for point in pareto(points)] == [(8, 9), (10, 5), (12, 4)]


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_a_picture_of_the_points(kind: str, product: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"points.{kind}"
    done = command("tune", product, "--target", "unified", "--jobs", "1", "--vary", "cores=1", "--plot", path)
    assert done.code == 0, done.err
    assert path.read_bytes()[:5] in (b"<?xml", b"\x89PNG\r")
