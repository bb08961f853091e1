"""Greedy decoding over the cached entries of a session."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nest.errors import NestError
from nest.tasks.rules import GenerationRules, bias, first_bias, token_budget

__all__ = ["SpeechSession", "greedy", "language_probabilities"]


class SpeechSession(Protocol):
    """The entries of an encoder-decoder speech model, over the state of one session of `Batch` rows.

    Arguments are numpy arrays, results the backend's own tensors.
    """

    def listen(self, mel: NDArray[np.float32]) -> Any:
        """Encode `mel` [Batch, Mels, Frames] and fill the cross-attention caches from it."""

    def prefill(self, tokens: NDArray[np.int32]) -> Any:
        """Fill the self-attention caches from `tokens` [Batch, S]; return the last logits [Batch, Vocab]."""

    def step(self, token: NDArray[np.int32], pos: NDArray[np.int32]) -> Any:
        """Put `token` [Batch, 1] at `pos` [Batch]; return the logits [Batch, Vocab] after it."""

    def numpy(self, x: Any) -> NDArray[np.float32]:
        """Return the tensor `x` as a float32 array."""


def greedy(
    session: SpeechSession,
    prompt: NDArray[np.int32],
    rules: GenerationRules,
    *,
    max_tokens: int | None = None,
) -> list[tuple[int, ...]]:
    """Return the most likely text tokens, one after another, of each row that `session` has listened to.

    Args:
        session: after `listen`.
        prompt: int32 [Batch, S], rows of equal length.
        rules: what is suppressed, where a row ends, how long it may get.
        max_tokens: at most so many tokens a row, `rules.max_tokens` if left out.

    Returns:
        The tokens of each row, without prompt and `<|endoftext|>`.

    Raises:
        InputError: no room for a token.
        NestError: the model returned NaN or infinite logits.
    """
    rows, start = prompt.shape
    budget = token_budget(rules, start, max_tokens)
    logits = session.numpy(session.prefill(prompt))
    chosen = choose(logits, first_bias(rules, logits.shape[-1]))
    always = bias(rules, logits.shape[-1])
    running = chosen != rules.end
    columns = [chosen]
    while running.any() and len(columns) < budget:
        # Rows that have ended go on with the end token, and are cut below.
        pos = np.full(rows, start + len(columns) - 1, dtype=np.int32)
        logits = session.numpy(session.step(chosen[:, None], pos))
        chosen = np.where(running, choose(logits, always), np.int32(rules.end)).astype(np.int32)
        running &= chosen != rules.end
        columns.append(chosen)
    return [_until(row, rules.end) for row in np.stack(columns, axis=1)]


def choose(logits: NDArray[np.float32], exclusion: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the most likely token of each row: logits [Batch, Vocab] + exclusion [Vocab] -> int32 [Batch].

    Raises:
        NestError: the best logit of a row is NaN or infinite.
    """
    scores = logits + exclusion
    chosen: NDArray[np.int32] = scores.argmax(axis=-1).astype(np.int32)
    best = np.take_along_axis(scores, chosen[:, None], axis=-1)
    if not np.isfinite(best).all():
        raise NestError(
            f"The model's best logit is {float(best[~np.isfinite(best)][0])}, so no token can be chosen. "
            "Its weights are damaged, or the number type overflows: try dtype='f32'."
        )
    return chosen


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


def _until(row: NDArray[np.int32], end: int) -> tuple[int, ...]:
    ended = np.flatnonzero(row == end)
    return tuple(row[: ended[0]].tolist() if len(ended) else row.tolist())
