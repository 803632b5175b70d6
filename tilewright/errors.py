"""From exceptions of the layers below to one kind that shows the place in the user's text."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from xdsl.utils.exceptions import PassFailedException, VerifyException

from tilewright.dialects.errors import UserError
from tilewright.ir.diagnostics import Diagnostic, SourceError, file_locations, from_user_errors, from_verify_exception
from tilewright.runtime.machine.errors import MachineError


class CheckError(SourceError):
    """The program ran, but the machine found it wrong: a race, poison in a result, an address outside its memory."""


class OutputError(SourceError):
    """A file could not be written."""


def plain_error(message: str, suggestion: str = "") -> SourceError:
    """A mistake that has no place in a text, and what would mend it."""
    return SourceError([Diagnostic("error", message, suggestion=suggestion)])


@contextmanager
def diagnosed(texts: Mapping[str, str]) -> Generator[None]:
    """Turns a UserError raised inside into a SourceError that shows its line; `texts` maps file names to texts.

    What the machine finds wrong becomes a CheckError.
    """
    try:
        yield
    except MachineError as error:
        raise CheckError(from_user_errors(error, _with_others(error, texts))) from error
    except UserError as error:
        raise SourceError(from_user_errors(error, _with_others(error, texts))) from error
    except VerifyException as error:
        raise SourceError([from_verify_exception(error, texts)]) from error
    except PassFailedException as error:
        raise SourceError([Diagnostic("error", str(error))]) from error
    except RecursionError:
        raise SourceError([Diagnostic("error", "the program is nested too deeply")]) from None


def _with_others(error: UserError, texts: Mapping[str, str]) -> Mapping[str, str]:
    """The texts, and those of further files that the error points into (a target's), where they can be read."""
    found = dict(texts)
    for location in (error.location, *(place for _, place in error.notes)):
        for place in file_locations(location):
            name = place.filename.data
            if name not in found and Path(name).is_file():
                try:
                    found[name] = Path(name).read_text(encoding="utf-8")
                except (OSError, ValueError):
                    continue
    return found
