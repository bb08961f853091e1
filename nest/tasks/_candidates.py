"""The likeliest next tokens of rows and their log-probabilities, under the rules of a window."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.errors import NestError
from nest.loops.branch import CANDIDATES
from nest.tasks._rows import NO_TOKEN, constant
from nest.tasks.rules import GenerationRules, bias, first_bias
from nest.tasks.timestamps import Said, closed_bias, first_time_bias, text_bias, time_ids, timed

__all__ = ["OnDevice", "OnHost", "candidates", "top"]

Found = tuple[NDArray[np.float32], NDArray[np.int32]]
"""Log-probabilities [Batch, K] in falling order, and their ids."""


class OnHost:
    """Candidates from the logits of a session's `prefill` and `step`, chosen in numpy.

    Args:
        count: how many of each row.
        times: whether times are among the tokens.
    """

    def __init__(self, rules: GenerationRules, count: int, *, times: bool) -> None:
        self.rules, self.count, self.times = rules, count, times
        self._bias: NDArray[np.float32] | None = None

    def first(self, session: Any, prompt: NDArray[np.int32], *lengths: NDArray[np.int32]) -> Found:
        """What may come after the prompts [Batch, S]."""
        logits = session.numpy(session.prefill(prompt, *lengths))
        return self._of(logits + first_bias(self.rules, logits.shape[-1]), Said.nothing(len(logits)))

    def next(self, session: Any, token: NDArray[np.int32], pos: NDArray[np.int32], said: Said) -> Found:
        """What may come after `token` [Batch], put at `pos` [Batch]."""
        logits = session.numpy(session.step(token[:, None], pos))
        if self._bias is None:
            self._bias = bias(self.rules, logits.shape[-1])
        return self._of(logits + self._bias, said)

    def _of(self, scores: NDArray[np.float32], said: Said) -> Found:
        return top(timed(scores, said, self.rules) if self.times else scores, self.count)


class OnDevice:
    """The same from what `nest.loops.branch` offers as entries, so that a few numbers of each row come to the host."""

    def __init__(self, rules: GenerationRules, count: int, *, times: bool) -> None:
        self.rules, self.count, self.times = rules, count, times

    def first(self, session: Any, prompt: NDArray[np.int32], *lengths: NDArray[np.int32]) -> Found:
        """See `OnHost.first`."""
        first = self._constant(session, first_time_bias if self.times else first_bias)
        return self._of(session, session.prefill_top(prompt, first, *lengths))

    def next(self, session: Any, token: NDArray[np.int32], pos: NDArray[np.int32], said: Said) -> Found:
        """See `OnHost.next`."""
        if not self.times:
            return self._of(session, session.step_top(token[:, None], pos, self._constant(session, bias)))
        given = [self._constant(session, make) for make in (time_ids, text_bias, closed_bias)]
        return self._of(
            session, session.step_top_timed(token[:, None], pos, said.before, said.latest, *given)
        )

    def _of(self, session: Any, found: Any) -> Found:
        values, ids = (session.numpy(x)[:, : self.count] for x in found)
        refuse_bad(values[:, 0])
        return values, ids

    def _constant(self, session: Any, make: Callable[..., Any]) -> Any:
        return constant(session, make, self.rules)


def candidates(session: Any, rules: GenerationRules, count: int, *, times: bool) -> OnHost | OnDevice:
    """What finds `count` candidates of each row, where `session` can on its device."""
    on_device = count <= CANDIDATES and hasattr(session, "step_top_timed")
    return (OnDevice if on_device else OnHost)(rules, count, times=times)


def top(scores: NDArray[np.float32], count: int) -> Found:
    """The likeliest ids under softmax(scores) [Batch, Vocab]; of equals, the first come first.

    Raises:
        NestError: the best score of a row is NaN or infinite.
    """
    count = min(count, scores.shape[-1])
    peak = scores.max(axis=-1, keepdims=True)
    refuse_bad(peak)
    spread = peak + np.log(np.exp(scores - peak).sum(axis=-1, keepdims=True, dtype=np.float64))
    least = np.partition(scores, -count, axis=-1)[:, -count]
    rows = []
    for row, limit in zip(scores, least, strict=True):
        likely = np.flatnonzero(row >= limit)
        rows.append(likely[np.argsort(-row[likely], kind="stable")][:count])
    ids = np.array(rows, np.int32)
    return (np.take_along_axis(scores, ids, axis=-1) - spread).astype(np.float32), ids


def refuse_bad(best: NDArray[np.float32]) -> None:
    """Raise where the best of a row is no number to choose by."""
    if not np.isfinite(best).all():
        raise NestError(
            f"The model's best logit is {float(best[~np.isfinite(best)][0])}, so no token can be chosen. {NO_TOKEN}"
        )
