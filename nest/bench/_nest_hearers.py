"""nest's part in `nest.bench.transcribe_cpu`: backends, plans and ways to hear.

python -m nest.bench._nest_hearers NAME RECORDINGS THREADS
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

import nest
from nest.bench._hearing import serve
from nest.bench.peers.speech import Hear

__all__ = ["OURS"]

_MODEL = "whisper-tiny.en"

OURS: dict[str, dict[str, Any]] = {
    "nest onnx, fast": {"backend": "onnx", "plan": "fast"},
    "nest onnx, fast, int8": {"backend": "onnx", "plan": "fast", "quantize": "int8"},
    "nest onnx, exact": {"backend": "onnx", "plan": "exact"},
    "nest onnx, fast, VAD": {"backend": "onnx", "plan": "fast", "vad": True},
    "nest onnx, fast, batched": {"backend": "onnx", "plan": "fast", "vad": True, "batch_size": 8},
    "nest torch, fast": {"backend": "torch", "plan": "fast"},
    "nest torch, exact": {"backend": "torch", "plan": "exact"},
}
"""By name: what computes, and what is asked of the transcriber."""


def load(name: str, threads: int) -> Hear:
    """A contender, by so many threads."""
    wishes = dict(OURS[name])
    backend, plan = wishes.pop("backend"), wishes.pop("plan")
    options: dict[str, Any] = {"threads": threads} if backend == "onnx" else {}
    options["quantize"] = wishes.pop("quantize", None)
    if backend == "torch":
        import torch

        torch.set_num_threads(threads)
    speech = nest.pipeline(_MODEL, backend=backend, plan=plan, local_files_only=True, **options)

    def hear(samples: Any) -> str:
        text: str = speech(samples, timestamps=True, **wishes).text
        return text

    return hear


if __name__ == "__main__":
    _name, _recordings, _threads = sys.argv[1:]
    _package = {"onnx": "onnxruntime", "torch": "torch"}[OURS[_name]["backend"]]
    serve(partial(load, _name), _recordings, int(_threads), (_package, "numpy"))
