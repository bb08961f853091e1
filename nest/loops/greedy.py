"""Greedy decoding over cached entries as one call.

A backend may run the body a few times more than the condition asks for, to look at it less often: a body that has
nothing left to do changes no id and no count, and writes only slots that nothing reads again.
"""

from __future__ import annotations

from typing import Any

from nest.layers.annotations import Fill, Float32, Int32
from nest.layers.block import Capacity
from nest.layers.ops import any as any_
from nest.layers.ops import (
    cast,
    full,
    log,
    maximum,
    minimum,
    peak,
    scatter_set,
    take_along,
    where,
    while_loop,
)
from nest.layers.tensor import Tensor

__all__ = ["MOST", "greedy"]

# Longer than any context; what stops a loop is the length of `out`.
MOST = 1 << 20


def greedy(
    model: Any,
    tokens: Int32[Tensor, "Batch S"],
    out: Int32[Tensor, "Batch N"],
    end: Int32[Tensor, ""],
    bias: Float32[Tensor, "Vocab"] = Fill("0"),
    first_bias: Float32[Tensor, "Vocab"] = Fill("0"),
    lengths: Int32[Tensor, "Batch"] = Fill("S"),
) -> tuple[Int32[Tensor, "Batch N"], Int32[Tensor, "Batch"], Float32[Tensor, "Batch"]]:
    """Put a prompt into the caches and decode up to N tokens a row, each the largest of logits + bias.

    Args:
        tokens: prompts, packed to the left.
        out: where the ids go; only its length matters.
        end: the id that ends a row; -1 for none. A row that has ended is given `end` from there on.
        bias: added to the logits of every token: -inf suppresses an id. first_bias: added for the first one too.
        lengths: of each row's prompt.

    Returns:
        The ids; how many of each row come before its end; the sum of the log-probabilities of these and of the end,
        under softmax(logits + bias). The sum is NaN where a row's logits were NaN or had no finite largest.
    """
    B, S = tokens.shape
    N = out.shape[1]
    model.require(S + N - 1 <= Capacity)
    first, _, mass = peak(cast(model.prefill(tokens, lengths), "f32"), bias + first_bias)
    total = -log(mass)
    done = first == end
    count = cast(~done, "i32")
    column = full((B, 1), 0, "i32")
    out = scatter_set(full((B, N), 0, "i32") + end, column, first.reshape(B, 1), axis=1)
    last = full((), S + N - 2, "i32")
    carry = [full((), 1, "i32"), first, lengths, done, count, total, out, bias, end, last]
    _, _, _, _, count, total, out, _, _, _ = while_loop(
        model, _unfinished, _next, carry, max_trips=MOST, overrun=True
    )
    return out, count, total


def _unfinished(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> Tensor:
    """Whether there is room, and a row that has not ended."""
    return (n < out.shape[1]) & any_(~done, 0)


def _next(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    count: Tensor,
    total: Tensor,
    out: Tensor,
    bias: Tensor,
    end: Tensor,
    last: Tensor,
) -> tuple[Tensor, ...]:
    """One more token of each row."""
    B, N = out.shape
    # `end` may be no id at all, and is then not one to look up.
    logits = cast(model.step(maximum(token, 0).reshape(B, 1), pos), "f32")
    done = done | (n >= N)
    likely, _, mass = peak(logits, bias)
    chosen = where(done, end, likely)
    total = total + where(done, 0.0, -log(mass))
    done = done | (chosen == end)
    column = full((B, 1), 0, "i32") + minimum(n, N - 1)
    kept = where(n < N, chosen.reshape(B, 1), take_along(out, column, axis=1))
    out = scatter_set(out, column, kept, axis=1)
    count = count + cast(~done, "i32")
    return n + 1, chosen, minimum(pos + 1, last), done, count, total, out, bias, end, last
