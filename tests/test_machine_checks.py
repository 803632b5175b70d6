"""What the machine rejects, and how it says it."""

from __future__ import annotations

import re

import numpy as np
import pytest
from machine_programs import (
    both,
    buffer_type,
    lines,
    local,
    on_vector,
    parsed,
    product,
    program,
    row_pipeline,
    signal,
    view,
    wait,
)
from tilewright.dialects import target_use
from tilewright.dialects.errors import UserError
from tilewright.ir.diagnostics import SourceError
from tilewright.runtime.machine import MachineError, MachineOptions, analyze, cases, run
from xdsl.dialects.builtin import ModuleOp

import tilewright

ROWS = ((2, 64), "f32")
COPY = ('hardware.dma %s, %a {engine = "mte2"}', 'hardware.dma %a, %t {engine = "mte2"}')


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


def failing(text: str, *shapes: tuple[int, ...], options: MachineOptions | None = None) -> MachineError:
    dtype = np.float16 if "f16" in text else np.float32
    with pytest.raises(MachineError) as caught:
        run(parsed(text), [np.ones(shape, dtype) for shape in shapes], options)
    return caught.value


def test_poison_names_everything() -> None:
    """The tile's second row is loaded for half of the tiles only, but exp reads it in all."""
    text = changed(
        row_pipeline(),
        "hardware.view %in, %i {offset = affine_map<(d0) -> ((d0 mod 2) * 512)>, layout",
        "hardware.view %in, %i {valid = affine_map<(d0) -> (3 - d0, 64)>, "
        "offset = affine_map<(d0) -> ((d0 mod 2) * 512)>, layout",
    )
    view_of_all = view("w", "in", (2, 64), "f32", "ub", offset="(d0 mod 2) * 512", counters=("i",))
    text = changed(text, 'hardware.vector %a, %b {fn = "exp"', view_of_all + '\nhardware.vector %w, %b {fn = "exp"')
    error = failing(text, (8, 64))
    assert error.message == (
        "'hardware.vector' on engine 'vector' at i=2: reads poison: element [1, 0] of %in, byte 256 of 'ub'"
    )
    assert ":" in str(error.location)
    relaxed = run(parsed(text), [np.ones((8, 64), np.float32)], MachineOptions(check_poison=False))
    assert relaxed.outputs[0].shape == (8, 64)


def test_a_refilled_slot_holds_nothing_old() -> None:
    """Tile 2 brings one row into the slot of tile 0; without `fresh` the old second row would pass."""
    ragged = row_pipeline(tiles=3, valid="d0 * -2 + 5, 64", rows=5)
    whole = view("w", "in", (2, 64), "f32", "ub", offset="(d0 mod 2) * 512", counters=("i",))
    full = view("v", "out", (2, 64), "f32", "ub", offset="(d0 mod 2) * 512", counters=("i",))
    old = 'hardware.vector %a, %b {fn = "exp", engine = "vector", fresh}'
    text = changed(ragged, old, lines(whole, full, old.replace("%a, %b", "%w, %v")))
    assert "reads poison" in failing(text, (5, 64)).message
    stale = changed(text, 'hardware.dma %s, %a {engine = "mte2", fresh}', 'hardware.dma %s, %a {engine = "mte2"}')
    run(parsed(stale), [np.ones((5, 64), np.float32)])


def shared(second: int, fill: str = "") -> str:
    """Loads %p, computes from %q, which begins at byte `second`; `fill` may come between."""
    body = lines(
        local("p", 0, (2, 64), "f32", "ub"),
        local("q", second, (2, 64), "f32", "ub"),
        local("r", 4096, (2, 64), "f32", "ub"),
        view("s", "x0", (2, 64), "f32", "gm"),
        *(view(v, b, (2, 64), "f32", "ub") for v, b in (("a", "p"), ("b", "q"), ("c", "r"))),
        view("t", "y0", (2, 64), "f32", "gm"),
        'hardware.dma %s, %a {engine = "mte2"}',
        both("mte2", "vector"),
        fill,
        'hardware.vector %b, %c {fn = "exp", engine = "vector"}',
        both("vector", "mte3"),
        'hardware.dma %c, %t {engine = "mte3"}',
    )
    return program(body, [ROWS], [ROWS])


def test_bytes_of_another_buffer_are_poison() -> None:
    """%q lies where %p was: what %p holds is no value of %q, though every byte of it was written."""
    error = failing(shared(0), (2, 64))
    assert error.message == (
        "'hardware.vector' on engine 'vector': reads poison: element [0, 0] of %q, byte 0 of 'ub', "
        "still holds what was written to %p"
    )
    ((note, location),) = error.notes
    assert note == "the last to touch it: 'hardware.dma' on engine 'mte2'" and location is not None
    error = failing(shared(256), (2, 64))
    assert "element [0, 0] of %q, byte 256 of 'ub', still holds what was written to %p" in error.message
    error = failing(shared(512), (2, 64))
    assert error.message.endswith("element [0, 0] of %q, byte 512 of 'ub'")
    assert [note for note, _ in error.notes] == ["nothing wrote the buffer"]
    written = shared(256, 'hardware.fill %b {value = 0.0 : f32, engine = "vector"}')
    x = np.ones((2, 64), np.float32)
    np.testing.assert_array_equal(run(parsed(written), [x]).outputs[0], x)
    relaxed = run(parsed(shared(0)), [x], MachineOptions(check_owner=False))
    np.testing.assert_array_equal(relaxed.outputs[0], np.exp(x))


def test_off_chip_bytes_of_another_buffer_are_poison() -> None:
    """The workspace's bytes are reused; a launch that reads the second buffer before it is written is caught."""
    kind = buffer_type((8, 64), "f32", "gm")
    work = '{offset = 4096 : i64, role = "workspace"}'
    more = lines(f"%u = hardware.buffer {work} : {kind}", f"%v = hardware.buffer {work} : {kind}")
    launches = lines("hardware.launch %x0, %u {callee = @k}", "hardware.launch %v, %y0 {callee = @k}")
    text = changed(row_pipeline(), "hardware.launch %x0, %y0 {callee = @k}", lines(more, launches))
    error = failing(text, (8, 64))
    assert "element [0, 0] of %x0, byte 4096 of 'gm'" in error.message
    run(parsed(changed(text, "hardware.launch %v", "hardware.launch %u")), [np.ones((8, 64), np.float32)])


def test_a_view_lies_in_one_slot() -> None:
    """Two slots of 512 bytes: a view 32 bytes further on ends in the next one, inside the buffer all the same."""
    text = changed(row_pipeline(tiles=1), "(d0 mod 2) * 512)", "(d0 mod 2) * 512 + 32)")
    error = failing(text, (2, 64))
    assert "touches bytes [32, 544) of %in, in two of its 2 slots of 512 bytes" in error.message
    assert error.notes[0][0] == "the buffer"


def test_on_chip_memory_does_not_outlive_a_kernel() -> None:
    text = row_pipeline(tiles=2)
    text = changed(text, "hardware.launch %x0, %y0 {callee = @k}", lines(
        "hardware.launch %x0, %y0 {callee = @k}", "hardware.launch %x0, %y0 {callee = @late}"))  # fmt: skip
    kind = text.partition("%x0: ")[2].partition(", %y0")[0]
    late = lines(
        f"hardware.kernel @late(%x0: {kind}, %y0: {kind}) {{",
        local("in", 0, (2, 64), "f32", "ub"),
        view("a", "in", (2, 64), "f32", "ub"),
        view("t", "y0", (2, 64), "f32", "gm"),
        'hardware.dma %a, %t {engine = "mte3"}',
        "}",
    )
    assert "reads poison" in failing(changed(text, "hardware.program", late + "\nhardware.program"), (4, 64)).message


def test_an_output_nobody_wrote() -> None:
    text = row_pipeline(tiles=2, rows=5)
    error = failing(text, (5, 64))
    assert error.message == "output 0 (%y0) is poison at [4, 0]: nothing was written there"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        # a view that leaves its buffer
        ("(d0 mod 2) * 512)", "(d0 mod 3) * 512)",
         "'hardware.dma' on engine 'mte2' at i=2: touches bytes [1024, 1536) of %in, which has 1024 (byte 0 of 'ub')"),
        ("d0 * 512)", "d0 * 512 - 512)", "touches bytes [-512, 0) of %x0"),
        # buffers
        ("{offset = 1024 : i64, slots = 2 : i64", "{offset = 1030 : i64, slots = 2 : i64",
         "%out at byte 1030 of 'ub' is not aligned to 32 bytes"),
        ("{offset = 1024 : i64, slots = 2 : i64", "{offset = 253952 : i64, slots = 2 : i64",
         "%out reaches byte 254976 of 'ub', which has 253952"),
        # what engines reach and can do
        ('hardware.dma %s, %a {engine = "mte2"', 'hardware.dma %s, %a {engine = "mte3"',
         "the move from 'gm' to 'ub' is one of engine 'mte2'"),
        ('hardware.dma %s, %a {engine = "mte2"', 'hardware.dma %s, %a {engine = "vector"',
         "an engine of kind vector does not execute this instruction"),
        ('hardware.dma %s, %a {engine = "mte2"', 'hardware.dma %s, %a {engine = "mte9"',
         "target 'davinci' has no engine 'mte9'"),
        ("hardware.vector %a, %b", "hardware.vector %s, %b", "its operand %x0 lies in 'gm', the engine reaches ub"),
        # events
        ("event = 0 : i64, from = \"mte2\"", "event = 8 : i64, from = \"mte2\"",
         "event 8 from 'mte2' to 'vector': target 'davinci' has 8 between two engines"),
        ('to = "mte2"', 'to = "mte7"', "target 'davinci' has no engine 'mte7'"),
        # the rest
        ("callee = @k", "callee = @q", "there is no kernel @q"),
        ("hardware.launch %x0, %y0", "hardware.launch %x0", "kernel @k takes 2 buffers, got 1"),
    ],
)  # fmt: skip
def test_rejected(old: str, new: str, message: str) -> None:
    error = failing(changed(row_pipeline(), old, new), (8, 64))
    assert message in error.message


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"mk,kn->mn"', '"mk,kn->mk"', "the letters of a matmul are those of a two-operand contraction"),
        ("hardware.matmul %ld, %rd", "hardware.matmul %xd, %rd",
         "its lhs %xn lies in 'l1', the engine has it in 'l0a'"),
        ('hardware.dma %xd, %ld {engine = "mte1"', 'hardware.dma %xs, %ld {engine = "mte1"',
         "no move from 'gm' to 'l0a'"),
        ('hardware.dma %xd, %ld {engine = "mte1"', 'hardware.dma %xd, %ld {engine = "fixpipe"',
         "the move from 'l1' to 'l0a' is one of engine 'mte1'"),
        ("%r = hardware.buffer {offset = 0 : i64", "%r = hardware.buffer {offset = 32 : i64",
         "is not aligned to 512 bytes"),
    ],
)  # fmt: skip
def test_rejected_products(old: str, new: str, message: str) -> None:
    text = product(32, 32, 32)
    with pytest.raises(UserError) as caught:
        run(parsed(changed(text, old, new)), [np.ones((32, 32), np.float16)] * 2)
    assert message in caught.value.message


def test_a_move_that_cannot_convert_elements() -> None:
    body = lines(
        local("p", 0, (2, 64), "f16", "ub"),
        view("s", "x0", (2, 64), "f32", "gm"),
        view("a", "p", (2, 64), "f16", "ub"),
        COPY[0],
    )
    error = failing(program(body, [ROWS], [((2, 64), "f16")]), (2, 64))
    assert "the move from 'gm' to 'ub' cannot convert f32 to f16" in error.message


def test_a_descriptor_has_so_many_dimensions() -> None:
    """Every second element along six dimensions of extent 2."""
    shape, rank = (2,) * 6, 6
    strides = [4 * 4 ** (rank - 1 - d) for d in range(rank)]
    sparse = "#tile.layout<" + ", ".join(f"[2, {stride * 2}]" for stride in strides) + ">"
    body = lines(
        local("p", 0, shape, "f32", "ub"),
        view("s", "x0", shape, "f32", "gm", sparse),
        view("a", "p", shape, "f32", "ub"),
        COPY[0],
    )
    error = failing(program(body, [((4,) * 6, "f32")], []), (4,) * 6)
    assert "the transfer needs 7 dimensions, a descriptor of target 'davinci' has 5" in error.message


def test_a_product_has_so_many_rows_terms_and_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's limit counts for the active region: of 32 rows 20 may be valid."""
    x = [np.ones((32, 32), np.float16)] * 2
    plain = product(32, 32, 32)

    def limited(shape: str, text: str = plain) -> ModuleOp:
        return parsed(changed(text, '"davinci"', f'"davinci{{engine.matrix.types.f16.max_shape={shape}}}"'))

    run(limited("[32, 32, 32]"), x)
    for shape, over in (("[16, 32, 32]", "m"), ("[32, 16, 32]", "k"), ("[32, 16, 16]", "k and n")):
        with pytest.raises(MachineError, match="a product of 32 × 32 × 32") as caught:
            run(limited(shape), x)
        assert f"exceeds, in {over}, the " in caught.value.message
    for valid, right in ((16, True), (17, False)):
        rows = re.sub(r"(%ld = hardware.view %\w+ \{)", rf"\1valid = affine_map<() -> ({valid}, 32)>, ", plain)
        module, options = limited("[16, 32, 32]", rows), MachineOptions(check_poison=False)
        if right:
            run(module, x, options)
        else:
            with pytest.raises(MachineError, match="a product of 17 × 32 × 32"):
                run(module, x, options)
    monkeypatch.setattr(cases, "check_product", _nothing)
    run(limited("[16, 32, 32]"), x)


def every_second_row() -> str:
    """Rows 0 and 2 of four."""
    body = lines(
        local("p", 0, (2, 64), "f32", "ub"), view("s", "x0", (2, 64), "f32", "gm", "#tile.layout<[2, 512], [64, 4]>"),
        view("a", "p", (2, 64), "f32", "ub"), COPY[0],
    )  # fmt: skip
    return program(body, [((4, 64), "f32")], [])


LIMITS = {
    "events": (
        row_pipeline().replace("event = 0 : i64", "event = 3 : i64"), "{event_slots=4}", "{event_slots=3}",
        "'hardware.(signal|wait)': event 3 from .*: target 'davinci' has 3 between two engines, numbers 0 to 2",
        "check_event_number",
    ),
    "dimensions": (
        every_second_row(), "{max_dma_dims=2}", "{max_dma_dims=1}",
        r"'hardware\.dma': the transfer needs 2 dimensions, a descriptor of target 'davinci' has 1", "check_descriptor",
    ),
    "product": (
        product(32, 32, 32), "{engine.matrix.types.f16.max_shape=[32,32,32]}",
        "{engine.matrix.types.f16.max_shape=[32,16,32]}", r"'hardware\.matmul': a product of 32 × 32 × 32",
        "check_product",
    ),
}  # fmt: skip
"""A program, a target that takes it, one that does not, why, and who sees it."""


@pytest.mark.parametrize("limit", LIMITS)
def test_a_file_beyond_a_limit_is_rejected_when_it_is_read(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the instruction, with its line, before anything is decoded."""
    text, within, beyond, message, check = LIMITS[limit]
    module = tilewright.load(text)
    tilewright.compile(module, f"davinci{within}").analyze()
    with pytest.raises(SourceError, match=message) as caught:
        tilewright.compile(module, f"davinci{beyond}")
    assert "hardware." in str(caught.value).splitlines()[1]
    monkeypatch.setattr(target_use, check, _nothing)
    tilewright.compile(module, f"davinci{beyond}")


def _nothing(*_: object) -> None:
    pass


def window(first: int) -> str:
    """exp of 56 columns of a 2 × 64 tile, from byte `first` of its rows on."""
    instruction = lines(
        view("w", "p0", (2, 56), "f32", "ub", "#tile.layout<[2, 256], [56, 4]>", offset=str(first)),
        'hardware.vector %w, %b {fn = "exp", engine = "vector"}',
    )
    return on_vector([ROWS], ((2, 56), "f32"), instruction)


def test_a_part_of_a_tile_starts_at_the_alignment() -> None:
    x = np.random.default_rng(2).standard_normal((2, 64)).astype(np.float32)
    result = run(parsed(window(32)), [x])
    np.testing.assert_array_equal(result.outputs[0], np.exp(x[:, 8:64]))
    with pytest.raises(UserError, match=r"%p0 is used from byte 4 of 'ub', which is not aligned to 32 bytes"):
        run(parsed(window(4)), [x])


def test_a_type_the_vector_engine_lacks() -> None:
    text = on_vector([ROWS], ROWS, 'hardware.vector %a0, %b {fn = "exp", engine = "vector"}')
    with pytest.raises(UserError, match="tanhh"):
        run(parsed(changed(text, '"exp"', '"tanhh"')), [np.ones((2, 64), np.float32)])


def test_inputs_must_fit() -> None:
    module = parsed(row_pipeline())
    with pytest.raises(UserError, match="takes 1 inputs, got 0"):
        run(module, [])
    with pytest.raises(UserError, match=r"input 0 has shape \[4, 64\], the program has \[8, 64\]"):
        run(module, [np.ones((4, 64), np.float32)])


def test_a_module_without_a_program() -> None:
    with pytest.raises(UserError, match=r"executes one 'hardware\.program'"):
        analyze(parsed('module attributes {tilewright.target = "davinci"} {\n}'))


def test_analysis_checks_what_needs_no_data() -> None:
    text = row_pipeline()
    with pytest.raises(MachineError, match="mte9"):
        analyze(parsed(changed(text, 'hardware.dma %s, %a {engine = "mte2"', 'hardware.dma %s, %a {engine = "mte9"')))


def test_events_of_an_engine_without_instructions() -> None:
    """An engine that only takes part in events is one of the kernel's too."""
    text = changed(
        row_pipeline(), "hardware.for", lines(signal("mte2", "fixpipe"), wait("mte2", "fixpipe"), "hardware.for")
    )
    run(parsed(text), [np.ones((8, 64), np.float32)])
