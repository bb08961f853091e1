"""Other libraries that do an entry's whole job, each at the fastest setting that its documentation names.

This package is run by the Python in which a peer is installed, and imports nothing else of nest's. What a peer needs
is imported when it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from nest.bench._loaded import Given
from nest.bench.peers import speech, text

__all__ = ["PEERS", "Peer"]

Task = Callable[[], Mapping[str, Any]]
"""The whole job once: `text`, `ids` or `vectors`."""


@dataclass(frozen=True)
class Peer:
    """One peer.

    Attributes:
        kind: of the job, as `nest.bench._work.Kind`.
        module: what is imported; a peer without it is not installed.
        packages: those whose versions are recorded.
        settings: in words, as they are shown beside its figures.
        load: makes it ready.
        weights: the form of weights that the user has to name with --peer-weights; empty if it reads the entry's own.
        devices: those that it can be told to compute on.
    """

    kind: str
    module: str
    packages: tuple[str, ...]
    settings: str
    load: Callable[[Given], Task]
    weights: str = ""
    devices: tuple[str, ...] = ("cpu", "cuda")


_CT2 = "a CTranslate2 folder"

PEERS: Mapping[str, Peer] = {
    "faster-whisper": Peer(
        "speech", "faster_whisper", ("faster-whisper", "ctranslate2"),
        "compute_type float32 on a processor, float16 on a GPU; beam_size 1; no VAD",
        speech.faster_whisper, _CT2,
    ),
    "faster-whisper-int8": Peer(
        "speech", "faster_whisper", ("faster-whisper", "ctranslate2"),
        "compute_type int8 on a processor, int8_float16 on a GPU; beam_size 1; no VAD",
        partial(speech.faster_whisper, int8=True), _CT2,
    ),
    "openai-whisper": Peer(
        "speech", "whisper", ("openai-whisper", "torch"),
        "f32 on a processor, fp16 on a GPU; greedy",
        speech.openai_whisper,
    ),
    "whisper.cpp": Peer(
        "speech", "pywhispercpp", ("pywhispercpp",),
        "pywhispercpp; greedy; the types of the file given",
        speech.whisper_cpp, "a ggml file", ("cpu",),
    ),
    "sentence-transformers": Peer(
        "text", "sentence_transformers", ("sentence-transformers", "torch"),
        "f32; backend torch; encode() sorts by length and runs batches of the size given",
        text.sentence_transformers,
    ),
    "llama.cpp": Peer(
        "decoder", "llama_cpp", ("llama-cpp-python",),
        "llama-cpp-python; greedy; every layer on the GPU if there is one; the types of the file given",
        text.llama_cpp, "a GGUF file",
    ),
}  # fmt: skip
"""By the name that --peers takes."""
