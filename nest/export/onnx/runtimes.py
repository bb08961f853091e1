"""The oldest ONNX Runtime that runs the graphs of each operator set on the CPU.

Found by transcribing a recording with exports of whisper-tiny.en, in one call and step by step, on releases from
1.15, the first for Python 3.11, to 1.32. A release may list an operator set and lack kernels of it, as 1.24 does of 24.
"""

from __future__ import annotations

__all__ = ["OLDEST"]

OLDEST = {17: "1.15", 18: "1.15", 19: "1.16", 20: "1.17", 21: "1.18", 22: "1.21", 23: "1.23", 24: "1.25"}
