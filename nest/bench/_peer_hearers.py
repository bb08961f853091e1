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

from nest.bench._hearing import Hear, serve

__all__ = ["PEERS"]


@dataclass(frozen=True)
class _Peer:
    """How one is loaded, from the two files and for a number of threads, and whose versions are told."""

    load: Callable[[str, str, int], Hear]
    packages: tuple[str, ...] = field(default=("faster-whisper", "ctranslate2"))


def _faster_whisper(folder: str, _: str, threads: int, *, compute: str, vad: bool = False) -> Hear:
    import faster_whisper

    model = faster_whisper.WhisperModel(folder, device="cpu", compute_type=compute, cpu_threads=threads)
    return partial(_joined, model, language="en", beam_size=1, vad_filter=vad)


def _faster_whisper_batched(folder: str, _: str, threads: int, *, compute: str) -> Hear:
    import faster_whisper

    model = faster_whisper.WhisperModel(folder, device="cpu", compute_type=compute, cpu_threads=threads)
    batched = faster_whisper.BatchedInferencePipeline(model)
    return partial(_joined, batched, language="en", beam_size=1, batch_size=8)


def _joined(model: Any, samples: Any, **options: Any) -> str:
    segments, _ = model.transcribe(samples, **options)
    return " ".join(segment.text.strip() for segment in segments)


def _openai_whisper(_: str, weights: str, threads: int) -> Hear:
    import torch
    import whisper
    from safetensors.torch import load_file
    from whisper.model import ModelDimensions, Whisper

    torch.set_num_threads(threads)
    tensors = {_openai_name(name): tensor.float() for name, tensor in load_file(weights).items()}
    vocabulary, width = tensors["decoder.token_embedding.weight"].shape
    layers = len({name.split(".")[2] for name in tensors if name.startswith("encoder.blocks.")})
    sizes = {
        f"n_{part}_{what}": value
        for part in ("audio", "text")
        for what, value in (("state", width), ("head", width // 64), ("layer", layers))
    }
    model = Whisper(ModelDimensions(n_mels=80, n_audio_ctx=1500, n_vocab=vocabulary, n_text_ctx=448, **sizes))
    # What the hub's file has twice, the tied head, is no parameter of its own here.
    model.load_state_dict({name: tensors[name] for name in model.state_dict()})
    model.eval()

    def hear(samples: Any) -> str:
        text: str = whisper.transcribe(model, samples, language="en", fp16=False)["text"]
        return text.strip()

    return hear


_OPENAI_PARTS = (
    ("model.", ""),
    ("layers.", "blocks."),
    ("embed_tokens.", "token_embedding."),
    ("embed_positions.weight", "positional_embedding"),
    ("self_attn_layer_norm.", "attn_ln."),
    ("encoder_attn_layer_norm.", "cross_attn_ln."),
    ("final_layer_norm.", "mlp_ln."),
    ("self_attn.", "attn."),
    ("encoder_attn.", "cross_attn."),
    ("q_proj.", "query."),
    ("k_proj.", "key."),
    ("v_proj.", "value."),
    ("out_proj.", "out."),
    ("fc1.", "mlp.0."),
    ("fc2.", "mlp.2."),
    ("encoder.layer_norm.", "encoder.ln_post."),
    ("decoder.layer_norm.", "decoder.ln."),
)


def _openai_name(name: str) -> str:
    """What openai-whisper calls a tensor of the hub's checkpoint."""
    for hub, openai in _OPENAI_PARTS:
        name = name.replace(hub, openai)
    return name


PEERS: dict[str, _Peer] = {
    "faster-whisper f32": _Peer(partial(_faster_whisper, compute="float32")),
    "faster-whisper f32, VAD": _Peer(partial(_faster_whisper, compute="float32", vad=True)),
    "faster-whisper f32, batched": _Peer(partial(_faster_whisper_batched, compute="float32")),
    "faster-whisper int8": _Peer(partial(_faster_whisper, compute="int8")),
    "faster-whisper int8, VAD": _Peer(partial(_faster_whisper, compute="int8", vad=True)),
    "faster-whisper int8, batched": _Peer(partial(_faster_whisper_batched, compute="int8")),
    "openai-whisper f32": _Peer(_openai_whisper, ("openai-whisper", "torch")),
}


if __name__ == "__main__":
    _name, _recordings, _threads, _folder, _weights = sys.argv[1:]
    _peer = PEERS[_name]
    serve(partial(_peer.load, _folder, _weights), _recordings, int(_threads), _peer.packages)
