"""When each word of a window was said, and how sure the model was of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from nest.errors import InputError, NestError
from nest.tasks._alignment import onsets, spans
from nest.tasks._word_groups import Group
from nest.tasks._word_groups import words as groups_of
from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer

__all__ = ["AlignedSession", "Word", "aligned_ids", "refuse_unaligned", "window_words"]

ROUND = 32
"""Tokens are padded to a multiple of so many: backends that compile for a shape then do so for few of them."""


@dataclass(frozen=True)
class Word:
    """A word as it stands in the text, with the space before it and the marks around it.

    Attributes:
        text: the words of a segment, joined, are the segment's text.
        start: in seconds from the recording's beginning. end: likewise, and later, without the pause at its marks.
        probability: the mean of those of its spoken tokens, where the model has to choose among text tokens.
    """

    text: str
    start: float
    end: float
    probability: float


class AlignedSession(Protocol):
    """What times of words need of a session that has listened to a window."""

    def align(self, tokens: NDArray[np.int32]) -> Any:
        """Attention of the alignment heads [Batch, Heads, S, Positions] for `tokens` [Batch, S]; caches stay."""

    def decode(self, tokens: NDArray[np.int32], audio: Any) -> Any:
        """Logits [Batch, S, Vocab] at every position of `tokens`, given the states that `listen` returned."""

    def numpy(self, x: Any) -> NDArray[np.float32]:
        """Return the tensor `x` as a float32 array."""


def refuse_unaligned(rules: GenerationRules) -> None:
    """Raise where the checkpoint does not say which of its heads follow the audio.

    Raises:
        InputError: it does not.
    """
    if not rules.alignment_heads:
        raise InputError(
            "This model cannot say when a word was spoken: its entry names no generation.alignment_heads, the heads "
            "whose attention follows the audio. Leave word_timestamps out, or take a model that has them, such as "
            "whisper-tiny.en."
        )


def window_words(
    session: AlignedSession,
    states: Any,
    prompt: Sequence[int],
    tokens: Sequence[int],
    tokenizer: Tokenizer,
    rules: GenerationRules,
    mel: MelSettings,
    *,
    start: float,
    end: float,
    language: str,
) -> tuple[Word, ...]:
    """The words of a window that `session` has listened to.

    Args:
        session: after `listen`. states: what that returned.
        prompt: ids that decoding started from. tokens: the text's ids, without the end.
        start: where the window begins in the recording, in seconds. end: where what is recorded of it ends.
        language: the code of the language that the text is written in.

    Raises:
        NestError: the attention is NaN or infinite.
    """
    groups = groups_of(tokenizer.pieces(tokens), language)
    if not any(group.text.strip() for group in groups):
        return ()
    padded = aligned_ids(prompt, tokens, rules)
    found = _onsets(session, padded, len(prompt) + len(tokens) + 1, len(prompt), mel, end - start)
    likely = _probabilities(session, states, padded, len(prompt), tokens, rules.end)
    places = _spoken(groups)
    times = spans(found[places], end - start) + start
    return tuple(
        Word(group.text, float(first), float(last), float(likely[slice(*place)].mean()))
        for group, place, (first, last) in zip(groups, places.tolist(), times, strict=True)
    )


def _spoken(groups: Sequence[Group]) -> NDArray[np.int64]:
    """The first token that is spoken of each word, and the one behind its last: [words, 2]."""
    places, at = [], 0
    for group in groups:
        places.append((at + group.before, at + group.tokens - group.after))
        at += group.tokens
    return np.array(places, dtype=np.int64)


def aligned_ids(prompt: Sequence[int], tokens: Sequence[int], rules: GenerationRules) -> NDArray[np.int32]:
    """Prompt, text and end as a row, with more end tokens behind, which no token before them sees: int32 [1, S]."""
    ids = np.array([[*prompt, *tokens, rules.end]], dtype=np.int32)
    size = min(-(-ids.shape[1] // ROUND) * ROUND, rules.positions)
    return np.pad(ids, [(0, 0), (0, max(size - ids.shape[1], 0))], constant_values=rules.end)


def _onsets(
    session: AlignedSession,
    padded: NDArray[np.int32],
    count: int,
    prompt: int,
    mel: MelSettings,
    length: float,
) -> NDArray[np.float64]:
    """Where each text token begins and the last one ends, in seconds, of a window with `length` recorded ones."""
    weights = session.numpy(session.align(padded))[0, :, :count]
    seconds = mel.window_seconds / weights.shape[-1]
    heard = max(int(np.ceil(length / seconds)), 1)
    if not np.isfinite(weights).all():
        raise NestError(
            "The attention that word times come from is NaN or infinite. Its weights are damaged, or the model was "
            "loaded in a precision that is too small for it; try dtype='f32'."
        )
    return np.asarray(onsets(weights[..., :heard], prompt) * seconds)


def _probabilities(
    session: AlignedSession,
    states: Any,
    padded: NDArray[np.int32],
    prompt: int,
    tokens: Sequence[int],
    vocabulary: int,
) -> NDArray[np.float64]:
    """Of each text token, among the text tokens: float64 [tokens]."""
    rows = session.numpy(session.decode(padded, states))[
        0, prompt - 1 : prompt - 1 + len(tokens), :vocabulary
    ]
    logits = rows.astype(np.float64)
    logits -= logits.max(axis=-1, keepdims=True)
    chosen = logits[np.arange(len(tokens)), list(tokens)]
    return np.asarray(np.exp(chosen - np.log(np.exp(logits).sum(axis=-1))))
