"""Small ONNX models for tests, written in onnx's own text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx.parser
from onnx import numpy_helper


def write(path: Path, text: str, opset: int = 20, **weights: np.ndarray) -> Path:
    """A model of one graph, as `g (float[n, 4] x) => (float[n, 4] y) { y = Relu(x) }`; weights are initializers."""
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : {opset}]> {text}')
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array, name))
    onnx.save(model, path)
    return path
