"""Arrays that other packages hold: taken by `__array__` or DLPack."""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from .errors import plain_error

Array: TypeAlias = npt.NDArray[Any]


def as_array(value: object, what: str) -> Array:
    """The array that an object is, gives (`__array__`), shares (`__dlpack__`) or lists.

    Raises SourceError, with `what` the object is, where it cannot: uneven lists, another device, a type NumPy lacks.
    """
    try:
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(cast(Any, value))
        array: Array = np.asarray(value)
    except Exception as error:  # foreign code: whatever it raises, what was given cannot be read
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise plain_error(f"{what} cannot be read as an array: {reason}") from None
    if array.dtype.kind not in "biufV":
        raise plain_error(f"{what} has elements of '{array.dtype}', which are no numbers")
    return array
