"""Sampling over cached entries as one call: temperature, the k most likely, the most likely of a mass p.

There is no random op: the host gives one uniform number for each token, and the token is found by inverting the
distribution's sum, from the most likely id on. A seed therefore gives the same tokens on every backend, but where a
number falls between two ids within what the backends' logits differ.

A body that has nothing left to do is harmless, as in `nest.loops.greedy`.
"""

from __future__ import annotations

from typing import Any

from nest.layers.annotations import Fill, Float32, Int32
from nest.layers.block import Capacity
from nest.layers.ops import any as any_
from nest.layers.ops import (
    cast,
    cumsum,
    exp,
    full,
    iota,
    maximum,
    minimum,
    scatter_set,
    slice,
    take,
    take_along,
    top_k,
    where,
    while_loop,
)
from nest.layers.ops import sum as sum_
from nest.layers.tensor import Tensor
from nest.loops.greedy import MOST, log_probability

__all__ = ["sample"]


def sample(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    uniforms: Float32[Tensor, "N Batch"],
    end: Int32[Tensor, ""],
    temperature: Float32[Tensor, "Batch"] = Fill("1"),
    most: Int32[Tensor, "Batch"] = Fill("0"),
    mass: Float32[Tensor, "Batch"] = Fill("1"),
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
    first_bias: Float32[Tensor, "Vocab"] = Fill("0"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """Put a prompt into the caches and draw up to N tokens a row from softmax((logits + bias) / temperature).

    Args:
        tokens: prompts, packed to the left.
        uniforms: numbers in [0, 1), one for each token; their first axis is how many tokens there may be.
        end: the id that ends a row. A row that has ended is given `end` from there on.
        temperature: of each row; a row of 0 takes the most likely id, as `greedy` does.
        most: draw from so many most likely ids (top-k); 0 for all of them.
        mass: draw from the most likely ids that together have this probability (top-p), of those that `most` left;
            1 for all of them. The most likely id always stays.
        bias: added to the logits of every token: -inf suppresses an id. first_bias: added for the first one too.
        lengths: of each row's prompt.

    Returns:
        The ids; how many of each row come before its end; the sum of the log-probabilities of these and of the end,
        under softmax(logits + bias). The sum is NaN where a row's logits were NaN or had no finite largest.
    """
    B, S = tokens.shape
    N = uniforms.shape[0]
    model.require(S + N - 1 <= Capacity)
    scores = cast(model.prefill(tokens, lengths), "f32") + bias + first_bias
    start = full((), 0, "i32")
    first = _drawn(scores, take(uniforms, start), temperature, most, mass)
    total = log_probability(scores, first)
    done = first == end
    count = cast(~done, "i32")
    out = scatter_set(full((B, N), 0, "i32"), full((B, 1), 0, "i32"), first.reshape(B, 1), axis=1)
    last = full((), S + N - 2, "i32")
    carry = [start + 1, first, lengths, done, count, total, out]
    carry += [uniforms, temperature, most, mass, bias, end, last]
    results = while_loop(model, _undecided, _draw, carry, max_trips=MOST)
    return results[6], results[4], results[5]


def _undecided(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    temperature: Tensor,
    most: Tensor,
    mass: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> Tensor:
    """Whether there is room, and a row that has not ended."""
    return (n < out.shape[1]) & any_(~done, 0)


def _draw(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    temperature: Tensor,
    most: Tensor,
    mass: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row."""
    B, N = out.shape
    scores = cast(model.step(token.reshape(B, 1), pos), "f32") + bias
    done = done | (n >= N)
    place = minimum(n, N - 1)
    chosen = where(done, end, _drawn(scores, take(uniforms, place), temperature, most, mass))
    total = total + where(done, 0.0, log_probability(scores, chosen))
    done = done | (chosen == end)
    column = full((B, 1), 0, "i32") + place
    kept = where(n < N, chosen.reshape(B, 1), take_along(out, column, axis=1))
    out = scatter_set(out, column, kept, axis=1)
    count = count + cast(~done, "i32")
    pos = minimum(pos + 1, last)
    return n + 1, chosen, pos, done, count, total, out, uniforms, temperature, most, mass, bias, end, last


def _drawn(scores: Tensor, uniform: Tensor, temperature: Tensor, most: Tensor, mass: Tensor) -> Tensor:
    """One id of each row: scores [Batch, Vocab] and one number a row of the rest.

    The ids are sorted first, so that rounding in the running sums never reaches an id that was to be left out.
    """
    values, ids = top_k(scores, int(scores.shape[1]))
    B, V = values.shape
    heat = maximum(temperature, 1e-6).reshape(B, 1)
    weights = exp((values - slice(values, 1, 0, 1)) / heat)
    rest = where(most > 0, most, int(V)).reshape(B, 1)
    weights = where(iota(V) < rest, weights, 0.0)
    upto = cumsum(weights, axis=1)
    limit = mass.reshape(B, 1) * slice(upto, 1, int(V) - 1, int(V))
    kept = sum_(cast((weights > 0.0) & (upto - weights < limit), "i32"), 1)
    edge = maximum(kept, 1).reshape(B, 1) - 1
    sought = uniform.reshape(B, 1) * take_along(upto, edge, axis=1)
    found = minimum(sum_(cast(upto <= sought, "i32"), 1).reshape(B, 1), edge)
    place = where(temperature.reshape(B, 1) > 0.0, found, 0)
    return take_along(ids, place, axis=1).reshape(B)
