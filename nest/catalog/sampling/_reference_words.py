"""openai-whisper's times of words, on the weights of an entry. It is no dependency: what calls this looks for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nest.registry import Entry

__all__ = ["words"]

Array = np.ndarray[Any, Any]

_NAMES = (
    ("encoder_layers.", "encoder.blocks."),
    ("decoder_layers.", "decoder.blocks."),
    ("token_embedding", "decoder.token_embedding.weight"),
    ("decoder_positions", "decoder.positional_embedding"),
    ("encoder_positions", "encoder.positional_embedding"),
    ("conv1_", "encoder.conv1."),
    ("conv2_", "encoder.conv2."),
    ("encoder_norm.", "encoder.ln_post."),
    ("decoder_norm.", "decoder.ln."),
    ("self_attn_layer_norm", "attn_ln"),
    ("encoder_attn_layer_norm", "cross_attn_ln"),
    ("final_layer_norm", "mlp_ln"),
    ("self_attn.", "attn."),
    ("encoder_attn.", "cross_attn."),
    ("q_proj", "query"),
    ("k_proj", "key"),
    ("v_proj", "value"),
    ("out_proj", "out"),
    ("mlp.fc1", "mlp.0"),
    ("mlp.fc2", "mlp.2"),
)
"""Of definition paths to the library's, in this order."""

_OPENING, _CLOSING = "\"'“¿([{-", "\"'.。,，!！?？:：”)]}、"
"""The marks that openai-whisper merges with words, which are arguments of its `transcribe`."""


def words(
    entry: Entry, params: Mapping[str, Array], tokens: Sequence[int], samples: Array
) -> list[dict[str, Any]]:
    """The words of `tokens`, said in `samples` (16000 a second, at most 30 s): text, start, end, probability."""
    import whisper
    from whisper.timing import find_alignment, merge_punctuations
    from whisper.tokenizer import get_tokenizer

    generation = entry.manifest.generation
    names = get_tokenizer(bool(generation and generation.languages), language="en", task="transcribe")
    mel = whisper.log_mel_spectrogram(whisper.pad_or_trim(samples), n_mels=int(entry.generics["Mels"]))
    found = find_alignment(_model(entry, params), names, list(tokens), mel, len(samples) // 160)
    merge_punctuations(found, _OPENING, _CLOSING)
    return [
        {
            "text": timing.word,
            "start": round(float(timing.start), 3),
            "end": round(float(timing.end), 3),
            "probability": round(float(timing.probability), 3),
        }
        for timing in found
        if timing.word
    ]


def _model(entry: Entry, params: Mapping[str, Array]) -> Any:
    import torch
    from whisper.model import ModelDimensions, Whisper

    size = {name: int(value) for name, value in entry.generics.items() if isinstance(value, int)}
    frames = (size["Frames"] + 1) // 2
    model = Whisper(
        ModelDimensions(
            size["Mels"], frames, size["D"], size["Heads"], size["EncoderLayers"],
            size["Vocab"], size["MaxTokens"], size["D"], size["Heads"], size["DecoderLayers"],
        )
    )  # fmt: skip
    model.load_state_dict({_renamed(path): torch.from_numpy(np.array(a)) for path, a in params.items()})
    heads = torch.zeros(size["DecoderLayers"], size["Heads"], dtype=torch.bool)
    for layer, head in entry.manifest.generation.alignment_heads if entry.manifest.generation else ():
        heads[layer, head] = True
    model.register_buffer("alignment_heads", heads.to_sparse(), persistent=False)
    return model.eval()


def _renamed(path: str) -> str:
    for ours, theirs in _NAMES:
        path = path.replace(ours, theirs)
    return path
