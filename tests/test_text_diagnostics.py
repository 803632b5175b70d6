"""Mistakes in the text: one message at the right place for each, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from tilewright.dialects.errors import UserError
from tilewright.dialects.verify import verify_module
from tilewright.ir.diagnostics import SourceError, from_user_error, render
from tilewright.ir.source import load_module, parse_module


def errors_of(text: str, **options: object) -> list[tuple[int, int, int, str]]:
    """(line, column, length, message) of every diagnostic."""
    with pytest.raises(SourceError) as caught:
        parse_module(text, **options)  # pyright: ignore[reportArgumentType]
    return [(d.line, d.column, d.length, d.message) for d in caught.value.diagnostics]


def in_function(*lines: str) -> str:
    body = "\n".join(lines)
    return f"func.func @f(%a: tensor<4xf32>, %b: tensor<5xf32>) {{\n{body}\nfunc.return\n}}\n"


def test_rendering() -> None:
    with pytest.raises(SourceError) as caught:
        parse_module(in_function("  %c = graph.ad %a, %a"), "model.mlir")
    assert str(caught.value) == (
        "model.mlir:2:8: error: unknown operation 'graph.ad'\n"
        "  %c = graph.ad %a, %a\n"
        "       ^^^^^^^^\n"
        "help: did you mean 'graph.pad'?"
    )


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("%c = graph.softmax %a {x.scale = 1e-5 : f32}", "a float has a point: 1.0e-5"),
        ("%c = graph.constant dense<1e5> : tensor<f32>", "a float has a point: 1.0e5"),
        ("%c = graph.constant dense<[1.0, -inf]> : tensor<2xf16>", "-inf is 0xFC00 in f16"),
        ("%c = graph.softmax %a {x.scale = nan}", "infinities and NaN are written by their bits"),
    ],
)
def test_numbers_that_other_languages_spell_otherwise(line: str, hint: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse_module(in_function(line))
    assert hint in caught.value.diagnostics[0].suggestion, str(caught.value)


@pytest.mark.parametrize(
    ("line", "column", "length", "part"),
    [
        ("%c = graph.add %a, %zz", 20, 3, "'%zz' is not defined"),
        ("%a = graph.relu %b", 1, 2, "'%a' is already defined"),
        ("%c, %d = graph.relu %a", 1, 8, "2 names for 1 result"),
        ("%c = graph.relu %a : tensor<5xf32>", 22, 13, "tensor<5xf32> disagrees with the inferred tensor<4xf32>"),
        (
            '%c = "graph.relu"(%a) : (tensor<5xf32>) -> tensor<5xf32>',
            19,
            2,
            "written as tensor<5xf32>, but is tensor<4xf32>",
        ),
        ('%c = "graph.relu"(%a) : () -> tensor<5xf32>', 25, 19, "0 operand types for 1 operands"),
        ("%c = graph.add %a, %b", 6, 9, "[4] and [5] do not broadcast"),
        ("%c = graph.fused %a", 6, 11, "needs its result types written"),
        ("%c = graph.constant dense<1.0> : tensor<4xf33>", 43, 3, "expected shape type"),
        ("%c = graph.constant dense<[1.0, 2.0]> : tensor<4xf32>", 21, 17, "shape mismatch"),
        ("%c = graph.relu dense<1.0> : tensor<4xf32>", 17, 10, "has no constant value"),
        ("%c = graph.softmax %a {axis = 0 : i64, axis = 1 : i64}", 40, 4, "'axis' is given twice"),
        ("%c = graph.softmax %a {axis = 300 : i8}", 31, 3, "does not fit i8"),
        ("%c = graph.softmax %a {axis = 1.5 : i64}", 31, 3, "cannot be of type i64"),
        ('%c = graph.relu %a {note = "\\q"}', 29, 2, "unknown escape"),
        ("tile.for %i = 0 to %a { tile.yield }", 20, 2, "unexpected '%a'"),
        ("tile.for %i = 0 to affine_map<(d0) -> (d0)>() { tile.yield }", 20, 24, "takes 1 counters, got 0"),
        (
            "%c = tile.for %i = 0 to 2 iter (%x = %a) : tensor<5xf32> { tile.yield %x }",
            44,
            13,
            "disagrees with the carried",
        ),
        ("hardware.for %i = 0 to 2 iter (%x = %a) { }", 32, 4, "carries no values"),
        ("%c = graph.relu %a {s = @x::}", 27, 1, "unexpected ':'"),
        ('%c = graph.relu %a {s = "x}', 25, 1, "this string is not closed"),
        ("%c = graph.relu %a : tensor<4xf32", 28, 1, "this '<' is not closed"),
        ("func.return %a : tensor<5xf32>", 13, 2, "written as tensor<5xf32>"),
    ],
)
def test_one_error(line: str, column: int, length: int, part: str) -> None:
    (found,) = errors_of(in_function(line))
    assert found[:3] == (2, column, length), found
    assert part in found[3]


def test_independent_errors_are_reported_together_and_consequences_not() -> None:
    found = errors_of(
        in_function("%c = graph.ad %a, %a", "%d = graph.add %c, %c", "%e = graph.add %d, %x", "%g = graph.add %a, %b")
    )
    assert [line for line, *_ in found] == [2, 4, 5]


def test_all_errors_are_collected_and_an_exception_shows_the_first() -> None:
    with pytest.raises(SourceError) as caught:
        parse_module("\n".join(f"%{i} = graph.nothing" for i in range(50)) + "\n")
    assert len(caught.value.diagnostics) == 50
    text = str(caught.value)
    assert text.count("error:") == 20 and text.endswith("… and 30 more, in .diagnostics")


SYNTAX = {
    "a missing comma": "%c = graph.add %a %b",
    "a missing type": "%c = graph.add %a, %b :",
    "an open type": "%c = graph.add %a, %b : tensor<4xf32",
    "two equals": "%c = graph.add %a, %b {x = = 1}",
}


@pytest.mark.parametrize("first", SYNTAX)
@pytest.mark.parametrize("second", SYNTAX)
def test_syntax_errors_of_several_operations_are_reported_together(first: str, second: str) -> None:
    """Each once, at its own line (what ends too early, at the next), with nothing made up between them."""
    good = "%d = graph.add %a, %b"
    text = in_function(good, SYNTAX[first], good, SYNTAX[second], good)
    alone = [errors_of(in_function(good, *middle, good)) for middle in
             ((SYNTAX[first], good, good), (good, good, SYNTAX[second]))]  # fmt: skip
    assert errors_of(text) == [error for errors in alone for error in errors]


@pytest.mark.parametrize(
    "broken", ["%c = graph.add %a, (%b", "func.func @f( {", "^bb0(%a", "%c = graph.add %a, %b : (", "}}"]
)
def test_what_cannot_be_left_out_ends_the_reading(broken: str) -> None:
    assert len(errors_of(in_function(broken, "%d = graph.add %a %b"))) == 1


def test_an_error_in_a_header_is_reported_with_those_of_its_body() -> None:
    found = errors_of("func.func @f(%a: tensor<4xf33>) {\n%b = graph.relu %a\n%c = graph.relu %x\nfunc.return\n}\n")
    assert [line for line, *_ in found] == [1, 3]


def test_what_lies_outside_of_an_isolated_region_is_named() -> None:
    text = in_function("graph.fused {test.k} : tensor<4xf32> ({", "graph.yield %a", "})")
    with pytest.raises(SourceError) as caught:
        parse_module(text)
    (note,) = caught.value.diagnostics[0].notes
    assert "defined here" in note.message and (note.line, note.column) == (1, 14)


def test_redefinition_points_at_the_first() -> None:
    with pytest.raises(SourceError) as caught:
        parse_module(in_function("%c = graph.relu %a", "%c = graph.relu %a"))
    assert [(n.line, n.message) for n in caught.value.diagnostics[0].notes] == [(2, "first defined here")]


def test_end_of_text_and_expectations() -> None:
    ((line, column, _, message),) = errors_of("func.func @f() {\n")
    assert (line, column) == (1, 17) and message.startswith("unexpected end of the text; expected '}'")


@pytest.mark.parametrize("text", ["", "   \n", "// nothing\n", "#map = affine_map<(d0) -> (d0)>\n"])
def test_empty_texts(text: str) -> None:
    ((_, _, _, message),) = errors_of(text)
    assert message == "the text contains no operation"


@pytest.mark.parametrize(
    "text",
    [
        "module {\n" * 10_000 + "}" * 10_000,
        '"a.b"() {x = ' + "[" * 1_000 + "]" * 1_000 + "} : () -> ()",
        '"a.b"() ({\n' * 10_000 + "}) : () -> ()\n" * 10_000,
    ],
)
def test_deep_nesting(text: str) -> None:
    ((_, _, _, message),) = errors_of(text)
    assert "nested too deeply" in message


def test_the_deepest_nesting_allowed_survives_everything() -> None:
    from tilewright.ir.source import print_module

    text = "module {\n" * 64 + "}\n" * 64
    module = parse_module(text)
    verify_module(module)
    for generic in (False, True):
        assert parse_module(print_module(module, generic)).is_structurally_equivalent(module)


@pytest.mark.parametrize("name", ["a" * 5000, "no/such/dir.mlir", "x\ty"])
def test_missing_files(name: str) -> None:
    with pytest.raises(SourceError) as caught:
        load_module(name)
    assert len(caught.value.diagnostics) == 1


def test_files_that_are_no_text(tmp_path: Path) -> None:
    path = tmp_path / "model.mlir"
    for content, part in (
        (os.urandom(1000) + b"\0", ""),
        (b'"a.b"() : () -> ()\n\xff', "byte 0xFF is not valid UTF-8"),
        (b"x" * 1000 + b"\0", "NUL byte at offset 1000"),
        (b"PK\x03\x04\0", "a saved program is read by tilewright.load_program"),
        (b"", "no operation"),
    ):
        path.write_bytes(content)
        with pytest.raises(SourceError) as caught:
            load_module(path)
        assert part in str(caught.value) and str(path) in str(caught.value)
    with pytest.raises(SourceError, match="is a directory"):
        load_module(tmp_path)
    (tmp_path / "attention.mlir").write_text("")
    with pytest.raises(SourceError) as caught:
        load_module(tmp_path / "atention.mlir")
    assert caught.value.diagnostics[0].suggestion == "did you mean 'attention.mlir'?"


@pytest.mark.parametrize("garbage", ["<", "(", '"', "%a, ", "tensor<", "{a", "//", "\n", "a", "-"])
def test_garbage_fails_at_once(garbage: str) -> None:
    for text in (garbage * 200_000, "x.y : t<" + garbage * 200_000):
        assert len(errors_of(text)) == 1


def test_dims() -> None:
    text = 'func.func @f(%x: tensor<?xf32, #graph.dims<["seq"]>>) {\n  func.return\n}\n'
    with pytest.raises(SourceError) as caught:
        parse_module(text, dims={"sqe": 4})
    assert caught.value.diagnostics[0].suggestion == "did you mean 'seq'?"
    assert "at least 1" in errors_of(text, dims={"seq": 0})[0][3]
    (found,) = errors_of(text.replace("?x", "?x?x"))
    assert "2 `?` and 1 names" in found[3]


def test_errors_from_below_get_their_line() -> None:
    text = in_function("%c = graph.relu %a")
    module, sources = load_module(text)
    relu = next(op for op in module.walk() if op.name == "graph.relu")
    shown = render([from_user_error(UserError("no", relu.location, [("see", relu.location)]), sources.texts)])
    assert shown.splitlines()[:3] == ["<text>:2:6: error: no", "%c = graph.relu %a", "     ^^^^^^^^^^"]
    assert shown.splitlines()[3] == "<text>:2:6: note: see"
