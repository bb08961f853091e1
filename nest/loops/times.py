"""Which times and which text may come next, in ops; `nest.tasks.timestamps` says it in numpy.

Logits are looked at in two parts, so that a step passes over the vocabulary as seldom as it can: the text, and the
times alone, of which there are few. What may come next follows from three numbers of a row: its last token, the one
before that, and its latest time.

Source: Radford et al., 2022, arXiv 2212.04356, section 2.4 and appendix; the reference implementation's decoding rules.
"""

from __future__ import annotations

from typing import NamedTuple

from nest.layers.ops import broadcast_to, exp, full, iota, log, peak, scatter_set, take, where
from nest.layers.ops import max as max_
from nest.layers.tensor import Tensor

__all__ = ["Allowed", "after", "at_first", "first_of", "joined", "likeliest", "time_of"]

NEVER = -3e38
"""What may not come, where all that could is compared: less itself it is 0, and -inf less -inf would be NaN."""


class Allowed(NamedTuple):
    """What may come next: text, as logits [Batch, Vocab] and what is added to them, which is -inf or less at times; and
    times alone, stamps [Batch, Times]."""

    logits: Tensor
    bias: Tensor
    stamps: Tensor


def at_first(logits: Tensor, times: Tensor, first_limit: Tensor) -> Allowed:
    """A time at most `first_limit` steps after the first one: logits [Batch, Vocab]; times [Times], ids in order."""
    stamps = _soon(logits, times, first_limit)
    return Allowed(full(logits.shape, NEVER, "f32"), full((), 0.0, "f32"), stamps)


def first_of(logits: Tensor, times: Tensor, first_limit: Tensor) -> tuple[Tensor, Tensor]:
    """What `likeliest` says of `at_first`, with no look at what is no time."""
    stamp, _, mass = peak(_soon(logits, times, first_limit))
    return take(times, stamp), -log(mass)


def _soon(logits: Tensor, times: Tensor, first_limit: Tensor) -> Tensor:
    """Logits [Batch, Times] of the times that may be first."""
    return where(iota(times.shape[0]) <= first_limit, take(logits, times, axis=1), NEVER)


def after(
    logits: Tensor,
    last: Tensor,
    before: Tensor,
    latest: Tensor,
    times: Tensor,
    bias: Tensor,
    closed_bias: Tensor,
) -> Allowed:
    """What may come after a row's tokens, but for pauses, of which `joined` and `likeliest` know:

    - after two times, no third; after a time that ends a text, no text but the time where the next begins, or the end;
    - no time before the latest one; where no text has just ended, not that one either, as a text takes time.

    Args:
        logits: Float32 [Batch, Vocab].
        last, before: Int32 [Batch], the last token and the one before it, -1 where there is none.
        latest: Int32 [Batch], how many steps the latest time is after the first one; -1 for none.
        times: Int32 [Times], their ids in order.
        bias: Float32 [Vocab], -inf at times and at what is suppressed; closed_bias: likewise after the end of a text.
    """
    B, first = logits.shape[0], take(times, full((), 0, "i32"))
    a_time = last >= first
    two = a_time & ((before < 0) | (before >= first))
    closed = a_time & ~two
    soonest = where(two, full((), times.shape[0], "i32"), where(closed, latest, latest + 1))
    may = iota(times.shape[0]) >= soonest.reshape(B, 1)
    own = where(closed.reshape(B, 1), closed_bias, bias)
    return Allowed(logits, own, where(may, take(logits, times, axis=1), NEVER))


def time_of(token: Tensor, latest: Tensor, times: Tensor) -> Tensor:
    """The latest time, in steps, after one more token of each row; all Int32 [Batch]."""
    step = token - take(times, full((), 0, "i32"))
    return where(step >= 0, step, latest)


def likeliest(allowed: Allowed, times: Tensor) -> tuple[Tensor, Tensor]:
    """The most likely token of each row, Int32 [Batch], and its log-probability among what may come, Float32 [Batch].

    Where all times together are more likely than the likeliest text, it is a time: a pause is heard, but not where.
    Elsewhere it is text, for no time alone is then more likely.
    """
    logits, bias, stamps = allowed
    word, best, words = peak(logits, bias)
    stamp, latest, mass = peak(stamps)
    pause = log(mass) + latest > best
    total = where(pause, mass, words + mass * exp(latest - best))
    return where(pause, take(times, stamp), word), -log(total)


def joined(allowed: Allowed, times: Tensor) -> Tensor:
    """Logits [Batch, Vocab] of what may come, -3e38 or less elsewhere; no text where a pause is heard."""
    logits, bias, stamps = allowed
    B, text = logits.shape[0], logits + bias
    _, latest, mass = peak(stamps)
    pause = (log(mass) + latest).reshape(B, 1) > max_(text, 1, keepdims=True)
    places = broadcast_to(times.reshape(1, times.shape[0]), (B, times.shape[0]))
    return scatter_set(where(pause, NEVER, text), places, stamps, axis=1)
