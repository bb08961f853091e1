"""What a recording says, as data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import exp

from nest.tasks.words import Word

__all__ = ["Segment", "Transcript", "joined"]


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording and what it says.

    Attributes:
        start: in seconds from the recording's beginning. end: likewise, and later.
        text: with the space in front of it, where the language has spaces.
        tokens: of the text.
        words: with their own times, where they were asked for.
        channel: which one it was heard in, where channels were heard by themselves.
        language: the code of what that channel was decoded in, where they were.
        mean_log_probability: of a token of the window that it is of, as the model decoded it.
        temperature: that the window was decoded at: over 0, and it took several attempts.
        compression_ratio: how many times longer the window's text is than its compressed form; repetition raises it.
    """

    start: float
    end: float
    text: str
    tokens: tuple[int, ...]
    words: tuple[Word, ...] = ()
    channel: int | None = None
    language: str | None = field(default=None, compare=False)
    mean_log_probability: float | None = field(default=None, compare=False)
    temperature: float = field(default=0.0, compare=False)
    compression_ratio: float | None = field(default=None, compare=False)

    @property
    def confidence(self) -> float | None:
        """The geometric mean of the probabilities of the tokens of its window, from 0 to 1."""
        return None if self.mean_log_probability is None else exp(min(self.mean_log_probability, 0.0))


@dataclass(frozen=True)
class Transcript:
    """What a recording says.

    Attributes:
        text: all of it, without spaces around.
        tokens: its text tokens.
        language: the code of the language that it was decoded in; where channels were heard by themselves, of the first
            that says something. None where it was neither given nor detected, as there was nothing to hear.
        duration: how much was heard, in seconds.
        segments: the stretches that it was decoded in; their texts joined are `text`, spaces around aside.
        language_probabilities: of each of the model's languages, likeliest first, where the language was detected.
    """

    text: str
    tokens: tuple[int, ...]
    language: str | None
    duration: float
    segments: tuple[Segment, ...]
    language_probabilities: Mapping[str, float] | None = field(default=None, compare=False)

    @property
    def language_probability(self) -> float | None:
        """How likely `language` is, where it was detected."""
        likely = self.language_probabilities
        return None if likely is None or self.language is None else likely[self.language]


def joined(
    segments: Sequence[Segment],
    duration: float,
    language: str | None,
    probabilities: Mapping[str, float] | None = None,
) -> Transcript:
    """The transcript of segments, in the order of their times where they are of several channels."""
    ordered = tuple(segments)
    if any(segment.channel for segment in segments):
        ordered = tuple(sorted(segments, key=lambda segment: (segment.start, segment.channel or 0)))
    text = "".join(segment.text for segment in ordered).strip()
    tokens = tuple(token for segment in ordered for token in segment.tokens)
    return Transcript(text, tokens, language, duration, ordered, probabilities)
