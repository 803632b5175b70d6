"""`tilewright import`, and reading of ONNX models for the other commands."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from tilewright.ir.diagnostics import Diagnostic, render
from tilewright.ir.source import print_module
from tilewright.runtime.weights import weight_bytes

from .arrays import read_npy
from .cli_options import constants_option, parse_dims
from .cli_output import PATH
from .errors import plain_error
from .files import check_writable, write_atomically
from .module import Array, Module, load, load_onnx


@click.command("import", short_help="Turn an ONNX model into a program.")
@click.argument("file", type=PATH)
@click.option("--dim", "dims", multiple=True, metavar="NAME=SIZE", callback=parse_dims, help="Size of a dimension.")
@constants_option
@click.option("-o", "--output", type=PATH, required=True, help="File for the program; its weights go beside it.")
@click.option("--locations", is_flag=True, help="Write the name of its node behind every operation.")
def import_command(file: Path, dims: dict[str, int], constants: dict[str, Path], output: Path, locations: bool) -> None:
    """Turns the ONNX model in FILE into a program of the graph dialect.

    Its weights go into a safetensors file beside OUTPUT. Every node that cannot be imported is listed, with the reason
    and a way out; nothing is written then.
    """
    check_writable(output)
    if not is_onnx(file):
        raise plain_error(f"'{file}' is not called ….onnx: other formats are not imported")
    module = load_onnx(file, dims, read_constants(constants), weight_file_of(output))
    text = print_module(module.op, locations=locations)
    write_weights(module, output.parent)
    write_atomically(output, text)


def is_onnx(file: Path) -> bool:
    """Whether a file is an ONNX model, by its name."""
    return file.suffix == ".onnx"


def read_constants(files: Mapping[str, Path]) -> dict[str, Array]:
    """The arrays of .npy files."""
    return {name: read_npy(path) for name, path in files.items()}


def weight_file_of(output: Path) -> str:
    """The name of the weights that belong to a program in `output`."""
    return f"{output.stem}.safetensors"


def read_program(
    file: Path, dims: Mapping[str, int], constants: Mapping[str, Path], output: Path | None = None
) -> Module:
    """The program of a file; an ONNX model is imported, its weights named after `output`."""
    if is_onnx(file):
        return load_onnx(file, dims, read_constants(constants), weight_file_of(output or file))
    return load(file, dims, read_constants(constants))


def write_weights(module: Module, folder: Path) -> None:
    """Writes the weights that came with a program where the text will look for them."""
    by_file: dict[str, dict[str, Array]] = {}
    for (name, key), array in module.weights.items():
        by_file.setdefault(name, {})[key] = array
    for name, arrays in by_file.items():
        write_atomically(folder / name, weight_bytes(arrays))


def warn_about_weights(module: Module) -> None:
    """Says that a text on the standard output lacks its weights."""
    if module.weights:
        hint = "-o FILE writes them beside the program"
        click.echo(render([Diagnostic("warning", "the weights are not in the text", suggestion=hint)]), err=True)
