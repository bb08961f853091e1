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
from nest.tasks.decode import SpeechSession
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer

__all__ = [
    "Attempt",
    "best_attempt",
    "compression_ratio",
    "hears_nobody",
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
        text = tokenizer.decode(token for token in row.tokens if token < rules.end)
        ratio = compression_ratio(text)
        unlikely = _under(row.mean_log_probability, wishes.log_probability_threshold)
        if unlikely and speech is None:
            speech = _speaks(session, prompt, rules, wishes)
        attempt = Attempt(row.tokens, row.mean_log_probability, temperature, ratio, unlikely and not speech)
        repeats = (
            wishes.compression_ratio_threshold is not None and ratio > wishes.compression_ratio_threshold
        )
        if attempt.silent or not (repeats or unlikely):
            break
    return attempt


def compression_ratio(text: str) -> float:
    """How many times longer `text` is than its compressed form; 0 where there is none."""
    content = text.encode()
    return len(content) / len(zlib.compress(content)) if content else 0.0


def no_speech_probability(
    session: SpeechSession, prompt: Sequence[int], rules: GenerationRules
) -> float | None:
    """How likely it is that nobody speaks in the window that `session` has listened to, or None if it cannot tell.

    The self-attention caches are left for the next `prefill` to overwrite.
    """
    if rules.no_speech is None:
        return None
    padded, lengths = padded_prompt(prompt[: list(prompt).index(rules.start) + 1], rules)
    given = (padded,) if lengths is None else (padded, lengths)
    logits = session.numpy(session.prefill(*given))[0].astype(np.float64)
    weights = np.exp(logits - logits.max())
    return float(weights[rules.no_speech] / weights.sum())


def hears_nobody(
    session: SpeechSession,
    prompt: Sequence[int],
    rules: GenerationRules,
    wishes: SpeechWishes,
    mean_log_probability: float,
) -> bool:
    """Whether a text is to be left out: its tokens are unlikely, and the model hears no speech."""
    unlikely = _under(mean_log_probability, wishes.log_probability_threshold)
    return unlikely and not _speaks(session, prompt, rules, wishes)


def _speaks(
    session: SpeechSession, prompt: Sequence[int], rules: GenerationRules, wishes: SpeechWishes
) -> bool:
    if wishes.no_speech_threshold is None:
        return True
    silence = no_speech_probability(session, prompt, rules)
    return silence is None or silence <= wishes.no_speech_threshold


def _under(value: float, threshold: float | None) -> bool:
    return threshold is not None and value < threshold


def padded_prompt(
    prompt: Sequence[int], rules: GenerationRules
) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
    """The prompt as a row, its end padded; and its length where there is padding."""
    ids = np.array([prompt], np.int32)
    count = ids.shape[1]
    if count < 8:  # without a previous text: the same few tokens every time
        return ids, None
    size = max(min(-(-count // ROUND) * ROUND, rules.positions // 2), count)
    if size == count:
        return ids, None
    return np.pad(ids, [(0, 0), (0, size - count)], constant_values=rules.end), np.array([count], np.int32)
