"""Inputs of a group whose elements are known when it is compiled: constants that can say where something is masked."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, TensorType
from xdsl.ir import Block, Region, SSAValue

from ..dialects.dtypes import dense_array, is_float
from ..dialects.graph_fused import FusedOp
from ..dialects.graph_primitives import ConstantOp, ViewOp
from ..dialects.graph_types import static_shape
from .fuse_prepare import is_reshape

Known: TypeAlias = "DenseIntOrFPElementsAttr[Any]"


def known_inputs(block: Block) -> dict[int, Known]:
    """The inputs of a group's block that are known, by their number; none of a block that is in no `graph.fused`."""
    fused = block.parent_op()
    if not isinstance(fused, FusedOp):
        return {}
    found = ((number, known_value(operand)) for number, operand in enumerate(fused.args))
    return {number: known for number, known in found if known is not None}


def known_value(value: SSAValue) -> Known | None:
    """The elements of a value that is a constant, or a reshape of one, and may be part of a mask."""
    source = value
    while isinstance(source.owner, ViewOp) and is_reshape(source.owner):
        source = source.owner.args[0]
    if not isinstance(source.owner, ConstantOp) or not _tells(source.owner.value):
        return None
    found = source.owner.value
    if source is value:
        return found
    shaped: Any = TensorType(found.get_element_type(), static_shape(value.type))
    return DenseIntOrFPElementsAttr(shaped, found.data)


def stand_in(value: SSAValue) -> SSAValue:
    """In the place of a value outside of what a group is copied to: the same constant, or a value of the same type."""
    known = known_value(value)
    if known is None:
        return Block(arg_types=[value.type]).args[0]
    return ConstantOp.make([], None, {"value": known}).res


def candidate(block: Block, inputs: Sequence[SSAValue]) -> Block:
    """A block of primitives over `inputs`, in a `graph.fused` of its own that leaves these without further uses."""
    last = block.last_op
    assert last is not None
    FusedOp([stand_in(value) for value in inputs], [value.type for value in last.operands], Region(block))
    return block


@lru_cache(maxsize=256)
def digest(known: Known) -> str:
    """What tells one known input from another."""
    return sha256(known.data.data).hexdigest()


@lru_cache(maxsize=256)
def _tells(value: Known) -> bool:
    """Integers and truth values, and floats some of which are not finite or all of which are 0 or 1: others are data
    like any input."""
    if not is_float(value.get_element_type()):
        return True
    array = dense_array(value).astype(np.float64)
    return not np.isfinite(array).all() or bool(((array == 0) | (array == 1)).all())
