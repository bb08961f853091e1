"""The likeliest next tokens of each row as one call: what a search on the host asks of a token, and not a vocabulary.

`nest.tasks._candidates` says the same in numpy.
"""

from __future__ import annotations

import math
from typing import Any

from nest.layers.annotations import Fill, Float32, Int32
from nest.layers.ops import cast, concat, exp, full, log, slice, top_k
from nest.layers.ops import sum as sum_
from nest.layers.tensor import Tensor
from nest.loops.times import after, joined

__all__ = ["CANDIDATES", "prefill_top", "step_top", "step_top_timed"]

CANDIDATES = 16
"""How many of each row: one more than beams that can be searched so, as one of them may be the end."""


def prefill_top(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Float32[Tensor, "Batch 16"], Int32[Tensor, "Batch 16"]]:
    """Put a prompt into the caches; what is likeliest to come after it.

    Args:
        tokens: prompts, packed to the left.
        bias: added to the logits: -inf excludes an id; for text with times, all but a time of the first second.
        lengths: of each row's prompt.

    Returns:
        Log-probabilities under softmax(logits + bias) in falling order, and their ids; of a smaller vocabulary, more
        ids than it has, with -inf. They are NaN where a row's logits were NaN or had no finite largest.
    """
    return _top(cast(model.prefill(tokens, lengths), "f32") + bias)


def step_top(
    model: Any,
    token: Int32[Tensor, "Batch 1"],
    pos: Int32[Tensor, "Batch"],
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
) -> tuple[Float32[Tensor, "Batch 16"], Int32[Tensor, "Batch 16"]]:
    """Put one more token of each row at slot `pos`; what is likeliest to come after it, as of `prefill_top`."""
    return _top(cast(model.step(token, pos), "f32") + bias)


def step_top_timed(
    model: Any,
    token: Int32[Tensor, "Batch 1"],
    pos: Int32[Tensor, "Batch"],
    before: Int32[Tensor, "Batch"],
    latest: Int32[Tensor, "Batch"],
    times: Int32[Tensor, "Times"],
    bias: Float32[Tensor, "Vocab"],
    closed_bias: Float32[Tensor, "Vocab"],
) -> tuple[Float32[Tensor, "Batch 16"], Int32[Tensor, "Batch 16"]]:
    """As `step_top`, under the rules about times.

    Args:
        token, pos: see `step_top`.
        before: the token before it, -1 where there is none.
        latest: how many steps the latest time, which `token` may be, is after the first one; -1 for none.
        times, bias, closed_bias: see `greedy_timed`.

    Returns:
        What `prefill_top` returns; log-probabilities are under the softmax over what may come, and under -1e38 for what
        may not.
    """
    logits = cast(model.step(token, pos), "f32")
    last = token.reshape(token.shape[0])
    return _top(joined(after(logits, last, before, latest, times, bias, closed_bias), times))


def _top(scores: Tensor) -> tuple[Tensor, Tensor]:
    B, V = scores.shape
    if int(V) < CANDIDATES:
        scores = concat([scores, full((B, CANDIDATES - int(V)), -math.inf, "f32")], axis=1)
    values, ids = top_k(scores, CANDIDATES)
    best = slice(values, 1, 0, 1)
    # As `log_probability` sums: ONNX Runtime's logsumexp is ten times less exact over a vocabulary.
    return values - best - log(sum_(exp(scores - best), 1, keepdims=True)), ids
