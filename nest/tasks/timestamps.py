"""Times among the tokens: which may come next, and what stretches a window is cut into by them.

Every function is pure: what may come next is computed from three numbers a row, which a loop on a device can hold;
`nest.loops.times` says the same in ops.

Source: Radford et al., 2022, arXiv 2212.04356, section 2.4 and appendix; the reference implementation's decoding rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nest.tasks._characters import continues
from nest.tasks.rules import GenerationRules, bias
from nest.tasks.tokens import TIMESTAMP_SECONDS, Tokenizer

__all__ = [
    "FIRST_SECONDS",
    "Heard",
    "Said",
    "Stretch",
    "closed_bias",
    "first_steps",
    "first_time_bias",
    "heard",
    "text_bias",
    "time_ids",
    "timed",
    "whole_characters",
]

FIRST_SECONDS = 1.0
"""The first time of a window is no later: what is said in it begins with it, or the window before ended wrongly."""


@dataclass(frozen=True)
class Said:
    """What the rules look at, of each row: its last token and the one before it (-1 where there is none), and how many
    steps of time its latest timestamp is from the window's beginning (-1 where there is none). All int32 [Batch]."""

    last: NDArray[np.int32]
    before: NDArray[np.int32]
    latest: NDArray[np.int32]

    @classmethod
    def nothing(cls, rows: int) -> Said:
        """The state in front of the first token."""
        none = np.full(rows, -1, np.int32)
        return cls(none, none, none)

    def then(self, token: NDArray[np.int32], first_timestamp: int) -> Said:
        """The state after one more token of each row."""
        latest = np.where(token >= first_timestamp, token - first_timestamp, self.latest)
        return Said(token, self.last, latest.astype(np.int32))

    def of(self, rows: Sequence[int]) -> Said:
        """The state of these rows, in order."""
        return Said(self.last[rows], self.before[rows], self.latest[rows])


def timed(scores: NDArray[np.float32], said: Said, rules: GenerationRules) -> NDArray[np.float32]:
    """Return scores [Batch, Vocab] with -inf for what may not come next:

    - at first, all but a time of the window's first second;
    - after two times, a third; after a time that ends a text, anything but the time where the next begins, or the end;
    - a time before the latest one; where a text begins with it, also that time itself, as a text takes time;
    - text, where all times together are more likely than the likeliest text: a pause is heard, but not where.
    """
    ids = np.arange(scores.shape[-1])
    is_time = ids >= rules.first_timestamp
    step = (ids - rules.first_timestamp)[None]
    first = (said.last < 0)[:, None]
    after_time = (said.last >= rules.first_timestamp)[:, None]
    after_two = after_time & ((said.before < 0) | (said.before >= rules.first_timestamp))[:, None]
    closed = after_time & ~after_two
    latest = np.where(closed[:, 0], said.latest, said.latest + 1)[:, None]
    forbidden = (ids == rules.no_timestamps) | (first & (~is_time | (step > first_steps())))
    forbidden |= (after_two & is_time) | (closed & (ids < rules.end)) | (is_time & (step < latest))
    allowed = np.where(forbidden, np.float32(-np.inf), scores)
    pause = _mass(allowed[:, is_time]) > allowed[:, ~is_time].max(axis=-1)
    return np.where(pause[:, None] & ~is_time, np.float32(-np.inf), allowed)


def first_steps() -> int:
    """How many steps of time after the first one the first token may be."""
    return round(FIRST_SECONDS / TIMESTAMP_SECONDS)


def time_ids(rules: GenerationRules, vocabulary: int) -> NDArray[np.int32]:
    """Return the ids of times, in order."""
    return np.arange(rules.first_timestamp, vocabulary, dtype=np.int32)


def text_bias(rules: GenerationRules, vocabulary: int) -> NDArray[np.float32]:
    """Return what to add to the logits of text among times: float32 [vocabulary], -inf at times as well."""
    vector = bias(rules, vocabulary)
    vector[[rules.no_timestamps, *range(rules.first_timestamp, vocabulary)]] = -np.inf
    return vector


def first_time_bias(rules: GenerationRules, vocabulary: int) -> NDArray[np.float32]:
    """Return what to add to the logits of the first token, which is a time: float32 [vocabulary], 0 or -inf."""
    vector = np.full(vocabulary, -np.inf, np.float32)
    vector[rules.first_timestamp : rules.first_timestamp + first_steps() + 1] = 0
    return vector


def closed_bias(rules: GenerationRules, vocabulary: int) -> NDArray[np.float32]:
    """Return the same for what follows a time that ended a text, where there is no text but the end."""
    vector = text_bias(rules, vocabulary)
    vector[: rules.end] = -np.inf
    return vector


def _mass(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """The logarithm of the sum of exp(scores) of each row."""
    if scores.shape[-1] == 0:
        return np.full(len(scores), -np.inf, np.float32)
    peak = scores.max(axis=-1, keepdims=True)
    floor = np.where(np.isfinite(peak), peak, 0)
    with np.errstate(divide="ignore"):
        total: NDArray[np.float32] = np.log(np.exp(scores - floor).sum(axis=-1)) + floor[:, 0]
    return total


@dataclass(frozen=True)
class Stretch:
    """A text between two times of a window: seconds from its beginning, `end` None where no time closed it."""

    start: float
    end: float | None
    tokens: tuple[int, ...]


@dataclass(frozen=True)
class Heard:
    """What a window says.

    Attributes:
        stretches: those that have text, in order.
        seconds: how much of the window they make up, from where the next one is to begin; None for all of it.
        tokens: those of that part, with times.
        open: whether a text was begun after that, which the next window hears from its beginning.
    """

    stretches: tuple[Stretch, ...]
    seconds: float | None
    tokens: tuple[int, ...] = ()
    open: bool = False


def heard(tokens: Sequence[int], rules: GenerationRules) -> Heard:
    """Cut what a window says, `tokens` with times and without prompt and end, by its times."""
    times = [index for index, token in enumerate(tokens) if token >= rules.first_timestamp]
    cuts = sorted({index + 1 for index in times} & set(times))
    if not cuts:
        return Heard(_alone(tokens, times, rules), None, tuple(tokens))
    closed = times[-1] == len(tokens) - 1 != cuts[-1]
    if closed:
        cuts.append(len(tokens))
    parts = [_stretch(tokens[at:cut], rules) for at, cut in zip([0, *cuts], cuts, strict=False)]
    found = tuple(stretch for stretch in parts if stretch.tokens)
    if closed:
        return Heard(found, None, tuple(tokens))
    left = any(token < rules.end for token in tokens[cuts[-1] :])
    return Heard(found, _seconds(tokens[cuts[-1] - 1], rules), tuple(tokens[: cuts[-1]]), left)


def _alone(tokens: Sequence[int], times: Sequence[int], rules: GenerationRules) -> tuple[Stretch, ...]:
    """The only stretch of a window: it may have been cut off."""
    stretch = _stretch(tokens, rules)
    if not stretch.tokens:
        return ()
    end = _seconds(tokens[times[-1]], rules) if times else 0.0
    return (Stretch(stretch.start, end if end > stretch.start else None, stretch.tokens),)


def _stretch(tokens: Sequence[int], rules: GenerationRules) -> Stretch:
    start = _seconds(tokens[0], rules) if tokens and tokens[0] >= rules.first_timestamp else 0.0
    end = _seconds(tokens[-1], rules) if tokens and tokens[-1] >= rules.first_timestamp else None
    return Stretch(start, end, tuple(token for token in tokens if token < rules.end))


def _seconds(token: int, rules: GenerationRules) -> float:
    return (token - rules.first_timestamp) * TIMESTAMP_SECONDS


def whole_characters(stretches: Sequence[Stretch], tokenizer: Tokenizer) -> tuple[Stretch, ...]:
    """The stretches of a window, none of which begins or ends within a character.

    A token need not be whole characters, nor a code point a whole one, so that a time may stand within it: its tokens
    are then of the stretch in which it begins. One that has no character is left out.
    """
    owners = [number for number, stretch in enumerate(stretches) for _ in stretch.tokens]
    runs = tokenizer.pieces(token for stretch in stretches for token in stretch.tokens)
    tokens: list[list[int]] = [[] for _ in stretches]
    texts = [""] * len(stretches)
    at = owner = 0
    before = ""
    for text, run in runs:
        if not (text and continues(before, text[0])):
            owner = owners[at]
        tokens[owner] += run
        texts[owner] += text
        at += len(run)
        before += text
    return tuple(
        Stretch(stretch.start, stretch.end, tuple(own))
        for stretch, own, text in zip(stretches, tokens, texts, strict=True)
        if text
    )
