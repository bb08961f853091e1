"""The two ways to decode rows: as one call of a loop that the session offers, and by its steps.

Both choose by the same rules: what `nest.loops` says in ops is said here in numpy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest.errors import NestError
from nest.tasks.rules import GenerationRules, bias, first_bias
from nest.tasks.sampling import draw
from nest.tasks.timestamps import Said, closed_bias, first_steps, text_bias, time_ids, timed

__all__ = ["NO_TOKEN", "Settings", "choose", "constant", "log_probabilities", "stepwise", "whole"]

Rows = list[tuple[tuple[int, ...], float]]


@dataclass(frozen=True)
class Settings:
    """One decode: which loop; prompts [Batch, S] and their lengths [Batch]; numbers [N, Batch], N tokens at most.

    `heat` [Batch], `most` and `mass` are the temperatures and what tokens are drawn from; `timed` says that times are
    among the tokens.
    """

    entry: str
    prompt: NDArray[np.int32]
    lengths: NDArray[np.int32]
    uniforms: NDArray[np.float32]
    heat: NDArray[np.float32]
    most: int
    mass: float
    timed: bool = False

    @property
    def greedy(self) -> bool:
        """Whether nothing is drawn."""
        return self.entry.startswith("greedy")


def whole(session: Any, call: Settings, rules: GenerationRules) -> Rows:
    """The tokens and log-probability of each row, by one call.

    Raises:
        NestError: the model returned NaN or infinite logits.
    """
    options: dict[str, Any] = {"end": np.int32(rules.end), "lengths": call.lengths}
    if call.timed:
        options |= {
            "times": constant(session, time_ids, rules),
            "first_limit": np.int32(first_steps()),
            "bias": constant(session, text_bias, rules),
            "closed_bias": constant(session, closed_bias, rules),
        }
    else:
        options["bias"] = constant(session, bias, rules)
        options["first_bias"] = constant(session, first_bias, rules)
    if call.greedy:
        options["out"] = np.zeros(call.uniforms.shape[::-1], np.int32)
    else:
        options |= {"uniforms": call.uniforms, "temperature": call.heat}
    if call.entry == "sample_top":
        rows = len(call.heat)
        options |= {"most": np.full(rows, call.most, np.int32), "mass": np.full(rows, call.mass, np.float32)}
    results = getattr(session, call.entry)(call.prompt, **options)
    ids, counts, totals = (session.numpy(result) for result in results)
    if not np.isfinite(totals).all():
        raise NestError(
            f"The model's logits are NaN or infinite in row {int((~np.isfinite(totals)).argmax())}, so no token can be "
            f"chosen. {NO_TOKEN}"
        )
    return [
        (tuple(row[:count].tolist()), float(total))
        for row, count, total in zip(ids, counts, totals, strict=True)
    ]


def constant(session: Any, make: Callable[[GenerationRules, int], Any], rules: GenerationRules) -> Any:
    """What `make` gives for a vocabulary, in the session's own place.

    It is made once a session: at each call, a vocabulary's length of numbers would go to the device.
    """
    vocabulary = int(session.program.root.generics["Vocab"])
    limits = rules.end, rules.no_timestamps, rules.first_timestamp
    key = (make.__name__, rules.suppress, rules.begin_suppress, limits)
    return session.constant(key, lambda: make(rules, vocabulary))


def stepwise(session: Any, call: Settings, rules: GenerationRules) -> Rows:
    """The same, a step at a time."""
    rows, start = call.prompt.shape
    lengths = () if (call.lengths == start).all() else (call.lengths,)
    logits = session.numpy(session.prefill(call.prompt, *lengths))
    always, excluded = bias(rules, logits.shape[-1]), first_bias(rules, logits.shape[-1])
    running = np.ones(rows, bool)
    totals = np.zeros(rows)
    columns: list[NDArray[np.int32]] = []
    said = Said.nothing(rows)
    while True:
        scores = timed(logits + excluded, said, rules) if call.timed else logits + excluded
        chosen = _chosen(scores, call, len(columns))
        totals += np.where(running, log_probabilities(scores, chosen), 0)
        # Rows that have ended go on with the end token, and are cut below.
        chosen = np.where(running, chosen, np.int32(rules.end)).astype(np.int32)
        running &= chosen != rules.end
        said = said.then(chosen, rules.first_timestamp)
        columns.append(chosen)
        if not running.any() or len(columns) == len(call.uniforms):
            break
        pos = call.lengths + np.int32(len(columns) - 1)
        logits, excluded = session.numpy(session.step(chosen[:, None], pos)), always
    tokens = [_until(row, rules.end) for row in np.stack(columns, axis=1)]
    return list(zip(tokens, totals.tolist(), strict=True))


def choose(logits: NDArray[np.float32], exclusion: NDArray[np.float32]) -> NDArray[np.int32]:
    """Return the most likely token of each row: logits [Batch, Vocab] + exclusion [Vocab] -> int32 [Batch].

    Raises:
        NestError: the best logit of a row is NaN or infinite.
    """
    scores = logits + exclusion
    chosen: NDArray[np.int32] = scores.argmax(axis=-1).astype(np.int32)
    best = np.take_along_axis(scores, chosen[:, None], axis=-1)
    if not np.isfinite(best).all():
        raise NestError(
            f"The model's best logit is {float(best[~np.isfinite(best)][0])}, so no token can be chosen. {NO_TOKEN}"
        )
    return chosen


NO_TOKEN = "Its weights are damaged, or the number type overflows: try dtype='f32'."


def _chosen(scores: NDArray[np.float32], call: Settings, step: int) -> NDArray[np.int32]:
    likely = choose(scores, np.zeros((), np.float32))
    if call.greedy:
        return likely
    settings = zip(scores, call.uniforms[step], call.heat, strict=True)
    drawn = [draw(row, float(u), float(t), call.most, call.mass) for row, u, t in settings]
    return np.array(drawn, np.int32)


def log_probabilities(scores: NDArray[np.float32], chosen: NDArray[np.int32]) -> NDArray[np.float64]:
    peak = scores.max(axis=-1, keepdims=True)
    spread = np.log(np.exp(scores - peak).sum(axis=-1, dtype=np.float64)) + peak[:, 0]
    taken: NDArray[np.float64] = np.take_along_axis(scores, chosen[:, None], axis=-1)[:, 0] - spread
    return taken


def _until(row: NDArray[np.int32], end: int) -> tuple[int, ...]:
    ended = np.flatnonzero(row == end)
    return tuple(row[: ended[0]].tolist() if len(ended) else row.tolist())
