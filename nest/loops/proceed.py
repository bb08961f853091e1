"""Going on from a token: some more tokens of rows whose prompts are in the caches, as one call.

Unlike `greedy` and `sample`, which begin with a prompt, these begin where an earlier call ended, so that the host can
look at a text, or show it, every so many tokens. A row that has ended keeps its token and its slot: however often the
body runs, it writes the same there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from nest.layers.annotations import Bool, Fill, Float32, Int32
from nest.layers.ops import any as any_
from nest.layers.ops import (
    cast,
    full,
    log,
    maximum,
    minimum,
    peak,
    scatter_set,
    stack,
    take,
    take_along,
    where,
    while_loop,
)
from nest.layers.tensor import Tensor
from nest.loops.choice import drawn, drawn_of_top, log_probability, penalised
from nest.loops.greedy import MOST

__all__ = ["proceed", "proceed_drawn", "proceed_of_top"]


def proceed(
    model: Any,
    token: Int32[Tensor, "Batch"],
    pos: Int32[Tensor, "Batch"],
    done: Bool[Tensor, "Batch"],
    out: Int32[Tensor, "Batch N"],
    count: Int32[Tensor, ""],
    ends: Int32[Tensor, "Ends"],
) -> tuple[Int32[Tensor, "Batch N"], Float32[Tensor, "Batch N"]]:
    """Up to `count` more tokens of each row, each the most likely.

    Args:
        token: the last of each row, not yet in the caches. pos: the slot that it goes to.
        done: rows that have ended already.
        out: where the ids go; only its length matters.
        count: how many tokens at most, up to N; a slot must be there for each of them, up to pos + count.
        ends: ids that end a row; -1 for none.

    Returns:
        The ids, the first of `ends` after a row's end; and the log-probability of each under softmax(logits), 0 after
        the end and NaN where logits were NaN or had no finite largest.
    """
    carry = [*_begun(token, pos, done, out, ends), count, ends]
    results = while_loop(model, _unfinished, _next, carry, max_trips=MOST, overrun=True)
    return results[4], results[5]


def proceed_drawn(
    model: Any,
    token: Int32[Tensor, "Batch"],
    pos: Int32[Tensor, "Batch"],
    done: Bool[Tensor, "Batch"],
    uniforms: Float32[Tensor, "N Batch"],
    count: Int32[Tensor, ""],
    ends: Int32[Tensor, "Ends"],
    seen: Float32[Tensor, "Batch Vocab"],
    temperature: Float32[Tensor, "Batch"] = Fill("1"),
    floor: Float32[Tensor, "Batch"] = Fill("0"),
    penalty: Float32[Tensor, "Batch"] = Fill("1"),
) -> tuple[Int32[Tensor, "Batch N"], Float32[Tensor, "Batch N"]]:
    """As `proceed`, each token drawn by a uniform number: see `nest.loops.choice`.

    Args:
        token, pos, done, count, ends: see `proceed`.
        uniforms: numbers in [0, 1), one for each token.
        seen: not 0 where `penalty` holds: ids that the row has had, `token` among them.
        temperature: a row of 0 takes the most likely id. floor: min-p, 0 for none. penalty: of repetition, 1 for none.

    Returns:
        What `proceed` returns; the log-probability knows no temperature, filter or penalty.
    """
    N, B = uniforms.shape
    settings = stack([penalty, temperature, floor], axis=0)
    out = full((B, N), 0, "i32")
    carry = [*_begun(token, pos, done, out, ends), count, ends, seen, uniforms, settings]
    results = while_loop(model, _unfinished_drawing, _next_drawn, carry, max_trips=MOST, overrun=True)
    return results[4], results[5]


def proceed_of_top(
    model: Any,
    token: Int32[Tensor, "Batch"],
    pos: Int32[Tensor, "Batch"],
    done: Bool[Tensor, "Batch"],
    uniforms: Float32[Tensor, "N Batch"],
    count: Int32[Tensor, ""],
    ends: Int32[Tensor, "Ends"],
    seen: Float32[Tensor, "Batch Vocab"],
    temperature: Float32[Tensor, "Batch"] = Fill("1"),
    floor: Float32[Tensor, "Batch"] = Fill("0"),
    penalty: Float32[Tensor, "Batch"] = Fill("1"),
    most: Int32[Tensor, "Batch"] = Fill("0"),
    mass: Float32[Tensor, "Batch"] = Fill("1"),
) -> tuple[Int32[Tensor, "Batch N"], Float32[Tensor, "Batch N"]]:
    """As `proceed_drawn`, from the `most` likely ids (top-k) or those of the probability `mass` (top-p); the vocabulary
    is sorted for every token."""
    N, B = uniforms.shape
    settings = stack([penalty, temperature, cast(most, "f32"), mass, floor], axis=0)
    out = full((B, N), 0, "i32")
    carry = [*_begun(token, pos, done, out, ends), count, ends, seen, uniforms, settings]
    results = while_loop(model, _unfinished_drawing, _next_of_top, carry, max_trips=MOST, overrun=True)
    return results[4], results[5]


def _begun(token: Tensor, pos: Tensor, done: Tensor, out: Tensor, ends: Tensor) -> list[Tensor]:
    """n, token, pos, done, out, logs."""
    B, N = out.shape
    n = full((), 0, "i32")
    return [n, token, pos, done, full((B, N), 0, "i32") + take(ends, n), full((B, N), 0.0, "f32")]


def _unfinished(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
) -> Tensor:
    """Whether there is room, and a row that has not ended."""
    return (n < count) & any_(~done, 0)


def _next(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
) -> tuple[Tensor, ...]:
    """The most likely token of each row."""
    likeliest, _, mass = peak(_scores(model, token, pos))
    carry = _continued(n, token, pos, done, out, logs, count, ends, likeliest, -log(mass))
    return *carry, count, ends


def _unfinished_drawing(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
    seen: Tensor,
    uniforms: Tensor,
    settings: Tensor,
) -> Tensor:
    return (n < count) & any_(~done, 0)


def _next_drawn(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
    seen: Tensor,
    uniforms: Tensor,
    settings: Tensor,
) -> tuple[Tensor, ...]:
    """A token of each row, of all ids."""
    return _drawing(model, n, token, pos, done, out, logs, count, ends, seen, uniforms, settings, drawn)


def _next_of_top(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
    seen: Tensor,
    uniforms: Tensor,
    settings: Tensor,
) -> tuple[Tensor, ...]:
    """A token of each row, of the likely ids."""
    return _drawing(
        model, n, token, pos, done, out, logs, count, ends, seen, uniforms, settings, drawn_of_top
    )


def _drawing(
    model: Any,
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
    seen: Tensor,
    uniforms: Tensor,
    settings: Tensor,
    choice: Callable[..., Tensor],
) -> tuple[Tensor, ...]:
    """A token of each row by `choice`, which takes the rows of `settings` [K, Batch] after the first, the penalty."""
    scores = _scores(model, token, pos)
    uniform = take(uniforms, minimum(n, uniforms.shape[0] - 1))
    penalty, *others = (take(settings, full((), i, "i32")) for i in range(int(settings.shape[0])))
    chosen = choice(penalised(scores, seen, penalty), uniform, *others)
    said = log_probability(scores, chosen)
    carry = _continued(n, token, pos, done, out, logs, count, ends, chosen, said)
    return *carry, count, ends, _marked(seen, carry[1]), uniforms, settings


def _scores(model: Any, token: Tensor, pos: Tensor) -> Tensor:
    """Logits [Batch, Vocab] after the token of each row, which is put into its slot."""
    # A token may be no id at all, and is then not one to look up.
    return cast(model.step(maximum(token, 0).reshape(token.shape[0], 1), pos), "f32")


def _marked(seen: Tensor, token: Tensor) -> Tensor:
    B = seen.shape[0]
    return scatter_set(seen, maximum(token, 0).reshape(B, 1), full((B, 1), 1.0, "f32"), axis=1)


def _continued(
    n: Tensor,
    token: Tensor,
    pos: Tensor,
    done: Tensor,
    out: Tensor,
    logs: Tensor,
    count: Tensor,
    ends: Tensor,
    chosen: Tensor,
    log_probabilities: Tensor,
) -> list[Tensor]:
    """The carry after `chosen` of each row: n, token, pos, done, out, logs."""
    B, N = out.shape
    still = ~(done | (n >= count))
    column = full((B, 1), 0, "i32") + minimum(n, N - 1)
    first = take(ends, full((), 0, "i32"))
    put = where(still, chosen, first).reshape(B, 1)
    said = where(still, log_probabilities, 0.0).reshape(B, 1)
    # Past `count` the body has nothing to say; what stands in the last column stays.
    out = scatter_set(out, column, where(n < count, put, take_along(out, column, axis=1)), axis=1)
    logs = scatter_set(logs, column, where(n < count, said, take_along(logs, column, axis=1)), axis=1)
    ended = any_(chosen.reshape(B, 1) == ends.reshape(1, ends.shape[0]), 1)
    token = where(still, chosen, token)
    return [n + 1, token, where(still, pos + 1, pos), done | (still & ended), out, logs]
