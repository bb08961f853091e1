"""A model as a folder that runs with ONNX Runtime and without nest. See `docs/guides/export-and-eject.md`."""

from nest.export.onnx.write import write_onnx

__all__ = ["write_onnx"]
