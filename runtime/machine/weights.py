"""Weights stored beside a program."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize  # pyright: ignore[reportUnknownVariableType]

from ...dialects.errors import UserError

Array: TypeAlias = npt.NDArray[Any]

# The format's names of the element types; NumPy has no bfloat16 of its own to read it as.
_STORED: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64), "F32": np.dtype(np.float32), "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16), "I64": np.dtype(np.int64), "I32": np.dtype(np.int32),
    "I8": np.dtype(np.int8), "U8": np.dtype(np.uint8), "BOOL": np.dtype(np.bool_),
}  # fmt: skip


# The package has no types: entries are (key, {"dtype", "shape", "data"}).
_read = cast("Callable[[bytes], list[tuple[str, dict[str, object]]]]", _deserialize)


def weights_in(folder: Path) -> Callable[[str, str], Array]:
    """A reader of weights, (file, key) → array, from safetensors files in a folder; a file is read once.

    The reader raises UserError for a missing or broken file and an unknown key.
    """

    @cache
    def content(file: str) -> dict[str, Array]:
        path = folder / file
        try:
            entries = _read(path.read_bytes())
        except OSError as error:
            raise UserError(f"cannot read the weights '{path}': {error.strerror or error}") from None
        except (SafetensorError, ValueError) as error:
            raise UserError(f"'{path}' is not a safetensors file: {error}") from None
        arrays: dict[str, Array] = {}
        for key, entry in entries:
            dtype = _STORED.get(str(entry["dtype"]))
            if dtype is not None:
                shape = cast("list[int]", entry["shape"])
                arrays[key] = np.frombuffer(cast(bytes, entry["data"]), dtype).reshape(shape)
        return arrays

    def load(file: str, key: str) -> Array:
        stored = content(file)
        if key not in stored:
            raise UserError(f"'{folder / file}' has no weight '{key}' (it has {', '.join(stored)})")
        return stored[key]

    return load
