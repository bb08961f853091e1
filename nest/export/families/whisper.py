"""Whisper as the reference library configures it: config.json, generation_config.json, preprocessor_config.json."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from nest.registry.manifest import Generation, Preprocess

__all__ = ["config", "generation_config", "holds", "preprocessor_config"]

Json = dict[str, Any]


def config(generics: Mapping[str, Any], generation: Generation | None) -> Json:
    """The sizes of a model, and the ids that the library looks for there."""
    g = generics
    made: Json = {
        "architectures": ["WhisperForConditionalGeneration"],
        "model_type": "whisper",
        "is_encoder_decoder": True,
        "vocab_size": g["Vocab"],
        "num_mel_bins": g["Mels"],
        "d_model": g["D"],
        "encoder_layers": g["EncoderLayers"],
        "decoder_layers": g["DecoderLayers"],
        "num_hidden_layers": g["EncoderLayers"],
        "encoder_attention_heads": g["Heads"],
        "decoder_attention_heads": g["Heads"],
        "encoder_ffn_dim": g["Inner"],
        "decoder_ffn_dim": g["Inner"],
        "max_source_positions": (g["Frames"] - 1) // 2 + 1,
        "max_target_positions": g["MaxTokens"],
        "activation_function": "gelu",
        "scale_embedding": False,
        "tie_word_embeddings": True,
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "activation_dropout": 0.0,
    }
    return made | _ids(generation if holds(generation, g["Vocab"]) else None)


def holds(generation: Generation | None, vocabulary: int) -> TypeGuard[Generation]:
    """Whether a vocabulary of this size has the checkpoint's ids."""
    if generation is None:
        return False
    return max(generation.end_of_text, generation.first_timestamp or 0, *generation.suppress) < vocabulary


def generation_config(generics: Mapping[str, Any], generation: Generation) -> Json:
    """How the library's `generate` decodes."""
    made = {
        **_ids(generation),
        "max_length": generics["MaxTokens"],
        "suppress_tokens": list(generation.suppress),
        "begin_suppress_tokens": list(generation.begin_suppress),
        "no_timestamps_token_id": generation.no_timestamps,
        "prev_sot_token_id": generation.start_of_previous,
        "alignment_heads": [list(pair) for pair in generation.alignment_heads],
        "is_multilingual": bool(generation.languages),
        "max_initial_timestamp_index": 50,
        "return_timestamps": False,
    }
    if generation.languages:
        made["lang_to_id"] = {f"<|{code}|>": token for code, token in generation.languages.items()}
        made["task_to_id"] = {"transcribe": generation.transcribe, "translate": generation.translate}
    return {name: value for name, value in made.items() if value is not None}


def _ids(generation: Generation | None) -> Json:
    """Null where there are none: the library's own defaults would lie outside the vocabulary."""
    end = None if generation is None else generation.end_of_text
    made = {"bos_token_id": end, "eos_token_id": end, "pad_token_id": end}
    if generation is not None and generation.start_of_transcript is not None:
        made["decoder_start_token_id"] = generation.start_of_transcript
    return made


def preprocessor_config(preprocess: Preprocess) -> Json:
    """The library's feature extractor."""
    rate, seconds, hop = preprocess.rate or 16000, preprocess.window_seconds or 30.0, preprocess.hop or 160
    samples = round(rate * seconds)
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "processor_class": "WhisperProcessor",
        "feature_size": preprocess.mels,
        "sampling_rate": rate,
        "n_fft": preprocess.n_fft,
        "hop_length": hop,
        "chunk_length": int(seconds),
        "n_samples": samples,
        "nb_max_frames": samples // hop,
        "padding_side": "right",
        "padding_value": 0.0,
        "return_attention_mask": False,
    }
