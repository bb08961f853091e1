"""Converters from a mirror's file to the published file's format, by the name that an entry declares."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from nest._suggest import did_you_mean
from nest.errors import ManifestError
from nest.weights.ct2 import convert_whisper
from nest.weights.gguf import convert_llama
from nest.weights.gguf_tokenizer import convert_tokenizer, convert_tokenizer_config
from nest.weights.whisper_tokenizer import complete_tokenizer

__all__ = ["CONVERTERS", "Converter", "converter"]

Converter = Callable[[Path, Path], None]
"""Writes its second argument from its first, whole or not at all."""

CONVERTERS: Mapping[str, Converter] = {
    "ctranslate2-whisper": convert_whisper,
    "gguf-llama": convert_llama,
    "gguf-tokenizer": convert_tokenizer,
    "gguf-tokenizer-config": convert_tokenizer_config,
    "whisper-tokenizer": complete_tokenizer,
}


def converter(name: str) -> Converter:
    """The converter of that name.

    Raises:
        ManifestError: there is none.
    """
    if name not in CONVERTERS:
        raise ManifestError(
            f"'{name}' is no converter; there are: {', '.join(CONVERTERS)}.{did_you_mean(name, CONVERTERS)}"
        )
    return CONVERTERS[name]
