"""Words with times for the segments of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from nest.tasks.mel import MelSettings
from nest.tasks.rules import GenerationRules, prompt_ids
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment
from nest.tasks.words import window_words

__all__ = ["WindowWords"]


@dataclass(frozen=True)
class WindowWords:
    """How the words of a window are found; see `nest.tasks.words`."""

    tokenizer: Tokenizer
    rules: GenerationRules
    mel: MelSettings
    task: str

    def given_to(
        self, segments: Sequence[Segment], session: Any, states: Any, start: float, end: float, language: str
    ) -> list[Segment]:
        """The segments of a window with their words, as `session` has just listened to it, from `start` to `end`.

        All texts of the window are aligned as one; a word is of the segment in which it begins.
        """
        words = window_words(
            session,
            states,
            prompt_ids(self.rules, language, self.task),
            [token for segment in segments for token in segment.tokens],
            self.tokenizer,
            self.rules,
            self.mel,
            start=start,
            end=end,
            language="en" if self.task == "translate" else language,
        )
        if not words:
            return list(segments)
        found, at, upto = [], 0, 0
        for number, segment in enumerate(segments):
            upto += len(segment.text)
            own = []
            while words and (at < upto or number == len(segments) - 1):
                own.append(words[0])
                at += len(words[0].text)
                words = words[1:]
            text = "".join(word.text for word in own)
            found.append(replace(segment, text=text, words=tuple(own)))
        return found
