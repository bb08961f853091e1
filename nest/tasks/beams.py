"""Beam search over the cached entries of a session, and which of several texts is taken.

Source: the reference implementation's decoding (Radford et al., 2022, arXiv 2212.04356). Patience: Kasai et al., 2022,
arXiv 2204.05424. Length penalty: Wu et al., 2016, arXiv 1609.08144.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.tasks._branches import Branches
from nest.tasks._candidates import OnDevice, OnHost, candidates
from nest.tasks._hypotheses import Hypotheses, Text
from nest.tasks.decode import Decoded
from nest.tasks.rules import GenerationRules, token_budget
from nest.tasks.timestamps import Said

__all__ = ["MOST", "Beams", "beam_search", "likeliest"]


MOST = 100
"""Of beams, and of texts of which the best is taken: each has caches of its own."""
_ENDLESS = 2**31


@dataclass(frozen=True)
class Beams:
    """How wide and how long is searched.

    Attributes:
        size: how many prefixes are gone on with.
        patience: the search ends when round(size * patience) texts have ended.
        length_penalty: see `likeliest`.
    """

    size: int
    patience: float = 1.0
    length_penalty: float | None = None

    @property
    def enough(self) -> int:
        """How many ended texts end the search."""
        return round(min(self.size * self.patience, _ENDLESS))


def beam_search(
    session: Any,
    branches: Branches,
    prompt: NDArray[np.int32],
    rules: GenerationRules,
    beams: Beams,
    *,
    lengths: NDArray[np.int32] | None = None,
    max_tokens: int | None = None,
    timed: bool = False,
) -> list[Decoded]:
    """Return what each row that `session` has listened to says: the likeliest text that a search over prefixes finds.

    Prompts are read by `session` itself; beams are rows of a session that `branches` lends, which takes its states.

    Args:
        session: after `listen`.
        branches: lends sessions of rows * `beams.size` rows.
        prompt, rules, lengths, max_tokens, timed: see `nest.tasks.decode.decode`.
        beams: how wide and how long is searched.

    Raises:
        InputError: no room for a token.
        NestError: the model returned NaN or infinite logits.
    """
    rows, start = prompt.shape
    steps = token_budget(rules, start, max_tokens)
    ends = np.full(rows, start, np.int32) if lengths is None else np.asarray(lengths, np.int32)
    found = candidates(session, rules, beams.size + 1, times=timed)
    groups = [Hypotheses(beams.size, beams.enough, rules.end) for _ in range(rows)]
    given = () if (ends == start).all() else (ends,)
    for group, values, ids in zip(groups, *found.first(session, prompt, *given), strict=True):
        group.grow(values[None], ids[None])
    if steps > 1 and not all(group.done for group in groups):
        with branches.lend(session, np.repeat(range(rows), beams.size).tolist()) as several:
            _grow(several, found, groups, np.repeat(ends, beams.size), steps, rules)
    return [likeliest([_decoded(text) for text in g.texts()], beams.length_penalty) for g in groups]


def likeliest(texts: Sequence[Decoded], length_penalty: float | None = None) -> Decoded:
    """Return the text of the highest log-probability for its length, the first of equals.

    Args:
        texts: at least one.
        length_penalty: what the log-probability is divided by: the number of tokens n if None, which is that of one
            where there are none; else ((5 + n) / 6) ** length_penalty, so that 0 takes the likeliest text as it is. The
            end is not counted.
    """

    def score(text: Decoded) -> float:
        count = len(text.tokens)
        divisor = max(1, count) if length_penalty is None else ((5 + count) / 6) ** length_penalty
        return text.log_probability / divisor

    return max(texts, key=score)


def _grow(
    session: Any,
    found: OnHost | OnDevice,
    groups: Sequence[Hypotheses],
    ends: NDArray[np.int32],
    steps: int,
    rules: GenerationRules,
) -> None:
    """Go on from the first tokens, `steps` tokens in all, until every group is done.

    Args:
        session: its rows are those of the groups, one group after another.
        ends: where the prompt of each row ends.
    """
    said = Said.nothing(len(ends))
    for step in range(1, steps):
        token = np.array([_last(row, rules.end) for group in groups for row in group.rows], np.int32)
        said = said.then(token, rules.first_timestamp)
        values, ids = found.next(session, token, ends + np.int32(step - 1), said)
        sources: list[int] = []
        for group in groups:
            at = len(sources)
            part = slice(at, at + group.size)
            stay = list(range(group.size))
            sources += [at + row for row in (stay if group.done else group.grow(values[part], ids[part]))]
        if all(group.done for group in groups):
            break
        said = said.of(sources)
        if step + 1 < steps and sources != list(range(len(sources))):
            session.reorder(sources, slots_only=True)


def _last(text: Text | None, end: int) -> int:
    """The last token of a row; a row without a prefix goes on with the end, and is not looked at."""
    return end if text is None else text.tokens[-1]


def _decoded(text: Text) -> Decoded:
    return Decoded(text.tokens, text.total)
