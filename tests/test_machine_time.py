"""Cycles: by hand for small programs, and the same whether repeating iterations are walked or skipped."""

from __future__ import annotations

from math import prod

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from machine_programs import (
    both,
    fractal,
    lines,
    local,
    loop,
    parsed,
    product,
    program,
    row_pipeline,
    signal,
    view,
    wait,
)
from tilewright.runtime.machine import Machine, analyze
from tilewright.runtime.machine.program import Instruction
from tilewright.runtime.machine.queues import walk
from tilewright.runtime.machine.time import KernelSimulation

import tilewright

# davinci: launch 2000; port 100 bytes a cycle; read latency 1400, write latency 300; vector 256 bytes a cycle.
LAUNCH, READ, WRITE = 2000, 1400, 300
LOAD = STORE = 6  # ⌈512 ÷ 100⌉: one tile of 2 × 64 f32 on the port
EXP = 12 + 2  # start-up, 512 ÷ 256


def test_one_tile() -> None:
    result = analyze(parsed(row_pipeline(tiles=1)))
    assert result.cycles == LAUNCH + LOAD + READ + EXP + STORE + WRITE
    assert result.engine_busy == {"mte2": LOAD, "vector": EXP, "mte3": STORE}


def test_latencies_of_loads_overlap() -> None:
    """The second tile is loaded behind the first, and computed behind it: its load does not wait for the latency."""
    result = analyze(parsed(row_pipeline(tiles=2)))
    assert result.cycles == LAUNCH + LOAD + READ + 2 * EXP + STORE + WRITE


def test_a_slot_is_refilled_when_it_is_free() -> None:
    """With two slots the third load waits for the first tile's exp, and has its latency for itself."""
    result = analyze(parsed(row_pipeline(tiles=3)))
    first = LAUNCH + LOAD + READ + EXP  # slot 0 is free again
    assert result.cycles == first + LOAD + READ + EXP + STORE + WRITE


def test_a_load_and_a_store_share_the_port() -> None:
    """Both are ready at once; mte2 comes first in the target file, so the store begins when the load is through."""
    shape = (16, 64)  # 4096 bytes: 41 cycles on the port
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        local("q", 4096, shape, "f32", "ub"),
        view("s", "x0", shape, "f32", "gm"),
        view("a", "p", shape, "f32", "ub"),
        view("b", "q", shape, "f32", "ub"),
        view("t", "y0", shape, "f32", "gm"),
        'hardware.fill %b {value = 1.0 : f32, engine = "vector"}',
        signal("vector", "mte2"),
        signal("vector", "mte3"),
        wait("vector", "mte2"),
        wait("vector", "mte3"),
        'hardware.dma %b, %t {engine = "mte3"}',
        'hardware.dma %s, %a {engine = "mte2"}',
    )
    result = analyze(parsed(program(body, [(shape, "f32")], [(shape, "f32")])))
    fill = 6 + 16
    load_end = LAUNCH + fill + 41 + READ
    store_end = LAUNCH + fill + 41 + 41 + WRITE
    assert result.cycles == max(load_end, store_end) == load_end
    assert result.engine_busy == {"mte2": 41, "mte3": 41, "vector": fill}


def test_a_move_slower_than_the_port_leaves_the_port_to_others() -> None:
    """fixpipe: 128 bytes a cycle of the wider side, here f32 → f16, while the f16 side is all that crosses the port."""
    result = analyze(parsed(product(32, 32, 32)))
    load = 2 * 21  # 2048 bytes each
    on_chip = 2 * 8  # 2048 ÷ 256 each
    multiply = 2 * 2 * 2  # blocks of 16 × 16 × 16
    store = max(32 * 32 * 4 // 128, 21)
    assert result.cycles == LAUNCH + load + READ + on_chip + multiply + store + WRITE


def test_launches_follow_one_another() -> None:
    text = row_pipeline(tiles=1)
    again = "hardware.launch %x0, %y0 {callee = @k}"
    twice = analyze(parsed(text.replace(again, again + "\n" + again)))
    assert twice.cycles == 2 * analyze(parsed(text)).cycles
    assert [kernel.cycles for kernel in twice.kernels] == [twice.cycles // 2] * 2


def test_the_target_decides() -> None:
    slow = row_pipeline(tiles=1).replace('"davinci"', '"davinci{memory.gm.read_latency=0 memory.gm.core_rate=1}"')
    assert analyze(parsed(slow)).cycles == LAUNCH + 512 + EXP + 512 + WRITE


def both_ways(text: str) -> None:
    machine = Machine(parsed(text))
    target, cases = machine.program.target, machine.cases
    for launch in machine.program.launches:
        walked = KernelSimulation(launch.kernel, target, cases, extrapolate=False).run()
        assert KernelSimulation(launch.kernel, target, cases).run() == walked


@pytest.mark.parametrize("tiles", [1, 2, 3, 4, 7, 100])
def test_repeating_iterations(tiles: int) -> None:
    both_ways(row_pipeline(tiles))
    both_ways(product(32, 32 * tiles, 32, tiles))


@pytest.mark.parametrize(
    "valid",
    [
        "d0 * -2 + 121, 64",  # a ragged last tile
        "d0 * -1 + 40, 64",  # fewer rows at the end, none after that
        "2, 64 - d0 mod 7",  # a period of seven
        "2, d0",  # no two iterations alike
        "2, 64 - d0 floordiv 20",  # three periods one after another
        "d0 - 30, 64",  # nothing at first
    ],
)
def test_iterations_that_differ(valid: str) -> None:
    both_ways(row_pipeline(61, valid=valid, rows=122))


def test_what_repeats_is_skipped() -> None:
    """A million tiles take no longer than a few."""
    result = analyze(parsed(row_pipeline(1_000_000)))
    assert result.kernels[0].instructions == 3_000_000
    assert result.links == {"gm->ub": 512_000_000, "ub->gm": 512_000_000}
    few, more = (analyze(parsed(row_pipeline(tiles))).cycles for tiles in (1000, 1002))
    assert result.cycles == few + (more - few) * 999_000 // 2


def on_chip(first: int, second: int, valid: str = "2, 64", more: str = "") -> str:
    """Two nested loops of exp on one tile: no transfer, no event inside."""
    inside = lines(
        view("a", "p", (2, 64), "f32", "ub", counters=("i", "j"), valid=valid),
        'hardware.vector %a, %a {fn = "exp", engine = "vector"}',
        more,
    )
    body = lines(local("p", 0, (2, 64), "f32", "ub"), loop("i", first, loop("j", second, inside)))
    return program(body, [((2, 64), "f32")], [])


def test_loops_of_one_engine_take_their_sum() -> None:
    """Closed form: launch, and iterations times the cycles of one; ten thousand million iterations are no more work."""
    assert analyze(parsed(on_chip(3, 5))).cycles == LAUNCH + 15 * EXP
    result = analyze(parsed(on_chip(100_000, 100_000)))
    assert result.cycles == LAUNCH + 10**10 * EXP and result.kernels[0].instructions == 10**10
    assert result.engine_busy == {"vector": 10**10 * EXP}


@pytest.mark.parametrize("valid", ["2, 60 - d1 * 5", "d0, 64 - d1 mod 3", "2 - d0 floordiv 4, d1 + 60", "d0 - d1, 64"])
def test_regions_of_a_loop_of_one_engine(valid: str) -> None:
    both_ways(on_chip(7, 11, valid))


@pytest.mark.parametrize("engines", [("vector", "mte1"), ("mte1", "vector")])
def test_loops_of_events_without_transfers(engines: tuple[str, str]) -> None:
    """Two engines that wait for one another, and nothing that goes through the port."""
    text = on_chip(2, 9, "2, 64", lines(both(*engines), both(engines[1], engines[0], 1)))
    both_ways(text)
    result = analyze(parsed(on_chip(3, 5_000_000, "2, 64", lines(both(*engines), both(engines[1], engines[0], 1)))))
    assert result.cycles == LAUNCH + 15_000_000 * EXP


@given(st.integers(1, 300), st.integers(1, 9), st.sampled_from(["f32", "f16"]))
@settings(max_examples=20, deadline=None)
def test_loads_of_one_engine(tiles: int, rows: int, element: str) -> None:
    """Closed form: each load holds the port for its bytes, at 100 a cycle; only the last one's latency is seen."""
    shape, width = (rows, 64), {"f32": 4, "f16": 2}[element]
    body = lines(
        local("p", 0, shape, element, "ub"),
        loop("i", tiles, lines(
            view("s", "x0", shape, element, "gm", offset=f"d0 * {rows * 64 * width}", counters=("i",)),
            view("a", "p", shape, element, "ub"), 'hardware.dma %s, %a {engine = "mte2"}',
        )),
    )  # fmt: skip
    result = analyze(parsed(program(body, [((tiles * rows, 64), element)], [])))
    assert result.cycles == LAUNCH + tiles * -(-rows * 64 * width // 100) + READ


@given(st.integers(1, 300), st.tuples(*[st.integers(1, 60)] * 3))
@settings(max_examples=20, deadline=None)
def test_products_of_one_engine(count: int, sizes: tuple[int, int, int]) -> None:
    """Closed form: one cycle for each block of 16 × 16 × 16, which the edges are padded to."""
    m, k, n = sizes
    body = lines(
        local("l", 0, (m, k), "f16", "l0a", fractal((m, k), "f16")),
        local("r", 0, (k, n), "f16", "l0b", fractal((k, n), "f16")),
        local("c", 0, (m, n), "f32", "l0c", fractal((m, n), "f32")),
        view("a", "l", (m, k), "f16", "l0a", fractal((m, k), "f16")),
        view("b", "r", (k, n), "f16", "l0b", fractal((k, n), "f16")),
        view("d", "c", (m, n), "f32", "l0c", fractal((m, n), "f32")),
        loop("i", count, 'hardware.matmul %a, %b, %d {engine = "matrix", spec = "mk,kn->mn"}'),
    )
    blocks = -(-m // 16) * -(-k // 16) * -(-n // 16)
    assert analyze(parsed(program(body, [], []))).cycles == LAUNCH + count * blocks


def test_a_product_next_to_a_published_model() -> None:
    """ZigZag 3.9 on the same machine: 262,313 cycles (benchmarks/zigzag.py)."""
    text = """func.func @gemm(%x: tensor<1024x1024xf16>, %w: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
      %y = graph.matmul %x, %w
      func.return %y : tensor<1024x1024xf16>
    }"""
    target = "unified{memory.scratchpad.bytes=192KiB memory.gm.core_rate=1024 memory.gm.pool_rate=1024}"
    cycles = tilewright.compile(tilewright.load(text), target).analyze().cycles
    assert 1024**3 // 4096 <= cycles <= 262_313 * 1.05


ENGINES = ("mte2", "vector", "mte3")


@st.composite
def nests(draw: st.DrawFn) -> str:
    """Loops two deep over transfers and vector instructions of random sizes, and events that match."""
    shape = (8, 64)
    outer, inner = draw(st.integers(1, 9)), draw(st.integers(1, 9))
    triangular = draw(st.booleans())

    def instruction(number: int, counters: tuple[str, ...]) -> str:
        engine = draw(st.sampled_from(ENGINES))
        bound = draw(st.sampled_from(["8", "5", "1", *(f"{c} + 1" for c in ("d0", "d1")[: len(counters)]),
                                      *(f"9 - {c} * 2" for c in ("d0", "d1")[: len(counters)])]))  # fmt: skip
        valid = f"{bound}, 64"
        names = [f"{letter}{number}_{len(counters)}" for letter in "gl"]
        views = [
            view(names[0], "x0", shape, "f32", "gm", counters=counters, valid=valid),
            view(names[1], "p", shape, "f32", "ub", counters=counters, valid=valid),
        ]
        word = {
            "mte2": f'hardware.dma %{names[0]}, %{names[1]} {{engine = "mte2"}}',
            "mte3": f'hardware.dma %{names[1]}, %{names[0]} {{engine = "mte3"}}',
            "vector": f'hardware.vector %{names[1]}, %{names[1]} {{fn = "exp", engine = "vector"}}',
        }[engine]
        event = ""
        if draw(st.booleans()):
            other = draw(st.sampled_from([e for e in ENGINES if e != engine]))
            event = both(engine, other)
        return lines(*views, word, event)

    def block(counters: tuple[str, ...], start: int) -> str:
        count = draw(st.integers(1, 3))
        return lines(*(instruction(start + n, counters) for n in range(count)))

    inside = block(("i", "j"), 10)
    bounds = "affine_map<(d0) -> (d0 + 1)>(%i)" if triangular else str(inner)
    nest = f"hardware.for %j = 0 to {bounds} {{\n{inside}\n}}"
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        loop("i", outer, lines(block(("i",), 20), nest, block(("i",), 30) if draw(st.booleans()) else "")),
        block((), 40),
    )
    return program(body, [(shape, "f32")], [])


@given(nests())
@settings(max_examples=60, deadline=None)
def test_random_nests(text: str) -> None:
    both_ways(text)


@given(nests())
@settings(max_examples=40, deadline=None)
def test_the_roofline_is_never_beaten(text: str) -> None:
    """Counted by walking the list: bytes through the port at 100 a cycle, bytes through the vector lanes at 256."""
    machine = Machine(parsed(text))
    (launch,) = machine.program.launches
    counters = [0] * launch.kernel.depth
    port = lanes = 0
    for step in walk(launch.kernel.body, counters):
        if isinstance(step, Instruction):
            nbytes = 4 * prod(high - low for low, high in step.region(counters))
            port, lanes = (port, lanes + nbytes) if step.engine == "vector" else (port + nbytes, lanes)
    result = machine.analyze()
    assert sum(result.links.values()) == port
    assert result.cycles - LAUNCH >= max(port / 100, lanes / 256)


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 40))
@settings(max_examples=30, deadline=None)
def test_random_credits(loads: int, stores: int, tiles: int) -> None:
    """More or fewer credits than slots: other overlaps, other periods."""
    text = row_pipeline(tiles)
    for source, sink, count in (("vector", "mte2", loads), ("mte3", "vector", stores)):
        for event in (signal, wait):
            old = event(source, sink, 0, 2)
            assert text.count(old) == 1
            text = text.replace(old, event(source, sink, 0, count))
    both_ways(text)
