"""Which language a recording is in: said beforehand, or detected in what is listened to first."""

from __future__ import annotations

from collections.abc import Mapping

from nest.tasks.decode import SpeechSession, language_probabilities
from nest.tasks.rules import GenerationRules

__all__ = ["SpokenLanguage", "only_language"]


class SpokenLanguage:
    """The language of a recording, or of a channel that is heard by itself.

    Attributes:
        code: None until it is known.
        probabilities: of the model's languages, likeliest first; None where none was detected.
    """

    def __init__(self, rules: GenerationRules, given: str | None = None) -> None:
        self.code = only_language(rules) if given is None else given
        self.probabilities: Mapping[str, float] | None = None
        self._rules = rules

    def heard_in(self, session: SpeechSession, rows: int = 1) -> str:
        """The code; where it is not known yet, detected in the first of the rows that `session` has listened to."""
        if self.code is None:
            self.probabilities = language_probabilities(session, self._rules, rows)[0]
            self.code = next(iter(self.probabilities))
        return self.code


def only_language(rules: GenerationRules) -> str | None:
    """The code of the only language that a model has; None where there is something to detect."""
    if not rules.multilingual:
        return "en"
    return next(iter(rules.languages)) if len(rules.languages) == 1 else None
