"""Multilingual Whisper with random weights: tiny widths, a published vocabulary; here and in the reference library.

Its tokens vary: a token is not its own likeliest successor, what is heard matters, times and the end come now and then.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import nest
from nest.loading import program_of
from nest.registry import find
from nest.tasks._settings import generation_rules, mel_settings
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcribe import Transcriber
from nest.verify.weights import lively_parameters

from .scripted import tokenizer_tables

FORMS = ("whisper-tiny", "whisper-large-v3")
"""99 languages and 80 mels; 100 and 128."""
SIZES = {"D": 24, "Heads": 3, "Inner": 40, "EncoderLayers": 2, "DecoderLayers": 2}
MAX_TOKENS = 20
HOP = 160
_RECORDING = 2_000_000
"""More samples than a recording has; eight of them are still counted exactly in f32."""

Array = NDArray[np.float32]


@cache
def rules(form: str) -> GenerationRules:
    return generation_rules(find(form))


@cache
def weights(form: str) -> dict[str, Any]:
    said = rules(form)
    made = lively_parameters(program_of(form, **SIZES), seed=3)
    for path in made:
        if path.endswith("encoder_attn.q_proj.weight"):
            made[path] = made[path] * 6
        if path.endswith("encoder_attn.out_proj.weight"):
            made[path] = made[path] * 4
    made["decoder_norm.weight"] *= np.random.default_rng(3).choice([-1, 1], SIZES["D"]).astype(np.float32)
    # The first number of what comes out is always 1, so that the first of a token's numbers adds to its logit.
    made["decoder_norm.weight"][0], made["decoder_norm.bias"][0] = 0, 1
    tokens = 2 * made["token_embedding"]
    tokens[:, 0] = 0
    tokens[said.end, 0] = 3
    tokens[said.first_timestamp :, 0] = -2
    made["token_embedding"] = tokens
    return made


@cache
def library(form: str) -> Any:
    """The reference library's model, with the generation settings that the publisher's checkpoint has."""
    from transformers import GenerationConfig
    from transformers.models.whisper.tokenization_whisper import LANGUAGES

    from nest.bench.whisper_parity import reference_model

    said = rules(form)
    model = reference_model(find(form), weights(form), SIZES)
    codes = list(LANGUAGES)[: len(said.languages)]
    make: Any = GenerationConfig
    model.generation_config = make(
        eos_token_id=said.end,
        pad_token_id=said.end,
        decoder_start_token_id=said.start,
        suppress_tokens=list(said.suppress),
        begin_suppress_tokens=list(said.begin_suppress),
        no_timestamps_token_id=said.no_timestamps,
        prev_sot_token_id=said.start_of_previous,
        is_multilingual=True,
        lang_to_id={f"<|{code}|>": said.start + 1 + number for number, code in enumerate(codes)},
        task_to_id={
            name: said.start + 1 + len(codes) + at for at, name in enumerate(("translate", "transcribe"))
        },
        max_initial_timestamp_index=50,
        max_new_tokens=MAX_TOKENS,
        max_length=None,
        return_timestamps=False,
    )
    return model


def tokenizer(form: str, folder: Path) -> Tokenizer:
    """Letters for every id of a text; the first ones spell any ASCII text, a byte a token."""
    said = rules(form)
    tables = tokenizer_tables()
    spelled = [
        letter
        for letter in tables["model"]["vocab"]
        if len(letter) == 1 and (letter < "\x7f" or letter == "Ġ")
    ]
    ids = {letter: token for token, letter in enumerate(spelled)}
    ids |= {f"{a}{b}{c}": 0 for a in "abcdefgh" for b in spelled for c in spelled}
    names = list(ids)[: said.end]
    tables["added_tokens"], tables["model"]["merges"] = [], []
    tables["model"]["vocab"] = {name: token for token, name in enumerate(names)}
    path = folder / f"{form}.json"
    path.write_text(json.dumps(tables), encoding="utf-8")
    return Tokenizer(path, end=said.end, first_timestamp=said.first_timestamp)


def transcriber(form: str, backend: str, folder: Path) -> Transcriber:
    model = nest.load(form, backend=backend, weights=weights(form), **SIZES)
    return Transcriber(model, tokenizer(form, folder), rules(form), mel_settings(find(form)))


@cache
def features(form: str, number: int, seconds: float) -> Array:
    """What is heard of a recording: [1, Mels, Frames], as loud everywhere."""
    shape = (1, mel_settings(find(form)).bins, round(seconds * 100))
    return np.random.default_rng(number).standard_normal(shape).astype(np.float32)


def recording(number: int, seconds: float) -> Array:
    """Samples that say which recording they are of, and where they stand in it."""
    return (number * _RECORDING + 1 + np.arange(round(seconds * 16000))).astype(np.float32)


class Heard:
    """In place of the spectrogram: each window is a part of its whole recording's, as the reference library cuts it."""

    def __init__(self, form: str, seconds: float) -> None:
        self.form, self.seconds = form, seconds

    def __call__(self, samples: Array, mel: MelSettings) -> Array:
        number, first = divmod(int(samples[0]) - 1, _RECORDING)
        assert first % HOP == 0
        first //= HOP
        part = features(self.form, number, self.seconds)[:, :, first : first + len(samples) // HOP]
        return np.pad(part, [(0, 0), (0, 0), (0, mel.samples // HOP - part.shape[-1])])
