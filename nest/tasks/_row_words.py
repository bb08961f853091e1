"""Words with times for windows that are rows of one session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.tasks._window_words import WindowWords
from nest.tasks.rules import prompt_ids
from nest.tasks.transcript import Segment
from nest.tasks.words import aligned_ids

__all__ = ["words_of_rows"]


class _Row:
    """A row of a session as a session of its own, for `nest.tasks.words`: its attention is known already."""

    def __init__(self, session: Any, attention: NDArray[np.float32]) -> None:
        self._session = session
        self._attention = attention

    def align(self, tokens: NDArray[np.int32]) -> NDArray[np.float32]:
        """What stands behind a token has no part in its attention."""
        return self._attention[None, :, : tokens.shape[1]]

    def decode(self, tokens: NDArray[np.int32], audio: Any) -> Any:
        return self._session.decode(tokens, audio)

    def numpy(self, x: Any) -> NDArray[np.float32]:
        found: NDArray[np.float32] = x if isinstance(x, np.ndarray) else self._session.numpy(x)
        return found


def words_of_rows(
    words: WindowWords,
    said: Sequence[Sequence[Segment]],
    session: Any,
    states: Any,
    size: int,
    spans: Sequence[tuple[float, float]],
    language: str,
) -> list[list[Segment]]:
    """The segments of each window with their words.

    Args:
        said: the segments of each window.
        session: of `size` rows, after `listen`; the first rows are the windows. states: what that returned.
        spans: where each window begins and ends in the recording, in seconds.
    """
    prompt = prompt_ids(words.rules, language, words.task)
    texts = [[token for segment in segments for token in segment.tokens] for segments in said]
    if not any(texts):
        return [list(segments) for segments in said]
    longest = aligned_ids(prompt, max(texts, key=len), words.rules).shape[1]
    ids = np.full((size, longest), words.rules.end, np.int32)
    for row, text in enumerate(texts):
        own = aligned_ids(prompt, text, words.rules)
        ids[row, : own.shape[1]] = own
    attention = session.numpy(session.align(ids))
    return [
        words.given_to(segments, _Row(session, attention[row]), states[row : row + 1], *span, language)
        for row, (segments, span) in enumerate(zip(said, spans, strict=True))
    ]
