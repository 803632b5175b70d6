"""What the compute ops of the tile dialect and the instructions they become require alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects.builtin import DenseArrayBase, IndexType, IntegerAttr
from xdsl.ir import Attribute
from xdsl.utils.exceptions import VerifyException

from .attributes import int_values
from .names import near


def is_position(slot: Attribute) -> bool:
    """Whether an entry of `immediates` names an input (an `index` attribute) and is not a value."""
    return isinstance(slot, IntegerAttr) and isinstance(slot.type, IndexType)  # pyright: ignore[reportUnknownMemberType]


def position(slot: Attribute) -> int:
    """The number of the input that an entry of `immediates` names."""
    assert isinstance(slot, IntegerAttr)
    return slot.value.data


def verify_map(
    name: str, inputs: Sequence[Sequence[int]], output: Sequence[int], immediates: Iterable[Attribute] | None
) -> None:
    """Inputs of shapes `inputs` broadcast to `output`: extents are equal or 1. `immediates` name inputs that exist."""
    for extents in inputs:
        if len(extents) != len(output) or any(e not in (1, s) for e, s in zip(extents, output, strict=True)):
            raise VerifyException(f"'{name}' cannot broadcast {list(extents)} to {list(output)}")
    for slot in immediates or ():
        if is_position(slot) and not 0 <= position(slot) < len(inputs):
            raise VerifyException(f"'{name}' refers to input {position(slot)} of {len(inputs)}")


def verify_name(name: str, what: str, word: str, known: Iterable[str]) -> None:
    """Raises VerifyException unless a scalar operator or monoid is one of those there are."""
    known = list(known)
    if word not in known:
        raise VerifyException(f"'{name}' has no {what} '{word}'{near(word, known)}")


def verify_reduce(name: str, source: Sequence[int], output: Sequence[int], axes: DenseArrayBase) -> None:
    """The output keeps the rank of the source; the reduced axes have extent 1."""
    reduced = set(int_values(axes))
    wanted = [1 if d in reduced else extent for d, extent in enumerate(source)]
    if list(output) != wanted:
        raise VerifyException(f"'{name}' gives {wanted}, not {list(output)}")
