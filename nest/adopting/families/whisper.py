"""Whisper and its fine-tunes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._text import added_tokens, tokenizer_table
from nest.adopting.family import Family, Form, Refused, Tables
from nest.adopting.keys import Key, Only, Size, Values, shown
from nest.adopting.repository import Repository

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **idle(
        "encoder_layerdrop", "decoder_layerdrop", "dropout", "attention_dropout", "activation_dropout", "init_std",
        "use_weighted_layer_sum", "classifier_proj_size", "apply_spec_augment", "mask_time_prob", "mask_time_length",
        "mask_time_min_masks", "mask_feature_prob", "mask_feature_length", "mask_feature_min_masks",
        "median_filter_width",
    ),
    "is_encoder_decoder": Only(True),
    "vocab_size": Size(51865),
    "num_mel_bins": Size(80),
    "d_model": Size(384),
    "encoder_layers": Size(4),
    "decoder_layers": Size(4),
    "encoder_attention_heads": Size(6),
    "decoder_attention_heads": Size(6),
    "encoder_ffn_dim": Size(1536),
    "decoder_ffn_dim": Size(1536),
    "max_source_positions": Size(1500),
    "max_target_positions": Size(448),
    "activation_function": Only("gelu"),
    "scale_embedding": Only(False),
    "tie_word_embeddings": Only(True),
    "hidden_size": Size(None),
    "num_hidden_layers": Size(None),
    "num_attention_heads": Size(None),
    "num_key_value_heads": Size(None),
}  # fmt: skip
_ALIASES = {
    "hidden_size": "d_model",
    "num_hidden_layers": "encoder_layers",
    "num_attention_heads": "encoder_attention_heads",
    "num_key_value_heads": "encoder_attention_heads",
}
_PAIRS = (("encoder_attention_heads", "decoder_attention_heads"), ("encoder_ffn_dim", "decoder_ffn_dim"))


def _generics(values: Values) -> dict[str, Any]:
    for alias, name in _ALIASES.items():
        # A second name of the same fact, which would take the place of the first.
        if alias in values.given and values[alias] != values[name]:
            raise Refused(
                f"'{alias}' is {shown(values[alias])}, and '{name}', which means the same, is {values[name]}"
            )
    for one, other in _PAIRS:
        if values[one] != values[other]:
            raise Refused(
                f"'{other}' is {values[other]}, and '{one}' is {values[one]}: the definition has one size for both"
            )
    return {
        "Mels": values["num_mel_bins"],
        "Frames": 2 * values["max_source_positions"],
        "D": values["d_model"],
        "Heads": values["encoder_attention_heads"],
        "Inner": values["encoder_ffn_dim"],
        "EncoderLayers": values["encoder_layers"],
        "DecoderLayers": values["decoder_layers"],
        "Vocab": values["vocab_size"],
        "MaxTokens": values["max_target_positions"],
    }


def _tables(repository: Repository, values: Values) -> Tables:
    tables = tokenizer_table(repository)
    tokens = added_tokens(repository)
    generation = _generation(repository, values, tokens)
    preprocess = _preprocess(repository, values)
    if not (tables and generation and preprocess):
        return {}
    return {"task": {"kind": "transcription"}, **tables, "preprocess": preprocess, "generation": generation}


def _generation(repository: Repository, values: Values, tokens: Mapping[str, int]) -> dict[str, Any]:
    """Ids of the control tokens, which `tokenizer.json` names, and what `generation_config.json` adds."""
    wanted = {
        "end_of_text": "<|endoftext|>",
        "start_of_transcript": "<|startoftranscript|>",
        "start_of_previous": "<|startofprev|>",
        "transcribe": "<|transcribe|>",
        "translate": "<|translate|>",
        "no_timestamps": "<|notimestamps|>",
    }
    table = {key: tokens[text] for key, text in wanted.items() if text in tokens}
    if not {"end_of_text", "start_of_transcript", "no_timestamps"} <= table.keys():
        return {}
    for text in ("<|nospeech|>", "<|nocaptions|>"):
        if text in tokens:
            table["no_speech"] = tokens[text]
    given = repository.json("generation_config.json") or {}
    languages = {
        found[1]: id for text, id in tokens.items() if (found := re.fullmatch(r"<\|([a-z]{2,3})\|>", text))
    }
    several = values["vocab_size"] != _ENGLISH and "en" in languages
    start, plain = table["start_of_transcript"], table["no_timestamps"]
    more: dict[str, Any] = {"first_timestamp": tokens.get("<|0.00|>", plain + 1)}
    more["prompt"] = [start, plain]
    if several and "transcribe" in table:
        said = str(given.get("language") or "en").strip("<|>")
        task = "translate" if given.get("task") == "translate" and "translate" in table else "transcribe"
        more["prompt"] = [start, languages.get(said, languages["en"]), table[task], plain]
        more["languages"] = languages
    elif not several:
        table = {key: id for key, id in table.items() if key not in ("transcribe", "translate")}
    more |= {"max_tokens": max(1, values["max_target_positions"] // 2)}
    for key, name in (("suppress", "suppress_tokens"), ("begin_suppress", "begin_suppress_tokens")):
        if found := given.get(name, values.given.get(name)):
            more[key] = [token for token in found if type(token) is int and 0 <= token < values["vocab_size"]]
    if heads := given.get("alignment_heads"):
        more["alignment_heads"] = heads
    return {**table, **more}


_ENGLISH = 51864
"""The vocabulary of the models for English alone, which have the tokens of other languages and were not taught them."""


def _preprocess(repository: Repository, values: Values) -> dict[str, Any]:
    """How a recording becomes a spectrogram.

    Raises:
        Refused: as the published models do not do it.
    """
    given = repository.json("preprocessor_config.json")
    if given is None:
        given = {}
    table = {
        "mels": given.get("feature_size", values["num_mel_bins"]),
        "rate": given.get("sampling_rate", 16000),
        "n_fft": given.get("n_fft", 400),
        "hop": given.get("hop_length", 160),
        "window_seconds": float(given.get("chunk_length", 30)),
    }
    if table["mels"] != values["num_mel_bins"]:
        raise Refused(
            f"'feature_size' of preprocessor_config.json is {shown(table['mels'])}, and 'num_mel_bins' of config.json "
            f"is {values['num_mel_bins']}"
        )
    frames = table["window_seconds"] * table["rate"] / table["hop"]
    return table if frames == 2 * values["max_source_positions"] else {}


FAMILIES = (
    Family(
        model_type="whisper",
        forms={"WhisperForConditionalGeneration": Form("whisper-tiny")},
        keys=_KEYS,
        generics=_generics,
        tables=_tables,
    ),
)
