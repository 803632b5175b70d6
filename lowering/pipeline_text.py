"""Pipelines as text: `canonicalize,fuse{unfused=true effort=40},schedule`.

xDSL's lexer and its conversion of options to the fields of a pass do the reading; what is added here are places: every
mistake is located in the text (a file named `<pipeline>`), with the near name where one is close.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from typing import NoReturn

from xdsl.dialects.builtin import FileLineColLoc, IntAttr, StringAttr
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, PipelineLexer, SpecTokenKind, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..dialects.errors import UserError

PIPELINE_TEXT = "<pipeline>"
"""The file name of locations in a pipeline's text."""


@dataclass(frozen=True)
class PipelineReader:
    """`own`: the passes that go first; `others` tells of further ones, asked only for names that are not among them."""

    own: Mapping[str, type[ModulePass]]
    others: Callable[[], Mapping[str, Callable[[], type[ModulePass]]]]

    def read(self, text: str) -> list[ModulePass]:
        """The passes that a text names. Raises UserError, with the place in the text, for anything wrong with it."""
        return [self._pass(part, offset, text) for part, offset in _split(text)]

    def _pass(self, part: str, offset: int, text: str) -> ModulePass:
        if not part:
            _fail("a pass name is missing here", text, offset)
        try:
            (spec,) = parse_pipeline(part)
        except ArgSpecParseError as error:  # derives from BaseException
            _fail_syntax(error, text, offset)
        cls = self._find(spec.name, text, offset)
        places = _option_places(part)
        known = [field.name for field in fields(cls) if field.init and field.name != "name"]
        for option in spec.parameters:
            if option.replace("-", "_") not in known:
                there = f"it has {', '.join(known)}" if known else "it has none"
                hint = _near(option.replace("-", "_"), known) or there
                _fail(f"pass '{spec.name}' has no option '{option}'; {hint}", text, offset + places.get(option, 0))
        for option, value in spec.parameters.items():
            try:
                _with_required(cls, spec, option)
            except ValueError:
                given = ",".join(map(str, value)) or "nothing"
                wanted = _type_of(cls, option.replace("-", "_"))
                _fail(
                    f"option '{option}' of pass '{spec.name}' is {wanted}, got {given}",
                    text,
                    offset + places.get(option, 0),
                )
        try:
            return cls.from_spec(spec)
        except ValueError as error:  # a field that is missing, or what the pass itself checks
            _fail(f"pass '{spec.name}': {' '.join(str(error).split())}", text, offset)

    def _find(self, name: str, text: str, offset: int) -> type[ModulePass]:
        if name in self.own:
            return self.own[name]
        others = self.others()
        if name in others:
            return others[name]()
        hint = _near(name, self.own) or _near(name, others) or f"there are {', '.join(self.own)}"
        _fail(f"unknown pass '{name}' in the pipeline; {hint}", text, offset)


def _split(text: str) -> list[tuple[str, int]]:
    """Parts between the commas outside braces and quotes, trimmed, with offsets; an empty text has none."""
    if not text.strip():
        return []
    parts: list[tuple[str, int]] = []
    start, depth, quoted = 0, 0, False
    for position, char in enumerate(f"{text},"):
        if char == '"':
            quoted = not quoted
        elif not quoted:
            depth += (char == "{") - (char == "}")
        if position == len(text) or (char == "," and depth == 0 and not quoted):
            part = text[start:position]
            parts.append((part.strip(), start + len(part) - len(part.lstrip())))
            start = position + 1
    return parts


def _option_places(part: str) -> dict[str, int]:
    """Option name → offset, of one pass with its options that xDSL has read without complaint."""
    found: dict[str, int] = {}
    lexer, before = PipelineLexer(part), SpecTokenKind.EOF
    while (token := lexer.lex()).kind is not SpecTokenKind.EOF:
        if token.kind is SpecTokenKind.IDENT and before in (SpecTokenKind.L_BRACE, SpecTokenKind.SPACE):
            found[token.span.text] = token.span.start
        before = token.kind
    return found


def _with_required(cls: type[ModulePass], spec: ArgSpec, option: str) -> None:
    """Converts one option alone, beside what the pass cannot do without. Raises ValueError if it has the wrong type."""
    required = cls.required_fields()
    kept = {k: v for k, v in spec.parameters.items() if k == option or k.replace("-", "_") in required}
    if required <= {name.replace("-", "_") for name in kept}:
        cls.from_spec(ArgSpec(spec.name, kept))


def _type_of(cls: type[ModulePass], name: str) -> str:
    kind = next(str(field.type) for field in fields(cls) if field.name == name)
    words = {"int": "an integer", "bool": "true or false", "str": "a string", "float": "a number"}
    return words.get(kind, kind)


def _near(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"did you mean '{close[0]}'?" if close else ""


def _fail_syntax(error: ArgSpecParseError, text: str, offset: int) -> NoReturn:
    """xDSL's message: a head line with the column, the text with a caret below it, and last what is wrong."""
    column = re.search(r":1:(\d+)$", str(error), flags=re.MULTILINE)
    message = str(error).strip().splitlines()[-1].strip()
    _fail(f"{message[:1].lower()}{message[1:]}", text, offset + (int(column[1]) - 1 if column else 0))


def _fail(message: str, text: str, offset: int) -> NoReturn:
    line = text.count("\n", 0, offset) + 1
    column = offset - (text.rfind("\n", 0, offset) + 1) + 1
    place = FileLineColLoc(StringAttr(PIPELINE_TEXT), IntAttr(line), IntAttr(column))
    raise UserError(message, place)
