"""Sampling over cached entries as one call: from the whole distribution, or from its likely part.

There is no random op: the host gives one uniform number for each token, and the token is found by inverting the
distribution's running sum. A seed therefore gives the same tokens on every backend, but where a number falls between
two ids within what the backends' logits differ.

A body that has nothing left to do is harmless, as in `nest.loops.greedy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nest.layers.annotations import Fill, Float32, Int32
from nest.layers.block import Capacity
from nest.layers.ops import any as any_
from nest.layers.ops import (
    cast,
    full,
    maximum,
    minimum,
    scatter_set,
    stack,
    take,
    take_along,
    where,
    while_loop,
)
from nest.layers.tensor import Tensor
from nest.loops.choice import drawn, drawn_of_top, log_probability
from nest.loops.greedy import MOST

__all__ = ["sample", "sample_top"]

Choice = Callable[[Tensor, Tensor, Tensor], Tensor]


def sample(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    uniforms: Float32[Tensor, "N Batch"],
    end: Int32[Tensor, ""],
    temperature: Float32[Tensor, "Batch"] = Fill("1"),
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
    first_bias: Float32[Tensor, "Vocab"] = Fill("0"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """Put a prompt into the caches and draw up to N tokens a row from softmax((logits + bias) / temperature).

    Args:
        tokens: prompts, packed to the left.
        uniforms: numbers in [0, 1), one for each token; their first axis is how many tokens there may be.
        end: the id that ends a row; -1 for none. A row that has ended is given `end` from there on.
        temperature: of each row; a row of 0 takes the most likely id, as `greedy` does.
        bias: added to the logits of every token: -inf suppresses an id. first_bias: added for the first one too.
        lengths: of each row's prompt.

    Returns:
        The ids; how many of each row come before its end; the sum of the log-probabilities of these and of the end,
        under softmax(logits + bias). The sum is NaN where a row's logits were NaN or had no finite largest.
    """
    B, S = tokens.shape
    model.require(S + uniforms.shape[0] - 1 <= Capacity)
    settings = temperature.reshape(1, B)
    scores = cast(model.prefill(tokens, lengths), "f32") + bias + first_bias
    carry = _begun(scores, lengths, uniforms, settings, end, _drawn)
    last = full((), S + uniforms.shape[0] - 2, "i32")
    results = while_loop(
        model, _undecided, _draw, [*carry, uniforms, settings, bias, end, last], max_trips=MOST, overrun=True
    )
    return results[6], results[4], results[5]


def sample_top(
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
    """As `sample`, from the most likely ids alone; the vocabulary is sorted for every token.

    Args:
        tokens, uniforms, end, temperature, bias, first_bias, lengths: see `sample`.
        most: draw from so many most likely ids of each row (top-k); 0 for all of them.
        mass: draw from the most likely ids that together have this probability (top-p), of those that `most` left;
            1 for all of them. The most likely id always stays.

    Returns:
        What `sample` returns.
    """
    S = tokens.shape[1]
    model.require(S + uniforms.shape[0] - 1 <= Capacity)
    settings = stack([temperature, cast(most, "f32"), mass], axis=0)
    scores = cast(model.prefill(tokens, lengths), "f32") + bias + first_bias
    carry = _begun(scores, lengths, uniforms, settings, end, _drawn_of_top)
    last = full((), S + uniforms.shape[0] - 2, "i32")
    results = while_loop(
        model,
        _undecided,
        _draw_top,
        [*carry, uniforms, settings, bias, end, last],
        max_trips=MOST,
        overrun=True,
    )
    return results[6], results[4], results[5]


def _begun(
    scores: Tensor, lengths: Tensor, uniforms: Tensor, settings: Tensor, end: Tensor, choice: Choice
) -> list[Tensor]:
    """The first token of each row: n, token, pos, done, count, total, out."""
    N, B = uniforms.shape
    start = full((), 0, "i32")
    first = choice(scores, take(uniforms, start), settings)
    done = first == end
    out = scatter_set(full((B, N), 0, "i32") + end, full((B, 1), 0, "i32"), first.reshape(B, 1), axis=1)
    return [start + 1, first, lengths, done, cast(~done, "i32"), log_probability(scores, first), out]


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
    settings: Tensor,
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
    settings: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row, of all ids."""
    carry = _continued(
        model, n, token, pos, done, count, total, out, uniforms, settings, bias, end, last, _drawn
    )
    return *carry, uniforms, settings, bias, end, last


def _draw_top(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    settings: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row, of the most likely ids."""
    top = _drawn_of_top
    carry = _continued(
        model, n, token, pos, done, count, total, out, uniforms, settings, bias, end, last, top
    )
    return *carry, uniforms, settings, bias, end, last


def _continued(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    settings: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
    choice: Choice,
) -> list[Tensor]:
    B, N = out.shape
    scores = cast(model.step(maximum(token, 0).reshape(B, 1), pos), "f32") + bias
    done = done | (n >= N)
    place = minimum(n, N - 1)
    chosen = where(done, end, choice(scores, take(uniforms, place), settings))
    total = total + where(done, 0.0, log_probability(scores, chosen))
    done = done | (chosen == end)
    column = full((B, 1), 0, "i32") + place
    kept = where(n < N, chosen.reshape(B, 1), take_along(out, column, axis=1))
    out = scatter_set(out, column, kept, axis=1)
    return [n + 1, chosen, minimum(pos + 1, last), done, count + cast(~done, "i32"), total, out]


def _drawn(scores: Tensor, uniform: Tensor, settings: Tensor) -> Tensor:
    """One id of each row: scores [Batch, Vocab], uniform [Batch], settings [1, Batch]: the temperature."""
    return drawn(scores, uniform, take(settings, full((), 0, "i32")))


def _drawn_of_top(scores: Tensor, uniform: Tensor, settings: Tensor) -> Tensor:
    """One id of each row; settings [3, Batch]: temperature, how many ids, of which mass."""
    return drawn_of_top(scores, uniform, *(take(settings, full((), i, "i32")) for i in range(3)))
