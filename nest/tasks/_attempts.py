"""Decode a window with times, again at higher temperatures where the text is not believed."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nest.tasks._branches import Branches
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._temperatures import texts_at
from nest.tasks.decode import Decoded, SpeechSession
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer

__all__ = [
    "Attempt",
    "attempt_of",
    "best_attempt",
    "compression_ratio",
    "hears_nobody",
    "is_believed",
    "is_unlikely",
    "no_speech_probabilities",
    "no_speech_probability",
    "padded_prompt",
]

ROUND = 32
"""Prompts are padded to a multiple of so many tokens: backends that compile for a shape then do so for few of them."""


@dataclass(frozen=True)
class Attempt:
    """What a window says, with times, and what speaks for it; `silent` where nobody is heard to speak."""

    tokens: tuple[int, ...]
    mean_log_probability: float
    temperature: float
    compression_ratio: float
    silent: bool


def best_attempt(
    session: SpeechSession,
    branches: Branches,
    prompt: Sequence[int],
    rules: GenerationRules,
    tokenizer: Tokenizer,
    wishes: SpeechWishes,
    seed: int,
) -> Attempt:
    """The first attempt that is believed, or the last one.

    An attempt is not believed whose text compresses too well, as repetition does, or whose tokens are too unlikely.
    Where they are unlikely and the model hears no speech, there is none.

    Args:
        session: after `listen`.
        branches: see `texts_at`.
        prompt: ids, for decoding with times.
        seed: of what is drawn at temperatures over 0.
    """
    padded, lengths = padded_prompt(prompt, rules)
    speech: bool | None = None
    for number, temperature in enumerate(wishes.temperatures):
        (row,) = texts_at(
            temperature,
            session,
            branches,
            padded,
            rules,
            wishes,
            lengths=lengths,
            seeds=[seed * len(wishes.temperatures) + number],
            timed=True,
        )
        if speech is None and is_unlikely(row.mean_log_probability, wishes):
            speech = _speaks(session, prompt, rules, wishes)
        attempt = attempt_of(row, temperature, speech is not False, rules, tokenizer, wishes)
        if is_believed(attempt, wishes):
            break
    return attempt


def attempt_of(
    row: Decoded,
    temperature: float,
    speech: bool,
    rules: GenerationRules,
    tokenizer: Tokenizer,
    wishes: SpeechWishes,
) -> Attempt:
    """What was decoded, and what speaks for it; `speech` is whether the model hears any, as far as that was asked."""
    text = tokenizer.decode(token for token in row.tokens if token < rules.end)
    mean = row.mean_log_probability
    silent = is_unlikely(mean, wishes) and not speech
    return Attempt(row.tokens, mean, temperature, compression_ratio(text), silent)


def is_believed(attempt: Attempt, wishes: SpeechWishes) -> bool:
    """Whether an attempt is the last one: nobody speaks, or its text neither repeats itself nor is unlikely."""
    most = wishes.compression_ratio_threshold
    repeats = most is not None and attempt.compression_ratio > most
    return attempt.silent or not (repeats or is_unlikely(attempt.mean_log_probability, wishes))


def is_unlikely(mean_log_probability: float, wishes: SpeechWishes) -> bool:
    """Whether tokens are under the threshold."""
    least = wishes.log_probability_threshold
    return least is not None and mean_log_probability < least


def compression_ratio(text: str) -> float:
    """How many times longer `text` is than its compressed form; 0 where there is none."""
    content = text.encode()
    return len(content) / len(zlib.compress(content)) if content else 0.0


def no_speech_probability(
    session: SpeechSession, prompt: Sequence[int], rules: GenerationRules
) -> float | None:
    """How likely it is that nobody speaks in the window that `session` has listened to, or None if it cannot tell."""
    silence = no_speech_probabilities(session, prompt, rules)
    return None if silence is None else float(silence[0])


def no_speech_probabilities(
    session: SpeechSession, prompt: Sequence[int], rules: GenerationRules, rows: int = 1
) -> NDArray[np.float64] | None:
    """The same for each row of a session, float64 [rows].

    The self-attention caches are left for the next `prefill` to overwrite.
    """
    if rules.no_speech is None:
        return None
    padded, lengths = padded_prompt(prompt[: list(prompt).index(rules.start) + 1], rules, rows)
    given = (padded,) if lengths is None else (padded, lengths)
    logits = session.numpy(session.prefill(*given)).astype(np.float64)
    weights = np.exp(logits - logits.max(axis=-1, keepdims=True))
    likely: NDArray[np.float64] = weights[:, rules.no_speech] / weights.sum(axis=-1)
    return likely


def hears_nobody(
    session: SpeechSession,
    prompt: Sequence[int],
    rules: GenerationRules,
    wishes: SpeechWishes,
    mean_log_probability: float,
) -> bool:
    """Whether a text is to be left out: its tokens are unlikely, and the model hears no speech."""
    return is_unlikely(mean_log_probability, wishes) and not _speaks(session, prompt, rules, wishes)


def _speaks(
    session: SpeechSession, prompt: Sequence[int], rules: GenerationRules, wishes: SpeechWishes
) -> bool:
    if wishes.no_speech_threshold is None:
        return True
    silence = no_speech_probability(session, prompt, rules)
    return silence is None or silence <= wishes.no_speech_threshold


def padded_prompt(
    prompt: Sequence[int], rules: GenerationRules, rows: int = 1
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """The prompt as so many rows, their ends padded; and their lengths where there is padding."""
    ids = np.array([prompt] * rows, np.int32)
    count = ids.shape[1]
    if count < 8:  # without a previous text: the same few tokens every time
        return ids, None
    size = max(min(-(-count // ROUND) * ROUND, rules.positions // 2), count)
    if size == count:
        return ids, None
    return np.pad(ids, [(0, 0), (0, size - count)], constant_values=rules.end), np.full(rows, count, np.int32)
