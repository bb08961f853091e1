"""Decoding with times as one call: `nest.loops.greedy` and `nest.loops.sample` under the rules of `nest.loops.times`.

A body that has nothing left to do is harmless, as in `nest.loops.greedy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nest.layers.annotations import Fill, Float32, Int32
from nest.layers.block import Capacity
from nest.layers.ops import any as any_
from nest.layers.ops import cast, full, maximum, minimum, scatter_set, take, take_along, where, while_loop
from nest.layers.tensor import Tensor
from nest.loops.choice import drawn, log_probability
from nest.loops.greedy import MOST
from nest.loops.times import Allowed, after, at_first, first_of, joined, likeliest, time_of

__all__ = ["greedy_timed", "sample_timed"]

Choice = Callable[[Allowed], tuple[Tensor, Tensor]]
"""Of each row the token, Int32 [Batch], and its log-probability among what may come, Float32 [Batch]."""


def greedy_timed(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    out: Int32[Tensor, "Batch N"],
    end: Int32[Tensor, ""],
    times: Int32[Tensor, "Times"],
    first_limit: Int32[Tensor, ""],
    bias: Float32[Tensor, "Vocab"],
    closed_bias: Float32[Tensor, "Vocab"],
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """Put a prompt into the caches and decode up to N tokens a row, text and times, each the most likely that may come.

    Args:
        tokens: prompts, packed to the left.
        out: where the ids go; only its length matters.
        end: the id that ends a row. A row that has ended is given `end` from there on.
        times: the ids of times, in order.
        first_limit: how many steps after the first time the first token may be, which is a time.
        bias: added to the logits of text: -inf at times and where an id is suppressed. closed_bias: instead of it,
            where the last token is a time that ended a text.
        lengths: of each row's prompt.

    Returns:
        The ids; how many of each row come before its end; the sum of the log-probabilities of these and of the end,
        under the softmax over what may come. The sum is NaN where a row's logits were NaN or had no finite largest.
    """
    S = tokens.shape[1]
    N = out.shape[1]
    model.require(S + N - 1 <= Capacity)
    first = first_of(cast(model.prefill(tokens, lengths), "f32"), times, first_limit)
    last = full((), S + N - 2, "i32")
    carry = [*_begun(first, N, lengths, end, times), times, bias, closed_bias, end, last]
    found = while_loop(model, _unfinished, _next, carry, max_trips=MOST, overrun=True)
    return found[8], found[6], found[7]


def sample_timed(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    uniforms: Float32[Tensor, "N Batch"],
    end: Int32[Tensor, ""],
    times: Int32[Tensor, "Times"],
    first_limit: Int32[Tensor, ""],
    bias: Float32[Tensor, "Vocab"],
    closed_bias: Float32[Tensor, "Vocab"],
    temperature: Float32[Tensor, "Batch"] = Fill("1"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """As `greedy_timed`, each token drawn from softmax(logits / temperature) over what may come.

    Args:
        tokens, end, times, first_limit, bias, closed_bias, lengths: see `greedy_timed`.
        uniforms: numbers in [0, 1), one for each token; their first axis is how many tokens there may be.
        temperature: of each row; a row of 0 takes the most likely id.

    Returns:
        What `greedy_timed` returns; the log-probabilities know no temperature.
    """
    S = tokens.shape[1]
    N = uniforms.shape[0]
    model.require(S + N - 1 <= Capacity)
    allowed = at_first(cast(model.prefill(tokens, lengths), "f32"), times, first_limit)
    first = _drawn(allowed, times, take(uniforms, full((), 0, "i32")), temperature)
    last = full((), S + N - 2, "i32")
    state = _begun(first, N, lengths, end, times)
    carry = [*state, uniforms, temperature, times, bias, closed_bias, end, last]
    found = while_loop(model, _undecided, _draw, carry, max_trips=MOST, overrun=True)
    return found[8], found[6], found[7]


def _drawn(allowed: Allowed, times: Tensor, uniform: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor]:
    scores = joined(allowed, times)
    token = drawn(scores, uniform, temperature)
    return token, log_probability(scores, token)


def _begun(first: tuple[Tensor, Tensor], N: Any, lengths: Tensor, end: Tensor, times: Tensor) -> list[Tensor]:
    """After the first token of each row: n, token, before, latest, pos, done, count, total, out."""
    token, total = first
    B = token.shape[0]
    done = token == end
    none = full((B,), -1, "i32")
    out = scatter_set(full((B, N), 0, "i32") + end, full((B, 1), 0, "i32"), token.reshape(B, 1), axis=1)
    one = full((), 1, "i32")
    return [one, token, none, time_of(token, none, times), lengths, done, cast(~done, "i32"), total, out]


def _unfinished(
    model: Any,
    n: Tensor,
    token: Tensor,
    before: Tensor,
    latest: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    times: Tensor,
    bias: Tensor,
    closed_bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> Tensor:
    """Whether there is room, and a row that has not ended."""
    return (n < out.shape[1]) & any_(~done, 0)


def _next(
    model: Any,
    n: Tensor,
    token: Tensor,
    before: Tensor,
    latest: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    times: Tensor,
    bias: Tensor,
    closed_bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row, the most likely."""
    state = [n, token, before, latest, pos, done, count, total, out]
    constants = [times, bias, closed_bias, end, last]
    return *_continued(model, state, constants, lambda allowed: likeliest(allowed, times)), *constants


def _undecided(
    model: Any,
    n: Tensor,
    token: Tensor,
    before: Tensor,
    latest: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    temperature: Tensor,
    times: Tensor,
    bias: Tensor,
    closed_bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> Tensor:
    """Whether there is room, and a row that has not ended."""
    return (n < out.shape[1]) & any_(~done, 0)


def _draw(
    model: Any,
    n: Tensor,
    token: Tensor,
    before: Tensor,
    latest: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    uniforms: Tensor,
    temperature: Tensor,
    times: Tensor,
    bias: Tensor,
    closed_bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row, drawn."""
    uniform = take(uniforms, minimum(n, out.shape[1] - 1))
    state = [n, token, before, latest, pos, done, count, total, out]
    constants = [times, bias, closed_bias, end, last]
    carry = _continued(model, state, constants, lambda allowed: _drawn(allowed, times, uniform, temperature))
    return *carry, uniforms, temperature, *constants


def _continued(model: Any, state: list[Tensor], constants: list[Tensor], choice: Choice) -> list[Tensor]:
    n, token, before, latest, pos, done, count, total, out = state
    times, bias, closed_bias, end, last = constants
    B, N = out.shape
    logits = cast(model.step(maximum(token, 0).reshape(B, 1), pos), "f32")
    done = done | (n >= N)
    picked, sure = choice(after(logits, token, before, latest, times, bias, closed_bias))
    chosen = where(done, end, picked)
    total = total + where(done, 0.0, sure)
    done = done | (chosen == end)
    column = full((B, 1), 0, "i32") + minimum(n, N - 1)
    kept = where(n < N, chosen.reshape(B, 1), take_along(out, column, axis=1))
    out = scatter_set(out, column, kept, axis=1)
    count = count + cast(~done, "i32")
    latest = time_of(chosen, latest, times)
    return [n + 1, chosen, token, latest, minimum(pos + 1, last), done, count, total, out]
