"""What a Whisper checkpoint says of its decoding, as plain data and pure functions of it.

Nothing here loops or holds a session, so that a loop on the host and one on the device share these rules.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from nest._suggest import did_you_mean
from nest.errors import InputError
from nest.tasks.languages import language_name

__all__ = [
    "MULTILINGUAL",
    "TRANSLATING",
    "GenerationRules",
    "after_previous",
    "bias",
    "first_bias",
    "prompt_ids",
    "provisional_prompt_ids",
    "timed_prompt_ids",
    "token_budget",
]

MULTILINGUAL = "whisper-small or whisper-large-v3-turbo"
"""Entries that a refusal names, where a model knows one language only."""
TRANSLATING = "whisper-small or whisper-large-v3"
"""Likewise, where a model was not trained to translate."""


@dataclass(frozen=True)
class GenerationRules:
    """The token ids and limits of one checkpoint.

    Attributes:
        start: `<|startoftranscript|>`.
        end: `<|endoftext|>`.
        prompt: what decoding starts from where language and task are not a choice.
        no_timestamps: `<|notimestamps|>`.
        first_timestamp: `<|0.00|>`; each following id is 0.02 s later.
        positions: how many tokens the decoder can hold, the prompt included.
        max_tokens: how many text tokens one window may give.
        start_of_previous: `<|startofprev|>`, after which comes what was said before; None where it is not known.
        no_speech: `<|nospeech|>`; None where it is not known.
        suppress: ids that are never chosen.
        begin_suppress: ids that are not chosen first.
        languages: id of each language code; empty for a checkpoint of English only.
        tasks: id of `transcribe` and `translate`; empty for a checkpoint of English only.
        alignment_heads: (decoder layer, head) of those whose attention follows the audio; empty where not known.
    """

    start: int
    end: int
    prompt: tuple[int, ...]
    no_timestamps: int
    first_timestamp: int
    positions: int
    max_tokens: int = 224
    start_of_previous: int | None = None
    no_speech: int | None = None
    suppress: tuple[int, ...] = ()
    begin_suppress: tuple[int, ...] = ()
    languages: Mapping[str, int] = field(default_factory=dict)
    tasks: Mapping[str, int] = field(default_factory=dict)
    alignment_heads: tuple[tuple[int, int], ...] = ()

    @property
    def multilingual(self) -> bool:
        """Whether the prompt names a language and a task."""
        return bool(self.languages)


def bias(rules: GenerationRules, vocabulary: int) -> NDArray[np.float32]:
    """Return what to add to the logits of every token: float32 [vocabulary], 0 or -inf."""
    return _excluding(rules.suppress, vocabulary)


def first_bias(rules: GenerationRules, vocabulary: int) -> NDArray[np.float32]:
    """Return what to add to the logits of the first token: float32 [vocabulary], 0 or -inf."""
    return _excluding((*rules.suppress, *rules.begin_suppress), vocabulary)


def _excluding(ids: Iterable[int], vocabulary: int) -> NDArray[np.float32]:
    vector = np.zeros(vocabulary, dtype=np.float32)
    vector[list(ids)] = -np.inf
    return vector


def prompt_ids(
    rules: GenerationRules, language: str | None = None, task: str = "transcribe"
) -> tuple[int, ...]:
    """Return the ids that the decoder starts from: without times, and for one language and task.

    Args:
        rules: the checkpoint's.
        language: a code such as `"en"`; required of a multilingual checkpoint.
        task: `"transcribe"`, or `"translate"` into English.

    Raises:
        InputError: the checkpoint does not have that language or task.
    """
    if task not in ("transcribe", "translate"):
        raise InputError(
            f"The task {task!r} is unknown; expected 'transcribe' or 'translate' (into English)."
        )
    if not rules.multilingual:
        if task != "transcribe":
            raise InputError(
                f"This model transcribes English only, and task {task!r} was asked for. "
                f"Use one that was trained to translate, such as {TRANSLATING}."
            )
        if language not in (None, "en"):
            raise InputError(
                f"This model transcribes English only, and language {language!r} was asked for. "
                f"Use a multilingual one, such as {MULTILINGUAL}."
            )
        return rules.prompt
    if language is None or language not in rules.languages:
        names = [language_name(code) for code in rules.languages]
        raise InputError(
            f"The language {language!r} is none of this model's.{did_you_mean(str(language), names)} Its codes are: "
            f"{' '.join(sorted(rules.languages))}."
        )
    if task not in rules.tasks:
        raise InputError(
            f"This model has no task {task!r}; it has: {', '.join(rules.tasks)}. "
            f"Use one that was trained to translate, such as {TRANSLATING}."
        )
    return (rules.start, rules.languages[language], rules.tasks[task], rules.no_timestamps)


def provisional_prompt_ids(
    rules: GenerationRules, language: str | None = None, task: str = "transcribe"
) -> tuple[int, ...]:
    """Return `prompt_ids`, any language standing for one that is still to be detected.

    Raises:
        InputError: as `prompt_ids`.
    """
    return prompt_ids(rules, next(iter(rules.languages), None) if language is None else language, task)


def timed_prompt_ids(
    rules: GenerationRules,
    language: str | None = None,
    task: str = "transcribe",
    previous: Sequence[int] = (),
) -> tuple[int, ...]:
    """Return the ids that decoding with times starts from, after the last ones of `previous`, what was said before.

    Raises:
        InputError: the checkpoint does not have that language or task.
    """
    prompt = tuple(i for i in prompt_ids(rules, language, task) if i != rules.no_timestamps)
    return after_previous(rules, prompt, previous)


def after_previous(rules: GenerationRules, prompt: Sequence[int], previous: Sequence[int]) -> tuple[int, ...]:
    """Return `prompt` after the last ones of `previous`, what was said before: less than half of the positions."""
    if not previous or rules.start_of_previous is None:
        return tuple(prompt)
    return (rules.start_of_previous, *previous[-(rules.positions // 2 - 1) :], *prompt)


def token_budget(rules: GenerationRules, prompt: int, max_tokens: int | None = None) -> int:
    """Return how many tokens may follow a prompt of `prompt` tokens: at most `max_tokens`, as room allows.

    Raises:
        InputError: `max_tokens` is no positive integer, or the prompt leaves no room.
    """
    wanted = rules.max_tokens if max_tokens is None else max_tokens
    if isinstance(wanted, bool) or not isinstance(wanted, SupportsIndex) or operator.index(wanted) < 1:
        raise InputError(f"max_tokens={max_tokens!r} is no number of tokens; expected an integer from 1.")
    if prompt >= rules.positions:
        raise InputError(
            f"The prompt has {prompt} tokens, and the decoder holds {rules.positions} with what follows. "
            "Shorten the prompt."
        )
    return min(wanted, rules.positions - prompt)
