"""A transcriber over recordings with transcripts: what it gets wrong, and how long it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from time import perf_counter
from typing import Any

from nest.errors import InputError, MissingDependencyError, NestError
from nest.evaluating.dataset import Fault, Recording
from nest.evaluating.normalize import NORMALIZERS, Normalizer, normalizer_of
from nest.evaluating.scores import Counts, compared

__all__ = ["WARM_UP_SECONDS", "Evaluation", "Result", "evaluate", "warmed_up"]

WARM_UP_SECONDS = 30.0

Told = Callable[[Recording, float], None]
"""Called with a recording and how many of its seconds are heard."""


@dataclass(frozen=True)
class Result:
    """What came of a recording: texts as they were written, counts of the normalised ones; times in seconds.

    `processing` is from the file to its text.
    """

    name: str
    reference: str
    text: str
    language: str | None
    normalizer: Normalizer
    words: Counts
    characters: Counts
    seconds: float
    processing: float


@dataclass(frozen=True)
class Evaluation:
    """The results of the recordings that could be evaluated, and the others with their reasons."""

    results: tuple[Result, ...]
    faults: tuple[Fault, ...] = field(default=())

    @property
    def words(self) -> Counts:
        """Of all recordings together, as a word error rate is counted."""
        return reduce(add, (result.words for result in self.results), Counts())

    @property
    def characters(self) -> Counts:
        """Likewise."""
        return reduce(add, (result.characters for result in self.results), Counts())

    @property
    def seconds(self) -> float:
        """How much was heard."""
        return sum(result.seconds for result in self.results)

    @property
    def processing(self) -> float:
        """How long that took."""
        return sum(result.processing for result in self.results)

    @property
    def normalizers(self) -> tuple[str, ...]:
        """The normalisers that the texts went through."""
        return tuple(sorted({result.normalizer for result in self.results}))


def warmed_up(task: Any, recordings: Sequence[Recording], wishes: Mapping[str, Any]) -> float:
    """Transcribe the beginning of the first recording that can be, and return how long that took, in seconds.

    The first call compiles, packs weights and allocates, which is no part of a real-time factor.
    """
    for recording in recordings:
        begin = perf_counter()
        try:
            with task.stream(str(recording.path), duration=WARM_UP_SECONDS, **wishes) as stream:
                _ = stream.result
        except MissingDependencyError:
            raise
        except NestError:
            continue  # it is named when it is its turn
        return perf_counter() - begin
    return 0.0


def evaluate(
    task: Any,
    recordings: Sequence[Recording],
    wishes: Mapping[str, Any],
    *,
    told: Told = lambda recording, seconds: None,
    failed: Callable[[Fault], None] = lambda fault: None,
) -> Evaluation:
    """Transcribe each recording and compare its text with the reference.

    Args:
        task: a transcriber.
        wishes: what is asked of it: see `Transcriber.stream`. Texts are normalised as those of its `language`, else of
            the language that was detected; those of `task="translate"` as English ones.
        told: called as recordings are heard.
        failed: called with each that cannot be evaluated; the others go on.

    Raises:
        MissingDependencyError: jiwer is not installed, or what reads the files.
    """
    results: list[Result] = []
    faults: list[Fault] = []
    for recording in recordings:
        try:
            results.append(_result(task, recording, wishes, told))
        except MissingDependencyError:
            raise  # it would be missing every time
        except NestError as error:
            faults.append(Fault(recording.name, str(error)))
            failed(faults[-1])
    return Evaluation(tuple(results), tuple(faults))


def _result(task: Any, recording: Recording, wishes: Mapping[str, Any], told: Told) -> Result:
    begin = perf_counter()
    with task.stream(str(recording.path), **wishes) as stream:
        for _ in _heard(stream, recording, told):
            pass
        made = stream.result
    processing = perf_counter() - begin
    language = "en" if wishes.get("task") == "translate" else made.language or "en"
    how = normalizer_of(language)
    reference, text = (NORMALIZERS[how](one) for one in (recording.reference, made.text))
    if not reference:
        raise InputError(
            f"Nothing is left of its transcript, '{recording.reference}', without marks and what is in brackets."
        )
    words, characters = compared(reference, text)
    return Result(
        recording.name,
        recording.reference,
        made.text,
        made.language,
        how,
        words,
        characters,
        made.duration,
        processing,
    )


def _heard(stream: Any, recording: Recording, told: Told) -> Iterator[Any]:
    for segment in stream:
        told(recording, stream.position)
        yield segment
