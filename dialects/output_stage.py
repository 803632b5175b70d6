"""What a move does to the elements on the way: multiplies by a number, applies a scalar operator, converts.

In this order; the arithmetic is in the compute type of the source (as of an operator between it and the number), and
the result rounds once to the destination's element type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import FloatAttr, StringAttr
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation, opt_prop_def
from xdsl.utils.exceptions import VerifyException

from .dtypes import is_float, type_name
from .errors import UserError
from .names import near
from .scalar import TABLE
from .target_model import Move


class OutputStage(IRDLOperation):
    """An op that moves elements. `scale`: the number; `activation`: the operator, of one operand without parameters."""

    scale = opt_prop_def(FloatAttr)
    activation = opt_prop_def(StringAttr)

    @property
    def computes(self) -> bool:
        """Whether elements arrive as other numbers, rounding apart."""
        return self.scale is not None or self.activation is not None

    def verify_stage(self, source: Attribute) -> None:
        """Raises VerifyException for what no move can do to elements of this type."""
        if self.computes and not is_float(source):
            raise VerifyException(f"'{self.name}' scales or activates floats on the way, not {type_name(source)}")
        if self.activation is None:
            return
        name = self.activation.data
        if name not in TABLE:
            raise VerifyException(f"'{self.name}' has no activation '{name}'{near(name, TABLE)}")
        if TABLE[name].arity != 1 or TABLE[name].params or TABLE[name].result != "same":
            raise VerifyException(
                f"'{self.name}' activation '{name}' is not a function of one number without parameters"
            )


def check_stage(op: Operation, move: Move, source: Attribute, result: Attribute) -> None:
    """Raises UserError, at the op, where a move of the target lacks what an op that moves elements asks of it."""
    way = f"the move from '{move.source}' to '{move.destination}'"
    if source != result and not move.cast:
        raise UserError(f"{way} cannot convert {type_name(source)} to {type_name(result)}", op.location)
    if not isinstance(op, OutputStage):
        return
    if op.scale is not None and not move.scale:
        raise UserError(f"{way} cannot multiply by a number", op.location)
    if op.activation is not None and op.activation.data not in move.activation:
        known = ", ".join(move.activation) or "none"
        raise UserError(f"{way} cannot apply '{op.activation.data}' (it can apply: {known})", op.location)


def output_stage(fn: str, numbers: Sequence[Attribute], params: Attribute | None) -> dict[str, Attribute] | None:
    """The properties of an op that applies a scalar operator, to one float and these numbers, on the way.

    None where no output stage can: it multiplies by one number, and applies functions without parameters.
    """
    if fn == "mul" and len(numbers) == 1 and isinstance(numbers[0], FloatAttr):
        return {"scale": cast(Attribute, numbers[0])}
    row = TABLE.get(fn)
    plain = row is not None and row.arity == 1 and row.result == "same" and params is None
    return {"activation": StringAttr(fn)} if plain else None


def can_do(move: Move, stage: Mapping[str, Attribute], converts: bool) -> bool:
    """Whether a move has all that the properties of an output stage ask of it."""
    function = stage.get("activation")
    known = not isinstance(function, StringAttr) or function.data in move.activation
    return (move.cast or not converts) and (move.scale or "scale" not in stage) and known
