"""How the reference evaluator holds numbers: as float64 throughout, or as a framework would store them.

"f64"     every float is a float64 and nothing rounds but explicit casts; integers and truth values are exact.
"native"  every value is stored in its type; ops compute in the compute type and round their result to its type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from xdsl.ir import Attribute

from ..dialects.dtypes import BY_NAME, ElementType, common_compute_type, convert, element

Array: TypeAlias = npt.NDArray[Any]
Precision: TypeAlias = Literal["f64", "native"]


@dataclass(frozen=True)
class Numbers:
    """One of the two ways; all arrays of an evaluation are held in it."""

    precision: Precision

    def held(self, row: ElementType) -> np.dtype[Any]:
        """The dtype of arrays that stand for values of `row`."""
        return np.dtype(np.float64) if self.precision == "f64" and row.kind == "float" else row.numpy

    def enter(self, array: Array, type_: Attribute) -> Array:
        """A user's array as values of `type_`: rounded to the type first, then held."""
        row = element(type_)
        return convert(array, row).astype(self.held(row), copy=False)

    def lift(self, array: Array, compute: Attribute) -> Array:
        """A held array in the compute type of an op (float64 for every float in "f64")."""
        return array.astype(self.held(element(compute)), copy=False)

    def lift_all(self, arrays: Sequence[Array], types: Sequence[Attribute]) -> list[Array]:
        """Held arrays in the common compute type of their types."""
        compute = common_compute_type(types)
        return [self.lift(array, compute) for array in arrays]

    def lower(self, array: Array, type_: Attribute) -> Array:
        """An op's result, rounded to its type unless floats are kept."""
        row = element(type_)
        held = self.held(row)
        if array.dtype == held:
            return array
        with np.errstate(all="ignore"):
            return array.astype(held) if self.precision == "f64" and row.kind == "float" else convert(array, row)

    def cast(self, array: Array, source: Attribute, target: Attribute) -> Array:
        """An explicit cast: rounds in both ways, unless source and target are the same type."""
        if element(source) == element(target):
            return array
        return self.enter(array, target)


def parameter(value: float, operand_type: Attribute) -> float:
    """A number of an op's definition or attribute as the op uses it: rounded to the operand's compute type."""
    dtype = BY_NAME[element(operand_type).compute].numpy
    with np.errstate(all="ignore"):
        return np.asarray(value).astype(dtype).item()
