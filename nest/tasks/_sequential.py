"""Long recordings, a window after another: each begins where the text of the one before it ends.

Source: Radford et al., 2022, arXiv 2212.04356, section 4.5.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.tasks._attempts import Attempt, best_attempt
from nest.tasks._branches import Branches
from nest.tasks._nothing_said import says_something
from nest.tasks._pauses import within_speech
from nest.tasks._recording_windows import SHORTEST_SECONDS, RecordingWindows
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks._spoken_language import SpokenLanguage
from nest.tasks._window_words import WindowWords
from nest.tasks.mel import MelSettings, log_mel
from nest.tasks.rules import GenerationRules, timed_prompt_ids
from nest.tasks.timestamps import Heard, Stretch, heard, whole_characters
from nest.tasks.tokens import Tokenizer
from nest.tasks.transcript import Segment

__all__ = ["REMAINDER_SECONDS", "SLACK_SECONDS", "Sequential", "heard_in", "segments_of", "within"]

REMAINDER_SECONDS = 1.0
"""What is left after the last text, if the window heard it to its end and began no other text: no window of its own,
for on so little a model would make something up."""

SLACK_SECONDS = 0.5
"""How much earlier than speech a model may say that it ends."""

FORGETFUL = 0.5
"""A text that was decoded at a higher temperature is no context for the next one."""


class Sequential:
    """Decodes the windows of one recording over one session."""

    def __init__(
        self,
        session: Any,
        branches: Branches,
        tokenizer: Tokenizer,
        rules: GenerationRules,
        mel: MelSettings,
        wishes: SpeechWishes,
        words: WindowWords | None,
    ) -> None:
        self.session, self.branches = session, branches
        self.tokenizer, self.rules, self.mel = tokenizer, rules, mel
        self.wishes, self.words = wishes, words
        self._previous = wishes.told_before(tokenizer)
        self._windows = 0

    def segments(self, windows: RecordingWindows, spoken: SpokenLanguage) -> Iterator[Segment]:
        """The segments of the recording, in order; `windows.at` is how far it was heard.

        A language that is not known is detected in the first window that there is something to hear in.
        """
        rate = self.mel.rate
        while len(window := windows.speech()) > SHORTEST_SECONDS * rate:
            start = windows.at / rate
            states = self.session.listen(log_mel(window, self.mel))
            language = spoken.heard_in(self.session)
            attempt = self._attempt(language)
            found = heard_in(attempt, self.tokenizer, self.rules)
            count = self._advance(found, window, windows)
            placed = within(whole_characters(found.stretches, self.tokenizer), len(window) / rate)
            said = segments_of(placed, start, attempt, self.tokenizer)
            pauses = windows.pauses(len(window), rate)
            self._remember(found, attempt)
            windows.advance(count)
            if self.words is not None:
                done = windows.at / rate  # where the next window begins, whose words come after these
                said = self.words.given_to(said, self.session, states, start, done, language)
            yield from (within_speech(segment, pauses) for segment in said)

    def _attempt(self, language: str) -> Attempt:
        prompt = timed_prompt_ids(self.rules, language, self.wishes.task, self._previous)
        seed = self.wishes.seed + self._windows
        self._windows += 1
        return best_attempt(
            self.session, self.branches, prompt, self.rules, self.tokenizer, self.wishes, seed
        )

    def _advance(self, found: Heard, window: NDArray[np.float32], windows: RecordingWindows) -> int:
        """How many samples of the window are done."""
        done = self._passed_over(found, window, windows) if found.seconds is None else found.seconds
        count = 0 if done is None else round(done * self.mel.rate)
        if not 0 < count < len(window):
            return len(window)
        rest = len(window) - count
        if found.seconds is None or found.open or rest >= REMAINDER_SECONDS * self.mel.rate:
            return count
        ends = len(window) < windows.size or windows.left(beyond=1) == len(window)
        return len(window) if ends else count

    def _passed_over(
        self, found: Heard, window: NDArray[np.float32], windows: RecordingWindows
    ) -> float | None:
        """Where the text of a window ends that is done with, if speech is known to come after it."""
        end = found.stretches[-1].end if found.stretches else None
        if end is None:
            return None
        return end if windows.speaks(round((end + SLACK_SECONDS) * self.mel.rate), len(window)) else None

    def _remember(self, found: Heard, attempt: Attempt) -> None:
        if not self.wishes.condition_on_previous_text or attempt.temperature > FORGETFUL:
            self._previous = []
            return
        self._previous += found.tokens
        del self._previous[: -self.rules.positions]


def heard_in(attempt: Attempt, tokenizer: Tokenizer, rules: GenerationRules) -> Heard:
    """What the window of an attempt says; nothing where nobody is heard to speak."""
    text = tokenizer.decode(token for token in attempt.tokens if token < rules.end)
    silent = attempt.silent or not says_something(text)
    return Heard((), None) if silent else heard(attempt.tokens, rules)


def segments_of(
    stretches: Sequence[Stretch], start: float, attempt: Attempt, tokenizer: Tokenizer
) -> list[Segment]:
    """The stretches of the window that begins at `start`, in seconds, without those that say nothing."""
    found = [
        Segment(
            start + stretch.start,
            start + (stretch.start if stretch.end is None else stretch.end),
            tokenizer.decode(stretch.tokens),
            stretch.tokens,
            mean_log_probability=attempt.mean_log_probability,
            temperature=attempt.temperature,
            compression_ratio=attempt.compression_ratio,
        )
        for stretch in stretches
    ]
    return [segment for segment in found if says_something(segment.text)]


def within(found: Sequence[Stretch], length: float) -> list[Stretch]:
    """The stretches within the `length` recorded seconds of their window; what was heard in its padding is left out."""
    placed = []
    for stretch in found:
        end = length if stretch.end is None else min(stretch.end, length)
        if stretch.start < end:
            placed.append(Stretch(stretch.start, end, stretch.tokens))
    return placed
