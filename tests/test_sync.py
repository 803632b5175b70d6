"""The sync pass: every conflict is ordered, and no event can be left out (semantics 5.3)."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from machine_programs import lines, local, loop, parsed, program, view
from sync_programs import Case, event_keys, kernels, without_event
from tilewright.dialects import hardware
from tilewright.dialects.errors import UserError
from tilewright.ir.source import print_module
from tilewright.lowering import sync_clip
from tilewright.lowering.sync import SyncPass
from tilewright.runtime.machine import MachineError, check_order
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

FAST = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))


def sync(module: ModuleOp) -> ModuleOp:
    SyncPass().apply(Context(), module)
    module.verify()
    return module


def events(module: ModuleOp) -> list[str]:
    """Signals and waits in text order: `+2 mte2 vector 0` is two signals of event 0 from mte2 to vector."""
    found: list[str] = []
    for op in module.walk():
        if isinstance(op, hardware.EventOp):
            sign = "+" if isinstance(op, hardware.SignalOp) else "-"
            found.append(f"{sign}{op.times} {op.from_engine.data} {op.to_engine.data} {op.event.value.data}")
    return found


def pipeline(slots: int = 2, tiles: int = 6, target: str = "davinci", first: str = "", last: str = "") -> str:
    """Tiles of 2 × 64 f32: loaded, changed and stored by three engines, in `slots` slots."""
    tile, whole = (2, 64), (2 * tiles, 64)
    offset = f"(d0 mod {slots}) * 512" if slots > 1 else "0"
    row = "#tile.layout<[2, 256], [64, 4]>"
    body = lines(
        first,
        view("a", "x0", tile, "f32", "gm", row, "d0 * 512", ("i",)),
        view("b", "in", tile, "f32", "ub", None, offset, ("i",)),
        'hardware.dma %a, %b {engine = "mte2", fresh}',
        view("c", "out", tile, "f32", "ub", None, offset, ("i",)),
        'hardware.vector %b, %c {engine = "vector", fn = "exp", fresh}',
        view("d", "y0", tile, "f32", "gm", row, "d0 * 512", ("i",)),
        'hardware.dma %c, %d {engine = "mte3"}',
        last,
    )
    return program(
        lines(
            local("in", 0, tile, "f32", "ub", slots=slots),
            local("out", 4096, tile, "f32", "ub", slots=slots),
            loop("i", tiles, body),
        ),
        [(whole, "f32")],
        [(whole, "f32")],
        target,
    )


@given(case=kernels())
@FAST
def test_random_kernels_are_ordered_by_events_that_are_all_needed(case: Case) -> None:
    module = sync(case.module.clone())
    check_order(module)
    for key in event_keys(module):
        with pytest.raises(MachineError, match="race"):
            check_order(without_event(module, key))


@given(case=kernels())
@FAST
def test_long_loops_that_walk_are_cut_without_missing_a_conflict(case: Case) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sync_clip, "BUDGET", 30)
        check_order(sync(case.module.clone()))


@given(case=kernels())
@FAST
def test_few_events_still_order_everything_or_are_refused(case: Case) -> None:
    module = case.module.clone()
    module.attributes["tilewright.target"] = type(module.attributes["tilewright.target"])("davinci{event_slots=1}")
    try:
        sync(module)
    except UserError as error:
        assert "needs more than the 1 events" in error.message
    else:
        check_order(module)


@given(case=kernels())
@FAST
def test_a_second_run_changes_nothing(case: Case) -> None:
    module = sync(case.module.clone())
    text = str(module)
    assert str(sync(module)) == text


def test_two_slots_let_the_load_run_two_tiles_ahead() -> None:
    assert events(sync(parsed(pipeline()))) == [
        "+2 vector mte2 0",
        "+2 mte3 vector 0",
        "-1 vector mte2 0",
        "+1 mte2 vector 0",
        "-1 mte2 vector 0",
        "-1 mte3 vector 0",
        "+1 vector mte3 0",
        "+1 vector mte2 0",
        "-1 vector mte3 0",
        "+1 mte3 vector 0",
        "-2 vector mte2 0",
        "-2 mte3 vector 0",
    ]


def test_one_slot_gives_one_credit() -> None:
    found = events(sync(parsed(pipeline(slots=1))))
    assert {"+1 vector mte2 0", "+1 mte3 vector 0"} <= set(found)
    assert not any(event[1] == "2" for event in found)


def test_as_many_slots_as_tiles_need_no_way_back() -> None:
    found = events(sync(parsed(pipeline(slots=6))))
    assert found == ["+1 mte2 vector 0", "-1 mte2 vector 0", "+1 vector mte3 0", "-1 vector mte3 0"]


def test_events_lie_where_the_instructions_they_order_do() -> None:
    module = sync(parsed(pipeline()))
    for op in module.walk():
        if isinstance(op, hardware.EventOp):
            assert "unknown" not in str(op.location)


def test_a_text_goes_on_to_the_same_text() -> None:
    once = print_module(sync(parsed(pipeline())))
    assert print_module(sync(parsed(once))) == once


def test_two_arguments_that_are_one_buffer_are_kept_in_order() -> None:
    text = pipeline().replace("offset = affine_map<(d0) -> (d0 * 512)>", "offset = affine_map<(d0) -> (d0 * 0)>", 1)
    apart = sync(parsed(text))
    same = sync(parsed(text.replace("hardware.launch %x0, %y0", "hardware.launch %y0, %y0")))
    check_order(same)
    assert not any("mte3 mte2" in event for event in events(apart))
    assert any("mte3 mte2" in event for event in events(same))  # the first tile that was stored is loaded again


def test_too_many_events_name_the_engines_and_both_instructions() -> None:
    # In each iteration mte3 waits for what vector did last in the one before, then for what it does in this one.
    first = lines(
        view("e", "in", (2, 64), "f32", "ub", None, "1024"),
        view("f", "y0", (2, 64), "f32", "gm", "#tile.layout<[2, 256], [64, 4]>", "0"),
        'hardware.dma %e, %f {engine = "mte3"}',
    )
    last = 'hardware.vector %b, %e {engine = "vector", fn = "neg"}'
    text = pipeline(target="davinci{event_slots=1}", first=first, last=last)
    text = text.replace("offset = 0 : i64, slots = 2", "offset = 0 : i64, slots = 3", 1)
    with pytest.raises(UserError, match=r"@k needs more than the 1 events that engines 'vector' and 'mte3'") as caught:
        sync(parsed(text))
    assert "instruction that waits" in caught.value.notes[0][0]
    check_order(sync(parsed(text.replace("event_slots=1", "event_slots=2"))))
