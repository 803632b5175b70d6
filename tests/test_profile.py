"""Profiles and timelines: they add up, they agree with the simulation, and no time beats the roofline."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from cli_runner import tilewright as cli
from hypothesis import given, settings
from machine_programs import parsed, product, row_pipeline
from test_machine_time import nests, on_chip
from tilewright.dialects.cost import port_rate
from tilewright.dialects.target import target_of
from tilewright.runtime.machine import MachineResult, profile, trace
from xdsl.dialects.builtin import ModuleOp

import tilewright
from tilewright.profile_costs import NOTHING
from tilewright.profiling import Profile

EXAMPLES = Path(__file__).parent.parent / "examples"
TWO = """// Two products and something between them.
func.func @main(%x: tensor<64x96xf16>, %w: tensor<96x80xf16>, %u: tensor<80x48xf16>) -> tensor<64x48xf16> {
  %m = graph.matmul %x, %w
  %a = graph.gelu %m
  %r = graph.reduce_sum %a {axes = array<i64: 1>, keepdims}
  %d = graph.add %a, %r
  %y = graph.matmul %d, %u
  func.return %y : tensor<64x48xf16>
}
"""


def adds_up(module: ModuleOp) -> None:
    target = target_of(module)
    result, kernels = profile(module)
    for kernel, counted in zip(kernels, result.kernels, strict=True):
        assert (kernel.name, kernel.cycles) == (counted.name, counted.cycles)
        busy = {engine.name: engine.busy for engine in kernel.engines if engine.busy}
        assert busy == counted.busy
        for engine in kernel.engines:
            parts = (engine.busy, engine.stalled, engine.queued, engine.idle)
            assert min(parts) >= 0 and sum(parts) == kernel.cycles - kernel.launch_cycles, engine
        assert sum(one.executed for one in kernel.instructions) == counted.instructions
        links: Counter[str] = Counter()
        for one in kernel.instructions:
            assert one.utilization is None or 0 <= one.utilization <= 1 + 1e-9, one
            if one.bytes:
                links[one.what.removeprefix("dma ")] += one.bytes
        assert links == {link: size for link, size in counted.links.items() if size}
    roofline(module, result)
    assert target.launch_cycles * len(kernels) <= result.cycles


def roofline(module: ModuleOp, result: MachineResult) -> None:
    """No kernel is faster than its busiest engine, nor than the port carries its bytes."""
    target = target_of(module)
    for kernel in result.kernels:
        rest = kernel.cycles - target.launch_cycles
        assert rest >= max(kernel.busy.values(), default=0)
        assert rest * port_rate(target) >= kernel.read_bytes + kernel.write_bytes


@given(nests())
@settings(max_examples=40, deadline=None)
def test_random_nests_add_up(text: str) -> None:
    adds_up(parsed(text))


@pytest.mark.parametrize("text", [row_pipeline(1), row_pipeline(500), product(32, 640, 32, 20), on_chip(30, 40)])
def test_programs_add_up(text: str) -> None:
    adds_up(parsed(text))


def test_what_waits_for_what() -> None:
    """The load of the only tile takes as long as it takes: the vector engine stands until it is there."""
    _, (kernel,) = profile(parsed(row_pipeline(1)))
    waits = {(wait.engine, wait.source): wait for wait in kernel.waits}
    load = next(one for one in kernel.instructions if one.what == "dma gm->ub")
    assert waits["vector", "mte2"].cycles == load.cycles + 1400
    assert waits["vector", "mte2"].after is load
    assert waits["vector", "mte2"].before is next(one for one in kernel.instructions if one.engine == "vector")
    assert kernel.bound.startswith("launch")
    _, (long,) = profile(parsed(on_chip(1000, 1000)))
    assert long.bound == "vector 100%" and not long.waits


def check_trace(made: dict[str, Any], module: ModuleOp, walked: bool) -> None:
    result, kernels = profile(module)
    events = made["traceEvents"]
    spans = [event for event in events if event["ph"] == "X"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    busy: Counter[str] = Counter()
    for lane in names:
        ends = 0
        for span in sorted((s for s in spans if s["tid"] == lane), key=lambda s: (s["ts"], s["dur"])):
            # Slices of a lane follow one another, in the whole nanoseconds that a reader rounds or cuts to.
            start, length = int(span["ts"] * 1000), int(span["dur"] * 1000)
            assert (start, length) == (round(span["ts"] * 1000), round(span["dur"] * 1000))
            assert start >= ends, span
            ends = start + length
            if span["cat"] == "instruction":
                busy[names[lane]] += span["args"]["cycles"]
    if walked:
        assert busy == {name: cycles for name, cycles in result.engine_busy.items() if cycles}
    assert sum(s["args"]["cycles"] for s in spans if s["cat"] == "kernel") == result.cycles
    starts, ends_ = ({e["id"]: e for e in events if e["ph"] == letter} for letter in "sf")
    assert starts.keys() == ends_.keys()
    for number, begin in starts.items():
        assert begin["ts"] <= ends_[number]["ts"] + 1e-3
        assert any(s["tid"] == begin["tid"] and s["ts"] <= begin["ts"] <= s["ts"] + s["dur"] for s in spans)
    counters = [e for e in events if e["ph"] == "C"]
    assert all(value >= 0 for e in counters for value in e["args"].values())
    assert {e["name"] for e in counters} > {"off-chip port"} and counters[-1]["args"]
    json.dumps(made)
    assert len(kernels) == sum(s["cat"] == "kernel" for s in spans)


@pytest.mark.parametrize("text", [row_pipeline(5), product(32, 64, 32, 4)])
@pytest.mark.parametrize("spans", [0, 1000])
def test_a_timeline(text: str, spans: int) -> None:
    module = parsed(text)
    made = trace(module, lambda location: "here", spans)
    check_trace(made, module, spans > 0)
    assert any(event.get("args", {}).get("source") == "here" for event in made["traceEvents"])


def test_a_long_program_has_a_short_timeline() -> None:
    module = parsed(row_pipeline(100_000))
    made = trace(module, lambda location: "")
    check_trace(made, module, False)
    assert len(made["traceEvents"]) < 2000
    assert any(event.get("cat") == "repeat" for event in made["traceEvents"])


@pytest.mark.parametrize("unfused", [False, True])
def test_source_operations(unfused: bool) -> None:
    program = tilewright.compile(TWO, unfused=unfused)
    found = Profile.of(program)
    adds_up(program.module)
    kinds = {row.name: row.kind for row in found.sources}
    assert kinds["graph.matmul"] == "tensor" and kinds["graph.gelu"] == "norm/activation"
    assert kinds["graph.add"] == "elementwise" and kinds["graph.reduce_sum"] == "reduction"
    lines = {row.name: row.place.split(":")[1] for row in found.sources if row.name.startswith("graph.")}
    assert lines["graph.gelu"] == "4" and lines["graph.reduce_sum"] == "5"
    whole = sum((row.costs for row in found.sources), NOTHING)
    assert whole.cycles == sum(found.result.engine_busy.values()) == sum(c.cycles for c in found.classes.values())
    assert whole.bytes == found.off_chip == sum(c.bytes for c in found.classes.values())
    # A wait behind an engine's last instruction stands before none.
    waits = [wait for kernel in found.kernels for wait in kernel.waits]
    assert whole.waited == sum(wait.cycles for wait in waits if wait.before is not None)
    kernels = found.kernel_classes.values()
    assert sum(one.cycles for one in kernels) == found.result.cycles
    assert sum(one.kernels for one in kernels) == len(found.kernels)
    assert sum(one.costs.bytes for one in kernels) == found.off_chip
    assert sum(one.costs.waited for one in kernels) == sum(wait.cycles for wait in waits)
    assert {found.kernel_class(kernel) for kernel in found.kernels} >= ({"tensor"} if unfused else {"fused"})


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("two.mlir").write_text(TWO)
    done = cli("analyze", "two.mlir", "--trace", "trace.json", "--json", "profile.json")
    assert done.code == 0, done.err
    figures = json.loads(Path("profile.json").read_text())
    assert f"{figures['cycles']} cycles" in done.out and "graph.gelu" in done.out and " 4:8 " in done.out
    made = json.loads(Path("trace.json").read_text())
    assert any(e.get("args", {}).get("source", "").endswith("two.mlir:4:8") for e in made["traceEvents"])
    ran = cli("run", "two.mlir", "--random", "0", "--trace", "again.json", "--profile")
    assert "off-chip traffic" in ran.out and "class of operation" in ran.out
    assert cli("run", "two.mlir", "--random", "0", "--level", "tile", "--profile").code == 2
    assert ran.code == 0 and json.loads(Path("again.json").read_text()) == made
    assert cli("run", "two.mlir", "--random", "0", "--level", "tile", "--trace", "no.json").code == 2
    assert not Path("no.json").exists()
    assert cli("analyze", "two.mlir", "--trace", "nowhere/t.json").code == 1
    bare = cli("analyze", "two.mlir", "--unfused", "--json", "-")
    assert bare.code == 0 and len(json.loads(bare.out)["kernels"]) > len(figures["kernels"])


def test_a_report_has_a_profile() -> None:
    made = tilewright.report(tilewright.compile(TWO), ("profile",))
    assert "Where the time goes" in str(made) and "graph.gelu" in str(made)
