"""Whether a contender's results are the reference's: what is wrong has no speed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nest.bench._work import Work
from nest.evaluating.normalize import english
from nest.registry import Entry
from nest.verify.compare import compare
from nest.verify.limits import Limit, limit_of

__all__ = ["Verdict", "fault"]

Results = Mapping[str, np.ndarray[Any, Any]]


@dataclass(frozen=True)
class Verdict:
    """max|Δ| over all outputs, None where there are only words; and what is wrong in words, None where nothing is."""

    largest: float | None
    text: str | None


def fault(entry: Entry, work: Work, got: Results, right: Results) -> Verdict:
    """Compare outputs by the entry's tolerances, tokens in f32 one by one, and what a whole job says word by word.

    A tolerance is of the distance to the f64 oracle. The reference is about as far from it as a contender may be, so
    that between the two twice as much is allowed.
    """
    largest: float | None = None
    text = None
    for name in sorted(got.keys() & right.keys()):
        if name == "tokens":
            text = text or _tokens(got[name], right[name], work)
            continue
        if name == "ids":
            text = text or _ids(got[name], right[name])
            continue
        if name == "text":
            text = text or _words(str(got[name]), str(right[name]))
            continue
        found = compare(got[name], right[name])
        largest = max(largest or 0.0, found.largest)
        limit = _twice(limit_of(entry, _output(entry, name), work.dtype, real=work.weights == "real"))
        if not found.finite:
            text = text or f"{name}: NaN or infinite"
        elif limit.passed_by(found):
            text = text or (
                f"{name}: max|Δ| {found.largest:.1e} to the reference, {found.relative:.1e} of the largest; "
                f"allowed are {limit}"
            )
    return Verdict(largest, text)


def _output(entry: Entry, piece: str) -> str:
    """The entry of the definition behind a piece of the job."""
    if piece not in ("embed", "vectors"):
        return piece
    main = entry.manifest.source.entry
    return "embed_image" if main == "similarity" else main


def _twice(limit: Limit) -> Limit:
    return Limit(
        None if limit.relative is None else 2 * limit.relative,
        None if limit.largest is None else 2 * limit.largest,
    )


def _tokens(got: np.ndarray[Any, Any], right: np.ndarray[Any, Any], work: Work) -> str | None:
    """In 16 bits a near choice may fall otherwise, so that logits decide there."""
    same = got.shape == right.shape and bool((got == right).all())
    if same or work.dtype != "f32":
        return None
    return f"tokens: {int((got == right).sum()) if got.shape == right.shape else 0} of {right.size} are the reference's"


def _ids(got: np.ndarray[Any, Any], right: np.ndarray[Any, Any]) -> str | None:
    """Whatever the type: an answer that goes on otherwise is another answer."""
    if got.shape == right.shape and bool((got == right).all()):
        return None
    both = min(len(got), len(right))
    differ = np.flatnonzero(got[:both] != right[:both])
    return f"tokens: the first {int(differ[0]) if len(differ) else both} of {len(right)} are the reference's"


def _words(got: str, right: str) -> str | None:
    """Words, not signs: how a window is padded may decide a comma."""
    said, heard = english(right).split(), english(got).split()
    if said == heard:
        return None
    at = next(
        (i for i, pair in enumerate(zip(said, heard, strict=False)) if pair[0] != pair[1]),
        min(len(said), len(heard)),
    )
    return f"text: word {at + 1} of {len(said)} is '{_word(said, at)}', and came as '{_word(heard, at)}'"


def _word(words: Sequence[str], at: int) -> str:
    return words[at] if at < len(words) else ""
