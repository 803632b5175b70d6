"""Arrays in and out: checking inputs against the program, reading and writing .npy files, stored weights."""

from __future__ import annotations

import difflib
import io
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from tilewright.dialects.dtypes import ElementType

from .array_like import as_array
from .errors import plain_error
from .module import Module, TensorSpec

Array: TypeAlias = npt.NDArray[Any]


def random_inputs(specs: Sequence[TensorSpec], seed: int) -> list[Array]:
    """Standard normal floats, integers from -8 to 7 (0 to 15 unsigned), coin tosses: the same for the same seed."""
    if not isinstance(seed, int) or seed < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise plain_error(f"a seed is an integer from 0 on, got {seed!r}")
    needed = sum(8 * math.prod(static_shape(spec)) for spec in specs)  # drawn in float64
    if needed > _physical_memory():
        raise plain_error(f"random inputs take {needed} bytes and do not fit into this computer's memory")
    rng = np.random.default_rng(seed)
    return [_random(rng, static_shape(spec), spec.element) for spec in specs]


def _physical_memory() -> float:
    """Bytes of this computer's memory; infinite where the system does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return math.inf


def _random(rng: np.random.Generator, shape: tuple[int, ...], element: ElementType) -> Array:
    match element.kind:
        case "float":
            return rng.standard_normal(shape).astype(element.numpy)
        case "bool":
            return rng.integers(0, 2, shape).astype(element.numpy)
        case "int":
            low = 0 if np.issubdtype(element.numpy, np.unsignedinteger) else -8
            return rng.integers(low, low + 16, shape).astype(element.numpy)


def check_bound(specs: Sequence[TensorSpec]) -> None:
    """Raises SourceError that names every dimension without a size."""
    unbound = {d: spec.name for spec in reversed(specs) for d in reversed(spec.shape) if isinstance(d, str)}
    names = list(unbound)[::-1]
    if names:
        which = ", ".join(f"'{name}' of '{unbound[name]}'" for name in names)
        flags = " ".join(f"--dim {name}=512" for name in names)
        sizes = ", ".join(f'"{name}": 512' for name in names)
        what = "dimension {} is" if len(names) == 1 else "dimensions {} are"
        raise plain_error(f"{what.format(which)} not bound: give sizes, as in {flags} or dims={{{sizes}}}")


def static_shape(spec: TensorSpec) -> tuple[int, ...]:
    """The shape in numbers. Raises SourceError for an unbound dimension."""
    check_bound([spec])
    return tuple(d for d in spec.shape if isinstance(d, int))


def gather_inputs(
    module: Module, given: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | None, seed: int | None
) -> list[Array]:
    """One array for each input of the program, in order and in its type.

    Inputs that are not given are random where there is a seed. Raises SourceError for a wrong name, number, shape or
    type, and for a missing input.
    """
    specs = module.inputs
    named = _by_name(specs, given)
    unknown = [name for name in named if name not in {spec.name for spec in specs}]
    if unknown:
        close = difflib.get_close_matches(unknown[0], [spec.name for spec in specs], n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"inputs are {', '.join(map(str, specs)) or 'none'}"
        raise plain_error(f"the program has no input '{unknown[0]}'; {hint}")
    missing = [spec for spec in specs if spec.name not in named]
    if missing and seed is None:
        name = missing[0].name
        raise plain_error(
            f"no values for input {missing[0]}",
            f"give an array (--input {name}={name}.npy), or a seed for random values (--random 0, seed=0)",
        )
    drawn = random_inputs(specs, seed) if seed is not None else [None] * len(specs)
    return [
        check_array(named[spec.name], spec, "input") if spec.name in named else cast(Array, random)
        for spec, random in zip(specs, drawn, strict=True)
    ]


def _by_name(
    specs: Sequence[TensorSpec], given: Mapping[str, npt.ArrayLike] | Sequence[npt.ArrayLike] | None
) -> Mapping[str, npt.ArrayLike]:
    if given is None:
        return {}
    if isinstance(given, Mapping):
        return given
    if hasattr(given, "__array__") or hasattr(given, "__dlpack__") or not hasattr(given, "__len__"):
        kind = type(given).__name__
        raise plain_error(f"inputs are a list of arrays, or arrays by name ({{'x': …}}), not one '{kind}'")
    if len(given) != len(specs):
        raise plain_error(f"the program takes {len(specs)} inputs ({', '.join(map(str, specs))}), got {len(given)}")
    return {spec.name: value for spec, value in zip(specs, given, strict=True)}


def check_array(value: npt.ArrayLike, spec: TensorSpec, what: str) -> Array:
    """`value` as an array of the tensor's dtype. Raises SourceError unless shape and type agree.

    Two raw bytes per element (`V2`), as NumPy stores bfloat16 in files, are bf16. Python numbers and lists convert
    where no value changes but by rounding.
    """
    typed = hasattr(value, "__array__") or hasattr(value, "__dlpack__")
    array = as_array(value, f"{what} '{spec.name}'")
    if array.dtype == np.dtype("V2") and spec.element.name == "bf16":
        array = array.view(spec.element.numpy)
    shape = static_shape(spec)
    if array.shape != shape:
        raise plain_error(f"{what} '{spec.name}' has shape {list(array.shape)}, the program has {list(shape)}")
    if array.dtype != spec.element.numpy:
        if typed:
            raise plain_error(
                f"{what} '{spec.name}' has elements of '{array.dtype}', the program has {spec.element.name} "
                f"('{spec.element.numpy}'); convert with {_conversion(spec)}"
            )
        array = _converted(array, spec, what)
    return array


def _converted(array: Array, spec: TensorSpec, what: str) -> Array:
    """Python numbers in the tensor's type. Raises SourceError where another number would come out."""
    with np.errstate(all="ignore"):
        found = array.astype(spec.element.numpy)
    if spec.element.kind == "float":
        changed = np.isfinite(array) & ~np.isfinite(found.astype(np.float64))
    else:
        changed = found != array
    if changed.any():
        value = array[changed].flat[0]
        raise plain_error(f"{what} '{spec.name}' has {value}, which is no {spec.element.name}")
    return found


def _conversion(spec: TensorSpec) -> str:
    return "x.astype(ml_dtypes.bfloat16)" if spec.element.name == "bf16" else f"x.astype('{spec.element.numpy}')"


def expected_array(value: Array, spec: TensorSpec) -> Array:
    """A reference of the tensor's shape. Numbers of any precision will do: they are what the output is measured by."""
    kinds = {"float": "f", "int": "iuf", "bool": "b"}[spec.element.kind]
    if value.dtype.kind in kinds and value.dtype != spec.element.numpy:
        shape = static_shape(spec)
        if value.shape != shape:
            raise plain_error(
                f"expected output '{spec.name}' has shape {list(value.shape)}, the program has {list(shape)}"
            )
        return value
    return check_array(value, spec, "expected output")


def read_npy(path: Path) -> Array:
    """The array of a .npy file. Raises SourceError for anything else; nothing in it is executed."""
    try:
        found: object = np.load(path, allow_pickle=False)
    except FileNotFoundError:
        raise plain_error(f"no file '{path}'") from None
    except OSError as error:
        raise plain_error(f"cannot read '{path}': {error.strerror or error}") from None
    except MemoryError:
        raise plain_error(f"the array of '{path}' does not fit into memory") from None
    except Exception:
        # NumPy's reader raises whatever the bytes at hand lead it to; its words are about pickles and parsers.
        raise plain_error(f"'{path}' is not a .npy file of numbers, as numpy.save writes them") from None
    if not isinstance(found, np.ndarray):
        raise plain_error(f"'{path}' is an archive of arrays (.npz), not a .npy file")
    return cast(Array, found)


def npy_bytes(array: Array) -> bytes:
    """The content of a .npy file; bf16 becomes raw two-byte elements, which the format has no name for."""
    stream = io.BytesIO()
    stored = array if array.dtype.isbuiltin == 1 else array.view(f"V{array.dtype.itemsize}")
    np.save(stream, stored, allow_pickle=False)
    return stream.getvalue()
