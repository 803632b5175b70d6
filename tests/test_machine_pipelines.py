"""The machine on two hand-written pipelines of every kind of engine: results, traffic, cycles, mutations."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine_pipelines import buffer, changed, davinci, line, program, unified, view, without
from tilewright.dialects.errors import UserError
from tilewright.runtime.machine import MachineError, MachineOptions, analyze, check_order, run

WRITERS = {"unified": unified, "davinci": davinci}
SIZES = [(64, 64, 128), (50, 37, 101), (64, 64, 20), (1, 64, 33)]


def inputs(m: int, n: int, k: int) -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n))]


def fails(text: str, *words: str, data: bool = True, size: tuple[int, int, int] = (64, 64, 128)) -> MachineError:
    """The program is rejected with a message of all these words, at a line of its text."""
    with pytest.raises(MachineError) as caught:
        run(program(text), inputs(*size)) if data else analyze(program(text))
    for word in words:
        assert word in caught.value.message, caught.value.message
    assert "program.mlir" in str(caught.value.location)
    return caught.value


# --- results ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("size", SIZES)
def test_product_of_ragged_tiles(target: str, size: tuple[int, int, int]) -> None:
    a, b = inputs(*size)
    result = run(program(WRITERS[target](*size)), [a, b])
    wanted = np.maximum(a.astype(np.float64) @ b.astype(np.float64), 0)
    assert result.outputs[0].dtype == np.float32
    assert np.max(np.abs(result.outputs[0] - wanted)) <= 1e-5 * np.max(wanted)


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("size", SIZES)
def test_every_interleaving_gives_the_same_bits(target: str, size: tuple[int, int, int]) -> None:
    module, arrays = program(WRITERS[target](*size)), inputs(*size)
    wanted = run(module, arrays).outputs[0]
    orders = [MachineOptions(interleaving=name) for name in ("eager", "late")]
    orders += [MachineOptions(interleaving="random", seed=seed) for seed in range(5)]
    for options in orders:
        assert run(module, arrays, options).outputs[0].tobytes() == wanted.tobytes()


def test_checks_can_be_turned_off() -> None:
    module, arrays = program(davinci()), inputs(64, 64, 128)
    assert np.array_equal(run(module, arrays, MachineOptions(check=False)).outputs[0], run(module, arrays).outputs[0])


# --- traffic and time -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", WRITERS)
@pytest.mark.parametrize("size", SIZES)
def test_analysis_counts_as_execution_does(target: str, size: tuple[int, int, int]) -> None:
    module = program(WRITERS[target](*size))
    ran, analyzed = run(module, inputs(*size)), analyze(module)
    assert analyzed.outputs == []
    assert (ran.links, ran.cycles, ran.engine_busy, ran.kernels, ran.memory) == (
        analyzed.links, analyzed.cycles, analyzed.engine_busy, analyzed.kernels, analyzed.memory,
    )  # fmt: skip


def test_traffic_counts_granules_of_runs() -> None:
    # Rows of a in pieces of 64, 64, 64 and 10 bytes (granule 32: 32). Rows of b are whole, 74 bytes: one run each for
    # 32, 32, 32 and 5 of them, although the tile takes them as columns.
    links = analyze(program(davinci(50, 37, 101))).links
    assert links["gm->l1"] == 50 * (64 + 64 + 64 + 32) + 3 * 32 * 74 + 384
    assert links["ub->gm"] == 50 * 160  # rows of 148 bytes
    assert links["l0c->ub"] == 50 * 37 * 4


def test_cycles_of_a_pipeline() -> None:
    # Loads of 8192 bytes at 256 a cycle and products of 2·4·4 blocks take 32 cycles each; two slots overlap them:
    # 32 + 4·32, then a vector pass of 6 + 64 and a store of 64.
    result = analyze(program(unified()))
    assert result.cycles == 32 + 4 * 32 + 70 + 64
    assert result.engine_busy == {"load": 128, "matrix": 128, "vector": 70, "store": 64}
    assert result.kernels[0].instructions == 4 * 3 + 2


def test_one_slot_serialises() -> None:
    text = unified()
    text = changed(text, "count = 2", "count = 1", "signal", "count")
    text = changed(text, "count = 2", "count = 1", "wait", "count")
    assert analyze(program(text)).cycles == 4 * (32 + 32) + 70 + 64


def test_latency_launch_and_port() -> None:
    # The second slot's loads leave while the first are under way; reads complete 1400 cycles later.
    text = davinci(64, 64, 32)
    result = analyze(program(text))
    load = 2 * 41  # 4096 bytes at 100 a cycle, twice
    tail = 16 + 16 + 32 + 128 + 70 + 164  # moves in, product, fixpipe, vector, store
    assert result.cycles == 2000 + load + 1400 + tail + 300


def test_reads_and_writes_share_the_port() -> None:
    # A store that needs nothing is issued beside the loads: the port serves one after the other.
    text = unified(64, 64, 32)
    row, zero = "[256, 4]", "256xf32"
    spare = [
        f'%z = hardware.buffer {{offset = 65536 : i64, role = "local"}} : {buffer((256,), "f32", "scratchpad", row)}',
        view("zv", "z", zero, "scratchpad", row),
        view("zo", "o", zero, "gm", row),
        'hardware.dma %zv, %zo {engine = "store"}',
    ]
    text = text.replace("    hardware.signal", "\n".join(spare) + "\n    hardware.signal", 1)
    # The two engines arrive together: load (16), store (4), load (16); the matrix engine starts at 36.
    assert analyze(program(text)).cycles == 16 + 4 + 16 + 32 + 70 + 64


# --- order ------------------------------------------------------------------------------------------------------------

UNIFIED_EVENTS = [("matrix", "load"), ("load", "matrix"), ("matrix", "vector"), ("vector", "store")]
DAVINCI_EVENTS = [
    ("mte1", "mte2"), ("matrix", "mte1"), ("mte2", "mte1"), ("mte1", "matrix"), ("matrix", "fixpipe"),
    ("fixpipe", "vector"), ("vector", "mte3"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "source", "sink"),
    [("unified", *pair) for pair in UNIFIED_EVENTS] + [("davinci", *pair) for pair in DAVINCI_EVENTS],
)
def test_every_event_is_needed(target: str, source: str, sink: str) -> None:
    text = WRITERS[target]()
    check_order(program(text))
    ends = f'from = "{source}", to = "{sink}"'
    text = "\n".join(row for row in text.splitlines() if ends not in row)
    error = fails(text, "race", f"'{sink}'")
    assert any("program.mlir" in str(location) for _, location in error.notes)


def test_race_names_both_sides() -> None:
    ends = 'from = "load", to = "matrix"'
    text = "\n".join(row for row in unified().splitlines() if ends not in row)
    error = fails(text, "'hardware.matmul' on engine 'matrix' at k=0", "reads %at", "'hardware.dma' on engine 'load'")
    assert error.location != error.notes[0][1]


def test_too_many_credits_are_a_race() -> None:
    text = changed(unified(), "count = 2", "count = 3", "signal", "count")
    text = changed(text, "count = 2", "count = 3", "wait", "count")
    fails(text, "race", "k=2")


def test_left_over_signals() -> None:
    fails(without(unified(), "hardware.wait", "count = 2"), "2 signals that nothing waited for")


def test_deadlock() -> None:
    text = without(unified(), "hardware.signal", "count = 2")
    text = without(text, "hardware.wait", "count = 2")
    error = fails(text, "deadlock", "'load'", "event 0 from 'matrix' to 'load'")
    assert any("waits for event 0 from 'load' to 'matrix'" in note for note, _ in error.notes)
    with pytest.raises(MachineError, match="deadlock"):
        check_order(program(text))
    with pytest.raises(MachineError, match="deadlock"):
        analyze(program(text))


def test_a_wait_listed_before_its_signal() -> None:
    # The vector engine's part stands first in the text; it is passed over until the matrix engine has signalled.
    text = unified()
    moved = [line(text, "wait", 'to = "vector"'), line(text, "%cv = "), line(text, "hardware.vector")]
    moved.append(line(text, 'from = "vector"', "signal"))
    for row in moved:
        text = text.replace(row + "\n", "", 1)
    text = text.replace("    hardware.signal", "\n".join([*moved, "    hardware.signal"]), 1)
    a, b = inputs(64, 64, 128)
    assert np.array_equal(run(program(text), [a, b]).outputs[0], run(program(unified()), [a, b]).outputs[0])
    assert analyze(program(text)).cycles == analyze(program(unified())).cycles


# --- poison -----------------------------------------------------------------------------------------------------------


def test_poison_beyond_the_valid_rows() -> None:
    text = changed(unified(50, 37, 101), "50, d0 * -32 + 101", "51, d0 * -32 + 101", "%am =")
    text = changed(text, "50, 37", "51, 37", "%cm =")
    fails(text, "reads poison", "[50, 0] of %at", "k=0", size=(50, 37, 101))


def test_stale_data_of_a_refilled_slot_is_poison() -> None:
    text = unified(64, 64, 101)
    for name in ("%am =", "%bm ="):
        text = changed(text, "d0 * -32 + 101", "32", name)
    fails(text, "reads poison", "k=3", size=(64, 64, 101))


def test_an_output_that_is_not_written() -> None:
    text = changed(unified(50, 37, 101), "50, 37", "50, 36", "%og =")
    fails(text, "output 0", "poison at [0, 36]", size=(50, 37, 101))


def test_poison_can_be_ignored() -> None:
    text = changed(unified(50, 37, 101), "50, 37", "50, 36", "%og =")
    result = run(program(text), inputs(50, 37, 101), MachineOptions(check_poison=False))
    assert np.all(result.outputs[0][:, 36] == 0)


# --- places -----------------------------------------------------------------------------------------------------------


def test_outside_of_a_buffer() -> None:
    fails(changed(unified(), "d0 * 64)", "d0 * 64 + 2)", "%ag ="), "touches bytes", "of %a", "k=3")
    fails(changed(unified(), "d0 * 64)", "d0 * 64 - 64)", "%ag ="), "[-64,", "k=0")


def test_buffers_outside_and_misaligned() -> None:
    fails(changed(unified(), "offset = 16384", "offset = 1048576", "%ct ="), "reaches byte", "1048576")
    fails(changed(unified(), "offset = 16384", "offset = 16392", "%ct ="), "not aligned to 32")


@pytest.mark.parametrize(
    ("old", "new", "words", "message"),
    [
        ('"load"', '"store"', ("dma %ag",), "is one of engine 'load'"),
        ('"load"', '"loader"', ("dma %ag",), "no engine 'loader'"),
        ('"load"', '"matrix"', ("dma %ag",), "kind matrix"),
        ("event = 0", "event = 8", ("signal", '"vector", to'), "has 8 between two engines"),
        ('to = "store"', 'to = "mte3"', ("signal", '"vector", to'), "no engine 'mte3'"),
        ("mk,kn->mn", "mk,kn->mm", ("matmul",), "letters"),
    ],
)
def test_what_an_engine_cannot_do(old: str, new: str, words: tuple[str, ...], message: str) -> None:
    text = changed(unified(), old, new, *words)
    with pytest.raises(UserError, match=message):
        analyze(program(text))


def test_operands_in_memories_that_the_engine_does_not_reach() -> None:
    text = davinci()
    fails(changed(text, "%am, %bm", "%bm, %am", "matmul"), "its lhs", "'l0b'", "'l0a'")
    fails(
        changed(text, "hardware.vector %cv, %cv", "hardware.vector %cf, %cv", "hardware.vector"), "'l0c'", "reaches ub"
    )
    fails(changed(text, '"mte1"', '"mte2"', "dma %as"), "is one of engine 'mte1'")


def test_descriptor_dimensions() -> None:
    text = unified()
    tight = text.replace('"unified"', '"unified{max_dma_dims=1}"')
    fails(tight, "needs 2 dimensions", "descriptor")


def test_wrong_inputs() -> None:
    module = program(unified())
    a, b = inputs(64, 64, 128)
    with pytest.raises(UserError, match="takes 2 inputs, got 1"):
        run(module, [a])
    with pytest.raises(UserError, match="has shape"):
        run(module, [b, a])
