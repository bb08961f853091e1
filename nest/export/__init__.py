"""Models as files, for nest and for programs that know nothing of it: checkpoints, ONNX, StableHLO, source."""

from nest.export.saving import FORMATS, save
from nest.export.source import eject

__all__ = ["FORMATS", "eject", "save"]
