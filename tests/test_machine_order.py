"""Order: races, events that do not match, and results that do not depend on the interleaving."""

from __future__ import annotations

import numpy as np
import pytest
from machine_programs import lines, local, loop, parsed, product, program, row_pipeline, signal, view, wait
from tilewright.runtime.machine import MachineError, MachineOptions, analyze, check_order, run


def without(text: str, *events: str) -> str:
    for event in events:
        assert event in text
        text = text.replace(event + "\n", "")
    return text


def pair(source: str, sink: str, count: int = 1) -> tuple[str, str]:
    return signal(source, sink, 0, count), wait(source, sink, 0, count)


PIPELINE = row_pipeline(tiles=6)


@pytest.mark.parametrize("text", [PIPELINE, row_pipeline(1), product(32, 64, 32, 4)])
def test_ordered_programs(text: str) -> None:
    check_order(parsed(text))


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (  # read after write
            pair("mte2", "vector"),
            "'hardware.vector' on engine 'vector' at i=0: race: it reads %in in 'ub' while 'hardware.dma' on engine "
            "'mte2' at i=0 writes bytes [0, 512) of it",
        ),
        (
            pair("vector", "mte3"),
            "'hardware.dma' on engine 'mte3' at i=0: race: it reads %out in 'ub' while 'hardware.vector' on engine "
            "'vector' at i=0 writes bytes [1024, 1536) of it",
        ),
        (  # write after read: the slot comes round after two tiles
            (*pair("vector", "mte2"), *pair("vector", "mte2", 2)),
            "'hardware.dma' on engine 'mte2' at i=2: race: it writes %in in 'ub' while 'hardware.vector' on engine "
            "'vector' at i=0 reads bytes [0, 512) of it",
        ),
        (
            (*pair("mte3", "vector"), *pair("mte3", "vector", 2)),
            "'hardware.vector' on engine 'vector' at i=2: race: it writes %out in 'ub' while 'hardware.dma' on engine "
            "'mte3' at i=0 reads bytes [1024, 1536) of it",
        ),
    ],
)  # fmt: skip
def test_a_missing_event_is_a_race(events: tuple[str, ...], message: str) -> None:
    text = without(PIPELINE, *events)
    with pytest.raises(MachineError) as caught:
        check_order(parsed(text))
    error = caught.value
    assert error.message.startswith(message)
    assert error.location != error.notes[0][1]
    with pytest.raises(MachineError, match="race"):
        run(parsed(text), [np.ones((12, 64), np.float32)])


def test_a_credit_too_many_is_a_race() -> None:
    """Three credits for two slots: the load of tile 2 need not wait for tile 0."""
    text = PIPELINE.replace(signal("vector", "mte2", 0, 2), signal("vector", "mte2", 0, 3))
    text = text.replace(wait("vector", "mte2", 0, 2), wait("vector", "mte2", 0, 3))
    with pytest.raises(MachineError, match="at i=2: race: it writes %in"):
        check_order(parsed(text))


def test_write_after_write() -> None:
    body = lines(
        local("p", 0, (1, 16), "f32", "ub"),
        view("s", "x0", (1, 16), "f32", "gm"),
        view("a", "p", (1, 16), "f32", "ub"),
        'hardware.dma %s, %a {engine = "mte2"}',
        'hardware.fill %a {value = 0.0 : f32, engine = "vector"}',
    )
    with pytest.raises(MachineError, match=r"it writes %p in 'ub' while 'hardware\.dma' on engine 'mte2' writes"):
        check_order(parsed(program(body, [((1, 16), "f32")], [])))


@pytest.mark.parametrize("column", [4, 5, 3])
def test_bytes_are_exact(column: int) -> None:
    """The left half of each row and columns from `column` on: their ranges of bytes interleave all the same."""
    shape = (4, 8)
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        view("s", "x0", shape, "f32", "gm", valid="4, 4"),
        view("a", "p", shape, "f32", "ub", valid="4, 4"),
        view("b", "p", shape, "f32", "ub", start=f"0, {column}"),
        'hardware.dma %s, %a {engine = "mte2"}',
        'hardware.fill %b {value = 0.0 : f32, engine = "vector"}',
    )
    module = parsed(program(body, [(shape, "f32")], []))
    if column >= 4:
        check_order(module)
        return
    with pytest.raises(MachineError, match="race"):
        check_order(module)


def test_two_slots_share_no_byte() -> None:
    """Loads into the slot that is not read: ordered by nothing, and rightly so."""
    body = lines(
        local("p", 0, (1, 16), "f32", "ub", slots=2),
        view("s", "x0", (1, 16), "f32", "gm"),
        view("a", "p", (1, 16), "f32", "ub"),
        view("b", "p", (1, 16), "f32", "ub", offset="64"),
        'hardware.dma %s, %a {engine = "mte2"}',
        'hardware.fill %b {value = 0.0 : f32, engine = "vector"}',
    )
    check_order(parsed(program(body, [((1, 16), "f32")], [])))


def test_off_chip_bytes_are_ordered_too() -> None:
    """A kernel that reads back what it wrote off chip."""
    shape = (1, 16)
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        local("q", 64, shape, "f32", "ub"),
        view("s", "x0", shape, "f32", "gm"),
        view("a", "p", shape, "f32", "ub"),
        view("b", "q", shape, "f32", "ub"),
        view("t", "y0", shape, "f32", "gm"),
        'hardware.dma %s, %a {engine = "mte2"}',
        signal("mte2", "mte3"),
        wait("mte2", "mte3"),
        'hardware.dma %a, %t {engine = "mte3"}',
        'hardware.dma %t, %b {engine = "mte2"}',
    )
    text = program(body, [(shape, "f32")], [(shape, "f32")])
    with pytest.raises(MachineError, match=r"it reads %y0 in 'gm' while 'hardware\.dma' on engine 'mte3' writes"):
        check_order(parsed(text))
    ordered = lines(signal("mte3", "mte2"), wait("mte3", "mte2"), "hardware.dma %t, %b")
    check_order(parsed(text.replace("hardware.dma %t, %b", ordered)))


def test_an_argument_given_twice_is_one_buffer() -> None:
    """Input and output of the kernel are the same bytes: tile 1 may be loaded while tile 0 is stored, row by row."""
    text = row_pipeline(tiles=4).replace("hardware.launch %x0, %y0", "hardware.launch %x0, %x0")
    check_order(parsed(text))
    shifted = text.replace(
        "hardware.view %y0, %i {offset = affine_map<(d0) -> (d0 * 512)>",
        "hardware.view %y0, %i {offset = affine_map<(d0) -> ((d0 + 1) mod 4 * 512)>",
    )
    assert shifted != text
    with pytest.raises(MachineError, match=r"at i=1: race: it reads %x0 in 'gm' while .* at i=0 writes"):
        check_order(parsed(shifted))


def test_order_carries_over_third_engines() -> None:
    """mte2 → vector → mte3: what mte3 waits for from the vector engine, the vector engine had waited for."""
    text = PIPELINE.replace('hardware.dma %b, %t {engine = "mte3"}', 'hardware.dma %a, %t {engine = "mte3"}')
    # mte3 now reads what mte2 brought; but nothing keeps the next load from overwriting it
    with pytest.raises(MachineError, match=r"at i=2: race: it writes %in in 'ub' while .* 'mte3' at i=0 reads"):
        check_order(parsed(text))
    few = row_pipeline(tiles=2).replace(
        'hardware.dma %b, %t {engine = "mte3"}', 'hardware.dma %a, %t {engine = "mte3"}'
    )
    check_order(parsed(few))


@pytest.mark.parametrize("check", [check_order, analyze])
def test_surplus_signals(check: object) -> None:
    text = PIPELINE.replace(wait("vector", "mte2", 0, 2), wait("vector", "mte2"))
    with pytest.raises(MachineError) as caught:
        check(parsed(text))  # type: ignore
    assert (
        "event 0 from 'vector' to 'mte2': kernel @k ends with 1 signal that nothing waited for" in caught.value.message
    )


@pytest.mark.parametrize("check", [check_order, analyze])
def test_a_wait_without_a_signal(check: object) -> None:
    text = program(wait("vector", "mte2"), [], [])
    with pytest.raises(MachineError, match=r"deadlock: event 0 from 'vector' to 'mte2' is never signalled$"):
        check(parsed(text))  # type: ignore


@pytest.mark.parametrize("check", [check_order, analyze])
def test_deadlock(check: object) -> None:
    """One credit is missing at the end: the last drain waits for ever."""
    text = PIPELINE.replace(signal("vector", "mte2", 0, 2), signal("vector", "mte2"))
    with pytest.raises(MachineError) as caught:
        check(parsed(text))  # type: ignore
    assert caught.value.message == (
        "'hardware.wait' on engine 'mte2': deadlock: event 0 from 'vector' to 'mte2' is never signalled enough"
    )
    credit, signalled = (note for note in caught.value.notes if note[0].startswith("signalled by 'hardware.signal'"))
    assert len({str(credit[1]), str(signalled[1]), str(caught.value.location)}) == 3


@pytest.mark.parametrize("interleaving", ["program", "eager", "late", "random"])
def test_deadlock_of_two_engines(interleaving: str) -> None:
    body = lines(
        wait("vector", "mte2"), signal("mte2", "vector"), wait("mte2", "vector", 1), signal("vector", "mte2"),
    )  # fmt: skip
    with pytest.raises(MachineError, match="deadlock") as caught:
        run(parsed(program(body, [], [])), [], MachineOptions(False, interleaving=interleaving))  # type: ignore
    assert "'hardware.wait'" in caught.value.message


def test_a_wait_listed_before_its_signal_is_no_deadlock() -> None:
    body = loop("i", 3, lines(wait("vector", "mte2"), signal("vector", "mte2")))
    check_order(parsed(program(body, [], [])))
    assert analyze(parsed(program(body, [], []))).kernels[0].instructions == 0


@pytest.mark.parametrize("text", [PIPELINE, product(32, 64, 32, 4)])
def test_results_do_not_depend_on_the_interleaving(text: str) -> None:
    generator = np.random.default_rng(7)
    shapes = [(12, 64)] if text is PIPELINE else [(32, 64), (64, 32)]
    dtype = np.float32 if text is PIPELINE else np.float16
    inputs = [generator.standard_normal(shape).astype(dtype) for shape in shapes]
    wanted = run(parsed(text), inputs)
    for interleaving, seed in [("eager", 0), ("late", 0), *(("random", seed) for seed in range(5))]:
        found = run(parsed(text), inputs, MachineOptions(interleaving=interleaving, seed=seed))  # type: ignore
        np.testing.assert_array_equal(found.outputs[0], wanted.outputs[0])
        assert (found.links, found.cycles, found.kernels) == (wanted.links, wanted.cycles, wanted.kernels)


def test_a_race_changes_results_under_some_interleaving() -> None:
    """The interleavings do exercise what the order check reports: transfers early overwrite what is not read yet."""
    text = without(PIPELINE, *pair("vector", "mte2"), *pair("vector", "mte2", 2))
    x = np.random.default_rng(1).standard_normal((12, 64)).astype(np.float32)
    unchecked = MachineOptions(check_order=False, check_poison=False, interleaving="eager")
    assert not np.array_equal(run(parsed(text), [x], unchecked).outputs[0], np.exp(x))
