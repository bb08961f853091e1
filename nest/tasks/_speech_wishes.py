"""What may be asked of a transcriber beside the recording."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from math import isfinite
from typing import Any

from nest._suggest import aside
from nest.errors import CallError, InputError
from nest.tasks.languages import language_code
from nest.tasks.tokens import Tokenizer

__all__ = ["TEMPERATURES", "SpeechWishes", "speech_wishes"]

TEMPERATURES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


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

    @property
    def rows(self) -> int:
        """How many windows are decoded at a time, at most."""
        return self.batch_size or 1

    @property
    def temperatures(self) -> tuple[float, ...]:
        """Those that are tried one after another."""
        given = self.temperature
        return (float(given),) if isinstance(given, int | float) else tuple(float(t) for t in given)

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
    if isinstance(wishes.seed, bool) or not isinstance(wishes.seed, int) or wishes.seed < 0:
        raise InputError(f"seed={wishes.seed!r} is no seed; expected an integer from 0.")
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
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise InputError(
            f"batch_size={size!r} is no number of windows; expected an integer from 1, or None for one after another."
        )
    if wishes.rows > 1 and wishes.timestamps is False:
        raise InputError(
            f"batch_size={size} with timestamps=False: windows of a batch are decoded with times. Leave one out."
        )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
