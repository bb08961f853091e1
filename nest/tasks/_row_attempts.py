"""Decode windows with times as rows of one session, those again at higher temperatures whose text is not believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nest.tasks._attempts import (
    Attempt,
    attempt_of,
    is_believed,
    is_unlikely,
    no_speech_probabilities,
    padded_prompt,
)
from nest.tasks._branches import Branches
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._temperatures import texts_at
from nest.tasks.decode import Decoded
from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer

__all__ = ["RowAttempts", "filled", "rows_for"]


def rows_for(count: int, most: int) -> int:
    """How many rows a session has for `count` windows: a power of two, or `most`, so that few shapes are compiled."""
    return min(1 << (count - 1).bit_length(), most)


def filled(rows: Sequence[int], size: int) -> list[int]:
    """`rows`, the first of them repeated until there are `size`."""
    return [*rows, *[rows[0]] * (size - len(rows))]


class RowAttempts:
    """What a model says in each window of a batch, and what speaks for it.

    Args:
        prompt: ids, for decoding with times: of every row.
        branches: see `texts_at`.
    """

    def __init__(
        self,
        prompt: Sequence[int],
        rules: GenerationRules,
        tokenizer: Tokenizer,
        wishes: SpeechWishes,
        branches: Branches,
    ) -> None:
        self.branches = branches
        self.prompt, self.rules, self.tokenizer, self.wishes = prompt, rules, tokenizer, wishes

    def best(self, session: Any, size: int, seeds: Sequence[int]) -> list[Attempt]:
        """Of each window the first attempt that is believed, or the last one; see `best_attempt`.

        Windows that are not believed become a smaller batch: what the session heard is copied, and not encoded again.

        Args:
            session: of `size` rows, after `listen`; rows beyond the windows are not looked at.
            seeds: one for each window, of what is drawn at temperatures over 0: a window's text does not depend on
                the batch that it is in.
        """
        attempts: dict[int, Attempt] = {}
        speech: dict[int, bool] = {}
        rows = left = list(range(len(seeds)))
        for number, temperature in enumerate(self.wishes.temperatures):
            if (smaller := rows_for(len(left), size)) < size:
                session = session.fork(filled([rows.index(window) for window in left], smaller))
                rows, size = left, smaller
            drawn = [seeds[window] * len(self.wishes.temperatures) + number for window in rows]
            said = self._decoded(session, filled(drawn, size), temperature)
            self._listen_for_speech(session, size, rows, left, said, speech)
            for window, row in zip(rows, said, strict=False):
                if window in left:
                    attempts[window] = attempt_of(
                        row, temperature, speech.get(window, True), self.rules, self.tokenizer, self.wishes
                    )
            left = [window for window in left if not is_believed(attempts[window], self.wishes)]
            if not left:
                break
        return [attempts[window] for window in range(len(seeds))]

    def _decoded(self, session: Any, seeds: Sequence[int], temperature: float) -> list[Decoded]:
        prompt, lengths = padded_prompt(self.prompt, self.rules, len(seeds))
        return texts_at(
            temperature,
            session,
            self.branches,
            prompt,
            self.rules,
            self.wishes,
            seeds=seeds,
            lengths=lengths,
            timed=True,
        )

    def _listen_for_speech(
        self,
        session: Any,
        size: int,
        rows: Sequence[int],
        left: Sequence[int],
        said: Sequence[Decoded],
        speech: dict[int, bool],
    ) -> None:
        """Note in `speech` in which windows the model hears any, if an unlikely text makes that a question."""
        threshold = self.wishes.no_speech_threshold
        asked = [
            window in left and window not in speech and is_unlikely(row.mean_log_probability, self.wishes)
            for window, row in zip(rows, said, strict=False)
        ]
        if threshold is None or not any(asked):
            return
        silence = no_speech_probabilities(session, self.prompt, self.rules, size)
        if silence is not None:
            speech |= {window: bool(p <= threshold) for window, p in zip(rows, silence, strict=False)}
