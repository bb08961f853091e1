"""What windows say at one temperature: greedy or by beams at 0, drawn above it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.tasks._branches import Branches
from nest.tasks._speech_wishes import SpeechWishes
from nest.tasks.beams import beam_search, likeliest
from nest.tasks.decode import Decoded, decode
from nest.tasks.rules import GenerationRules

__all__ = ["texts_at"]


def texts_at(
    temperature: float,
    session: Any,
    branches: Branches,
    prompt: NDArray[np.int32],
    rules: GenerationRules,
    wishes: SpeechWishes,
    *,
    seeds: Sequence[int],
    lengths: NDArray[np.int32] | None = None,
    timed: bool = False,
) -> list[Decoded]:
    """The text of each row of `session`.

    Args:
        session: after `listen`.
        branches: lends sessions for beams, and for texts of which the likeliest is taken.
        prompt, rules, lengths, timed: see `nest.tasks.decode.decode`.
        wishes: `beam_size`, `patience`, `length_penalty`, `best_of`, `max_tokens`.
        seeds: of what is drawn, one for each row. The first of several texts is the one that would be drawn alone.
    """
    rows, count = len(prompt), wishes.best_of or 1
    options: dict[str, Any] = {"max_tokens": wishes.max_tokens, "timed": timed}
    if temperature == 0 and wishes.beams is not None:
        return beam_search(session, branches, prompt, rules, wishes.beams, lengths=lengths, **options)
    options["temperature"] = temperature
    if temperature == 0 or count == 1:
        return decode(session, prompt, rules, lengths=lengths, seed=seeds, **options)
    with branches.lend(session, np.repeat(range(rows), count).tolist()) as several:
        drawn = decode(
            several,
            np.repeat(prompt, count, axis=0),
            rules,
            lengths=None if lengths is None else np.repeat(lengths, count),
            seed=[(seed, number) for seed in seeds for number in range(count)],
            **options,
        )
    return [likeliest(drawn[at : at + count], wishes.length_penalty) for at in range(0, len(drawn), count)]
