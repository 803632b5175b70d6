"""The one exception for mistakes in what the user gave: programs, targets, options, inputs."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import UnknownLoc
from xdsl.ir import Attribute


class UserError(Exception):
    """Bad input. Carries everything a diagnostic needs; nothing below the command line prints.

    `location` is the location attribute of the op at fault, None where there is no op or it has no known place; `notes`
    are (message, location) pairs that point at related places.
    """

    def __init__(
        self,
        message: str,
        location: Attribute | None = None,
        notes: Sequence[tuple[str, Attribute | None]] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.location = None if isinstance(location, UnknownLoc) else location
        self.notes = tuple(notes)


class UserErrors(UserError):
    """Several mistakes found in one go; it reads as the first of them."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        super().__init__(errors[0].message, errors[0].location, errors[0].notes)
        self.errors = tuple(errors)

    @staticmethod
    def raise_any(errors: Sequence[UserError]) -> None:
        """Raises what was found: one error as itself, several as one; nothing where there is none."""
        if len(errors) == 1:
            raise errors[0]
        if errors:
            raise UserErrors(errors)
