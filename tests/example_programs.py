"""The example programs, in every element type."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import tilewright
from tilewright import Module, Program

FOLDER = Path(__file__).parent.parent / "examples"
ELEMENT_TYPES = ("f16", "bf16", "f32")
TARGETS = ("davinci", "unified")


@dataclass(frozen=True)
class Example:
    """A file of examples/ with its symbolic dimensions bound."""

    file: str
    dims: tuple[tuple[str, int], ...] = ()

    @property
    def path(self) -> Path:
        return FOLDER / self.file

    def text(self, element: str = "f16") -> str:
        """The program with another element type. The examples are written in f16."""
        return re.sub(r"(?<=[x<])f16\b", element, self.path.read_text())

    def load(self, element: str = "f16") -> Module:
        return tilewright.load(self.text(element), dict(self.dims))

    def __str__(self) -> str:
        return "-".join([self.file.removesuffix(".mlir"), *(str(size) for _, size in self.dims)])


EXAMPLES = (
    Example("unary_chain.mlir"),
    Example("residual_layernorm_gelu.mlir"),
    Example("softmax_rows.mlir"),
    Example("batched_matmul_bias_relu.mlir"),
    Example("mlp.mlir"),
    Example("conv_bias_relu.mlir"),
    Example("attention.mlir"),
    Example("attention_any.mlir", (("seq", 128),)),
    Example("attention_any.mlir", (("seq", 500),)),
    Example("split_heads_attention.mlir"),
    Example("gated_unit.mlir"),
)


@dataclass(frozen=True)
class Compiled:
    """An example, and what the default pipeline makes of it."""

    example: Example
    element: str = "f16"
    target: str = TARGETS[0]

    @cached_property
    def program(self) -> Program:
        return tilewright.compile(self.example.load(self.element), self.target)
