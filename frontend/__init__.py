"""Programs in other formats, read into the graph dialect. So far: ONNX (the extra `onnx`)."""
