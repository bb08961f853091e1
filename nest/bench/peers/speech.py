"""Transcribers: samples in, text out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from nest.bench._loaded import Given

__all__ = [
    "Hear",
    "faster_whisper",
    "faster_whisper_hear",
    "openai_name",
    "openai_whisper",
    "openai_whisper_hear",
    "whisper_cpp",
]

Hear = Callable[[Any], str]
"""Samples, float32 at 16 kHz, in; what they say out."""


def faster_whisper(given: Given, *, int8: bool = False) -> Callable[[], Mapping[str, Any]]:
    """faster-whisper, one window after another."""
    compute = {"cpu": "float32", "cuda": "float16"}[given.device]
    if int8:
        compute = {"cpu": "int8", "cuda": "int8_float16"}[given.device]
    hear = faster_whisper_hear(given.weights, given.threads, compute=compute, device=given.device)
    return lambda: {"text": hear(given.task["samples"])}


def faster_whisper_hear(
    folder: str, threads: int, *, compute: str, device: str = "cpu", vad: bool = False, batch: int = 0
) -> Hear:
    """faster-whisper; in windows side by side if `batch` is not 0, which always detects voice.

    Args:
        folder: the model as CTranslate2 has it.
        compute: CTranslate2's `compute_type`.
    """
    import faster_whisper as library

    model: Any = library.WhisperModel(folder, device=device, compute_type=compute, cpu_threads=threads)
    options: dict[str, Any] = {"vad_filter": vad}
    if batch:
        model, options = library.BatchedInferencePipeline(model), {"batch_size": batch}

    def hear(samples: Any) -> str:
        segments, _ = model.transcribe(samples, language="en", beam_size=1, **options)
        return " ".join(segment.text.strip() for segment in segments)

    return hear


def openai_whisper(given: Given) -> Callable[[], Mapping[str, Any]]:
    """openai-whisper over the checkpoint that the Hub has."""
    file = str(Path(given.folder, "model.safetensors"))
    hear = openai_whisper_hear(file, given.threads, device=given.device)
    return lambda: {"text": hear(given.task["samples"])}


def openai_whisper_hear(weights: str, threads: int, *, device: str = "cpu") -> Hear:
    """openai-whisper, its model filled from the Hub's file."""
    import torch
    import whisper
    from safetensors.torch import load_file
    from whisper.model import ModelDimensions, Whisper

    if device == "cpu":
        torch.set_num_threads(threads)
    tensors = {openai_name(name): tensor.float() for name, tensor in load_file(weights).items()}
    vocabulary, width = tensors["decoder.token_embedding.weight"].shape
    layers = {
        part: len({name.split(".")[2] for name in tensors if name.startswith(f"{part}.blocks.")})
        for part in ("encoder", "decoder")
    }
    sizes = {
        f"n_{part}_{what}": value
        for part, side in (("audio", "encoder"), ("text", "decoder"))
        for what, value in (("state", width), ("head", width // 64), ("layer", layers[side]))
    }
    mels = tensors["encoder.conv1.weight"].shape[1]
    model = Whisper(
        ModelDimensions(n_mels=mels, n_audio_ctx=1500, n_vocab=vocabulary, n_text_ctx=448, **sizes)
    )
    # What the hub's file has twice, the tied head, is no parameter of its own here.
    model.load_state_dict({name: tensors[name] for name in model.state_dict()})
    model = model.to(device).eval()

    def hear(samples: Any) -> str:
        made: str = whisper.transcribe(model, samples, language="en", fp16=device == "cuda")["text"]
        return made.strip()

    return hear


def whisper_cpp(given: Given) -> Callable[[], Mapping[str, Any]]:
    """whisper.cpp by pywhispercpp."""
    from pywhispercpp.model import Model

    model = Model(
        given.weights, n_threads=given.threads, language="en", print_progress=False, print_realtime=False,
        redirect_whispercpp_logs_to=None,
    )  # fmt: skip
    return lambda: {
        "text": " ".join(segment.text.strip() for segment in model.transcribe(given.task["samples"]))
    }


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


def openai_name(name: str) -> str:
    """What openai-whisper calls a tensor of the hub's checkpoint."""
    for hub, openai in _OPENAI_PARTS:
        name = name.replace(hub, openai)
    return name
