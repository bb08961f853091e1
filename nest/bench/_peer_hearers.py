"""The peers of `nest.bench.transcribe_cpu`, run by a Python of their own, which need not have what nest depends on.

    python -m nest.bench._peer_hearers NAME RECORDINGS THREADS CTRANSLATE2 SAFETENSORS

CTRANSLATE2 is the folder that faster-whisper loads, SAFETENSORS the same weights as the hub names them, of which
openai-whisper's model is filled. Both decode greedily and fall back on higher temperatures, as nest does;
faster-whisper at what its documentation names as fast: `beam_size=1`, and `BatchedInferencePipeline`, which always
detects voice.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from nest.bench._hearing import serve
from nest.bench.peers.speech import Hear, faster_whisper_hear, openai_whisper_hear

__all__ = ["PEERS"]


@dataclass(frozen=True)
class _Peer:
    """How one is loaded, from the two files and for a number of threads, and whose versions are told."""

    load: Callable[[str, str, int], Hear]
    packages: tuple[str, ...] = field(default=("faster-whisper", "ctranslate2"))


def _faster_whisper(folder: str, _: str, threads: int, **options: Any) -> Hear:
    return faster_whisper_hear(folder, threads, **options)


def _openai_whisper(_: str, weights: str, threads: int) -> Hear:
    return openai_whisper_hear(weights, threads)


PEERS: dict[str, _Peer] = {
    "faster-whisper f32": _Peer(partial(_faster_whisper, compute="float32")),
    "faster-whisper f32, VAD": _Peer(partial(_faster_whisper, compute="float32", vad=True)),
    "faster-whisper f32, batched": _Peer(partial(_faster_whisper, compute="float32", batch=8)),
    "faster-whisper int8": _Peer(partial(_faster_whisper, compute="int8")),
    "faster-whisper int8, VAD": _Peer(partial(_faster_whisper, compute="int8", vad=True)),
    "faster-whisper int8, batched": _Peer(partial(_faster_whisper, compute="int8", batch=8)),
    "openai-whisper f32": _Peer(_openai_whisper, ("openai-whisper", "torch")),
}


if __name__ == "__main__":
    _name, _recordings, _threads, _folder, _weights = sys.argv[1:]
    _peer = PEERS[_name]
    serve(partial(_peer.load, _folder, _weights), _recordings, int(_threads), _peer.packages)
