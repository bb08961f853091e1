"""What may be asked of a transcriber beside the recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from nest._suggest import aside
from nest.errors import CallError, InputError
from nest.tasks.beams import MOST, Beams
from nest.tasks.languages import language_code
from nest.tasks.text import refuse_halves
from nest.tasks.tokens import Tokenizer

__all__ = ["TEMPERATURES", "SpeechWishes", "speech_wishes"]

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
_LARGEST = 1e30
"""Of numbers: what is computed of it is still an f32."""


@dataclass(frozen=True)
class SpeechWishes:
    """See `Transcriber.__call__` for what each means."""

    language: str | None = None
    task: str = "transcribe"
    max_tokens: int | None = None
    word_timestamps: bool = False
    timestamps: bool | None = None
    vad: bool = False
    batch_size: int | None = None
    initial_prompt: str | None = None
    condition_on_previous_text: bool = True
    temperature: float | Sequence[float] = TEMPERATURES
    compression_ratio_threshold: float | None = 2.4
    log_probability_threshold: float | None = -1.0
    no_speech_threshold: float | None = 0.6
    seed: int = 0
    beam_size: int | None = None
    patience: float | None = None
    length_penalty: float | None = None
    best_of: int | None = None

    @property
    def rows(self) -> int:
        """How many windows are decoded at a time, at most."""
        return self.batch_size or 1

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Those that are tried one after another."""
        given = self.temperature
        return (float(given),) if isinstance(given, int | float) else tuple(float(t) for t in given)

    @property
    def beams(self) -> Beams | None:
        """How is searched at temperature 0; None where each token is the most likely."""
        if self.beam_size is None:
            return None
        patience = 1.0 if self.patience is None else self.patience
        return Beams(self.beam_size, patience, self.length_penalty)

    def told_before(self, tokenizer: Tokenizer) -> list[int]:
        """The ids of the initial prompt, as what was said before the recording; none where there is none."""
        text = (self.initial_prompt or "").strip()
        return tokenizer.encode(f" {text}") if text else []


def speech_wishes(**given: Any) -> SpeechWishes:
    """Return the wishes, checked as far as they are the same for every model.

    Raises:
        InputError: one has another type or is out of range.
        CallError: there is no such wish.
    """
    _refuse_unknown(given)
    wishes = SpeechWishes(**given)
    if isinstance(wishes.language, str):
        wishes = replace(wishes, language=language_code(wishes.language))
    _check_temperature(wishes.temperature)
    _check_batch_size(wishes)
    for name in ("compression_ratio_threshold", "log_probability_threshold", "no_speech_threshold"):
        value = getattr(wishes, name)
        if value is not None and not _is_number(value):
            raise InputError(f"{name}={value!r} is no threshold; expected a number, or None for none.")
    if wishes.initial_prompt is not None and not isinstance(wishes.initial_prompt, str):
        raise InputError(f"initial_prompt={wishes.initial_prompt!r} is no text.")
    refuse_halves(wishes.initial_prompt or "", "initial_prompt")
    for name in ("word_timestamps", "timestamps", "vad", "condition_on_previous_text"):
        if not isinstance(value := getattr(wishes, name), bool | np.bool_ | None):
            raise InputError(f"{name}={value!r}: expected True or False.")
    if not _is_count(wishes.seed, least=0):
        raise InputError(f"seed={wishes.seed!r} is no seed; expected an integer from 0.")
    _check_search(wishes)
    return wishes


_OF_THE_RECORDING = ("rate", "start", "duration", "channels")
_ELSEWHERE = dict.fromkeys(("sampling_rate", "sample_rate", "samplerate", "sr"), "rate")
"""What other libraries call an option, where its spelling is far from ours."""


def _refuse_unknown(given: Iterable[str]) -> None:
    known = [*_OF_THE_RECORDING, *(field.name for field in fields(SpeechWishes))]
    for name in given:
        if name not in known:
            ours = _ELSEWHERE.get(name)
            hint = f" (here it is '{ours}')" if ours else aside(name, known)
            raise CallError(f"Transcribing takes no option '{name}'{hint}; it takes {', '.join(known)}.")


def _check_temperature(given: Any) -> None:
    several = (
        [given] if isinstance(given, int | float) else list(given) if isinstance(given, Sequence) else []
    )
    if not several or isinstance(given, str) or not all(_is_number(t) and t >= 0 for t in several):
        raise InputError(
            f"temperature={given!r}: expected a number from 0, or several that are tried one after another."
        )


def _check_batch_size(wishes: SpeechWishes) -> None:
    size = wishes.batch_size
    if size is not None and not _is_count(size, least=1):
        raise InputError(
            f"batch_size={size!r} is no number of windows; expected an integer from 1, or None for one after another."
        )
    if wishes.rows > 1 and wishes.timestamps is False:
        raise InputError(
            f"batch_size={size} with timestamps=False: windows of a batch are decoded with times. Leave one out."
        )


def _check_search(wishes: SpeechWishes) -> None:
    """Refuse what is out of range, and what would have no effect."""
    for name in ("beam_size", "best_of"):
        value = getattr(wishes, name)
        if value is not None and not (_is_count(value, least=1) and value <= MOST):
            raise InputError(f"{name}={value!r}: expected an integer from 1 to {MOST}, or None for none.")
    size, patience, penalty = wishes.beam_size, wishes.patience, wishes.length_penalty
    if patience is not None:
        if not _is_number(patience) or patience <= 0:
            raise InputError(f"patience={patience!r}: expected a number over 0; 1 if left out.")
        if size is None:
            raise InputError(f"patience={patience!r} is of a beam search: give beam_size as well, such as 5.")
        if not Beams(size, patience).enough:
            raise InputError(
                f"beam_size={size} with patience={patience} ends before any text has: their product must be "
                f"over 0.5."
            )
    if penalty is not None:
        if not _is_number(penalty) or not 0 <= penalty <= 1:
            raise InputError(
                f"length_penalty={penalty!r}: expected a number from 0 to 1, or None for the mean log-probability."
            )
        if size is None and wishes.best_of is None:
            raise InputError(
                f"length_penalty={penalty!r} ranks texts, and there is only one: give beam_size or best_of as well."
            )
    if size is not None and min(wishes.temperatures) > 0:
        raise InputError(
            f"beam_size={size} is for temperature 0, and temperature={wishes.temperature!r} has none: give "
            f"best_of, or begin with 0."
        )
    if wishes.best_of is not None and max(wishes.temperatures) == 0:
        raise InputError(
            f"best_of={wishes.best_of} is for temperatures over 0, and temperature={wishes.temperature!r} has none: "
            f"give beam_size, or a temperature over 0."
        )


def _is_count(value: Any, *, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LARGEST
