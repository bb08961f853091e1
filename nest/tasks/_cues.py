"""Subtitles of a transcript: which lines are shown when."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from nest.errors import InputError
from nest.tasks._characters import continues
from nest.tasks.transcript import Segment, Transcript

__all__ = ["Cue", "Lines", "cues", "shown_text", "told"]


@dataclass(frozen=True)
class Lines:
    """How long and how many the lines of a subtitle may be; None for any."""

    width: int | None = None
    count: int | None = None

    def __post_init__(self) -> None:
        for name, value in (("width", self.width), ("count", self.count)):
            if value is not None and value < 1:
                raise InputError(f"A {name} of lines of {value} leaves no room; expected an integer from 1.")
        if self.count is not None and self.width is None:
            raise InputError("A number of lines means nothing without their width: give both.")


@dataclass(frozen=True)
class Cue:
    """A subtitle: its lines, from `start` to `end` in seconds."""

    start: float
    end: float
    lines: tuple[str, ...]


def cues(transcript: Transcript, lines: Lines | None = None) -> list[Cue]:
    """The subtitles of a transcript: one for each segment, or several where its lines are more than `lines` admits.

    Where a segment is cut, the times are those of its words, or, without them, by the number of letters.
    """
    lines = lines or Lines()
    found = []
    for segment in told(transcript):
        wrapped = _wrapped(shown_text(segment), lines.width)
        count = lines.count or len(wrapped)
        groups = [tuple(wrapped[at : at + count]) for at in range(0, len(wrapped), count)]
        found += [
            Cue(start, end, group)
            for group, (start, end) in zip(groups, _spans(segment, groups), strict=True)
        ]
    return found


def told(transcript: Transcript) -> Iterator[Segment]:
    return (segment for segment in transcript.segments if segment.text.strip())


def shown_text(segment: Segment) -> str:
    text = " ".join(segment.text.split())
    return text if segment.channel is None else f"[{segment.channel + 1}] {text}"


def _wrapped(text: str, width: int | None) -> list[str]:
    if width is None:
        return [text]
    return _Wrapper(width, break_on_hyphens=False).wrap(text) or [text]


class _Wrapper(textwrap.TextWrapper):
    """Breaks a word that is longer than a line, as a text in a language without spaces, between its characters."""

    def _handle_long_word(
        self, reversed_chunks: list[str], cur_line: list[str], cur_len: int, width: int
    ) -> None:
        word, end = reversed_chunks[-1], width - cur_len
        while end > 0 and continues(word[:end], word[end]):
            end -= 1
        if end < 1 and cur_line:
            return  # to the next line
        end = max(end, 1)
        while end < len(word) and continues(word[:end], word[end]):
            end += 1
        cur_line.append(word[:end])
        reversed_chunks[-1] = word[end:]
        if not reversed_chunks[-1]:
            del reversed_chunks[-1]


def _spans(segment: Segment, groups: list[tuple[str, ...]]) -> list[tuple[float, float]]:
    """When each of the groups that a segment's lines are cut into begins and ends."""
    letters = [sum(len("".join(line.split())) for line in group) for group in groups]
    ends = [sum(letters[: index + 1]) for index in range(len(letters))]
    if segment.words and len(groups) > 1:
        return _spans_of_words(segment, ends)
    length = (segment.end - segment.start) / max(ends[-1], 1)
    edges = [segment.start, *(segment.start + end * length for end in ends)]
    return list(pairwise(edges))


def _spans_of_words(segment: Segment, ends: list[int]) -> list[tuple[float, float]]:
    """As `_spans`, `ends` being the number of letters up to the end of each group."""
    shift = 0 if segment.channel is None else len(f"[{segment.channel + 1}]")
    placed, at = [], shift
    for word in segment.words:
        # Of the group that its middle lies in.
        size = len("".join(word.text.split()))
        middle = at + size / 2
        placed.append((sum(middle > end for end in ends[:-1]), word))
        at += size
    times = {
        group: (min(word.start for _, word in words), max(word.end for _, word in words))
        for group, words in ((g, list(w)) for g, w in groupby(placed, key=lambda pair: pair[0]))
    }
    found, last = [], segment.start
    for group in range(len(ends)):
        start, end = times.get(group, (last, last))
        found.append((max(start, last), max(end, last)))
        last = found[-1][1]
    return found
