"""Decoding over the cached entries of a session: a whole window in one call, or step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError
from nest.tasks._rows import Settings, stepwise, whole
from nest.tasks.rules import GenerationRules, token_budget
from nest.tasks.sampling import Seed, uniforms

__all__ = ["Decoded", "SpeechSession", "decode", "greedy", "language_probabilities"]


class SpeechSession(Protocol):
    """The entries of an encoder-decoder speech model, over the state of one session of `Batch` rows.

    Arguments are numpy arrays, results the backend's own tensors. A session may have more: where `whole_decodes` is
    true, the loops of `nest.loops` as entries, and `constant` for their arguments.
    """

    def listen(self, mel: NDArray[np.float32]) -> Any:
        """Encode `mel` [Batch, Mels, Frames] and fill the cross-attention caches from it."""

    def prefill(self, tokens: NDArray[np.int32]) -> Any:
        """Fill the self-attention caches from `tokens` [Batch, S]; return the last logits [Batch, Vocab]."""

    def step(self, token: NDArray[np.int32], pos: NDArray[np.int32]) -> Any:
        """Put `token` [Batch, 1] at `pos` [Batch]; return the logits [Batch, Vocab] after it."""

    def numpy(self, x: Any) -> NDArray[np.float32]:
        """Return the tensor `x` as a float32 array."""


@dataclass(frozen=True)
class Decoded:
    """What one row said.

    Attributes:
        tokens: without prompt and `<|endoftext|>`; with times where they were asked for.
        log_probability: the sum over the tokens, and over the end where it was reached, under the model's
            distribution without what the rules exclude; the temperature has no part in it.
    """

    tokens: tuple[int, ...]
    log_probability: float

    @property
    def mean_log_probability(self) -> float:
        """Over the tokens and the end."""
        return self.log_probability / (len(self.tokens) + 1)


def greedy(
    session: SpeechSession,
    prompt: NDArray[np.int32],
    rules: GenerationRules,
    *,
    max_tokens: int | None = None,
) -> list[tuple[int, ...]]:
    """Return the most likely text tokens, one after another, of each row: see `decode`."""
    return [row.tokens for row in decode(session, prompt, rules, max_tokens=max_tokens)]


def decode(
    session: SpeechSession,
    prompt: NDArray[np.int32],
    rules: GenerationRules,
    *,
    lengths: NDArray[np.int32] | None = None,
    temperature: float | Sequence[float] = 0.0,
    most: int = 0,
    mass: float = 1.0,
    seed: int | Sequence[Seed] = 0,
    max_tokens: int | None = None,
    timed: bool = False,
) -> list[Decoded]:
    """Return what each row that `session` has listened to says: its likeliest tokens, or tokens that are drawn.

    A session that offers whole decodes is called once, where it has the loop for it; otherwise tokens go to the host
    and back, one by one, with the same result.

    Args:
        session: after `listen`.
        prompt: int32 [Batch, S], packed to the left.
        rules: what is suppressed, where a row ends, how long it may get.
        lengths: int32 [Batch], of each row's prompt; all of S if left out.
        temperature: of all rows or of each; 0 takes the most likely token.
        most: draw from so many most likely tokens; 0 for all.
        mass: draw from the most likely tokens that together have this probability.
        seed: of all rows, or one for each; the same tokens every time, and nearly the same on every backend.
        max_tokens: at most so many tokens a row, `rules.max_tokens` if left out.
        timed: whether times are among the tokens; see `nest.tasks.timestamps`.

    Raises:
        InputError: no room for a token; settings out of range.
        NestError: the model returned NaN or infinite logits.
    """
    rows, start = prompt.shape
    steps = token_budget(rules, start, max_tokens)
    ends = np.full(rows, start, np.int32) if lengths is None else np.asarray(lengths, np.int32)
    heat = np.broadcast_to(np.asarray(temperature, np.float32), (rows,))
    _check(heat, most, mass)
    chance = uniforms(seed, steps, rows) if heat.any() else np.zeros((steps, rows), np.float32)
    entry = ("sample_top" if most or mass < 1 else "sample") if heat.any() else "greedy"
    call = Settings(f"{entry}_timed" if timed else entry, prompt, ends, chance, heat, most, mass, timed)
    if getattr(session, "whole_decodes", False) and hasattr(session, call.entry):
        found = whole(session, call, rules)
    else:
        found = stepwise(session, call, rules)
    return [Decoded(tokens, score) for tokens, score in found]


def _check(heat: NDArray[np.float32], most: int, mass: float) -> None:
    if not (np.isfinite(heat).all() and (heat >= 0).all()):
        raise InputError(f"temperature={heat.tolist()}: expected numbers from 0.")
    if most < 0 or not 0 < mass <= 1:
        raise InputError(
            f"most={most}, mass={mass}: expected a count from 0, and a probability over 0 and up to 1."
        )


def language_probabilities(
    session: SpeechSession, rules: GenerationRules, rows: int = 1
) -> list[dict[str, float]]:
    """Return how likely each language is, for each row that `session` has listened to.

    The probabilities of a row are over the checkpoint's languages, most likely first, and sum to 1. The
    self-attention caches are left for the next `prefill` to overwrite.
    """
    start = np.full((rows, 1), rules.start, dtype=np.int32)
    logits = session.numpy(session.prefill(start)).astype(np.float64)
    scores = logits[:, list(rules.languages.values())]
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    likely = weights / weights.sum(axis=-1, keepdims=True)
    return [
        dict(sorted(zip(rules.languages, row.tolist(), strict=True), key=lambda pair: -pair[1]))
        for row in likely
    ]
