"""The ONNX backend: a program's entries as ONNX graphs, run by ONNX Runtime. See `README.md` in this folder."""

from nest.backends.onnx.model import OnnxModel, build
from nest.backends.onnx.session import OnnxSession

__all__ = ["OnnxModel", "OnnxSession", "build"]
