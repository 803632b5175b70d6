"""Weights stored beside a program."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, cast

import ml_dtypes
import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError
from safetensors import deserialize as _deserialize  # pyright: ignore[reportUnknownVariableType]
from safetensors.numpy import save

from ..dialects.errors import UserError

_log = logging.getLogger(__name__)

Array: TypeAlias = npt.NDArray[Any]
WeightReader: TypeAlias = Callable[[str, str], Array]

# The format's names of the element types; NumPy has no bfloat16 of its own to read it as.
_STORED: dict[str, np.dtype[Any]] = {
    "F64": np.dtype(np.float64), "F32": np.dtype(np.float32), "F16": np.dtype(np.float16),
    "BF16": np.dtype(ml_dtypes.bfloat16), "I64": np.dtype(np.int64), "I32": np.dtype(np.int32),
    "I8": np.dtype(np.int8), "U8": np.dtype(np.uint8), "BOOL": np.dtype(np.bool_),
}  # fmt: skip


# The package has no types: entries are (key, {"dtype", "shape", "data"}).
_read = cast("Callable[[bytes], list[tuple[str, dict[str, object]]]]", _deserialize)


def weight_bytes(arrays: Mapping[str, Array]) -> bytes:
    """The content of a safetensors file of these arrays."""
    return save({key: np.ascontiguousarray(array) for key, array in arrays.items()})


def weight_reader(resolve: Callable[[str], Path], held: Mapping[tuple[str, str], Array] | None = None) -> WeightReader:
    """A reader of weights, (file, key) → array, from safetensors files, each read once.

    `resolve` gives the path of a file that a program names; what is in `held` is read from no file. The reader raises
    UserError for a missing or broken file and for an unknown key.
    """

    @cache
    def content(file: str) -> dict[str, Array]:
        path = resolve(file)
        try:
            if path.exists() and not path.is_file():
                raise UserError(f"the weights '{path}' are not a regular file")
            entries = _read(path.read_bytes())
            _log.info("read %d weights from '%s'", len(entries), path)
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
        if held and (file, key) in held:
            return held[file, key]
        stored = content(file)
        if key not in stored:
            close = difflib.get_close_matches(key, stored, n=1)
            hint = f"; did you mean '{close[0]}'?" if close else f" (it has {', '.join(stored)})"
            raise UserError(f"'{resolve(file)}' has no weight '{key}'{hint}")
        return stored[key]

    return load
