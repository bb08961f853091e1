"""Loops whose length data decides."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nest.layers._regions import region
from nest.layers._trace import current, fail
from nest.layers.ops._emit import tensor
from nest.layers.tensor import Tensor

__all__ = ["while_loop"]


def while_loop(
    block: Any,
    condition: Callable[..., Tensor],
    body: Callable[..., tuple[Tensor, ...]],
    init: Sequence[Tensor],
    *,
    max_trips: int,
    overrun: bool = False,
) -> tuple[Tensor, ...]:
    """Repeat `body` while `condition` holds, at most `max_trips` times.

    Args:
        block: the block whose method this is called in (`self`); it is passed to both functions.
        condition: a function `(block, *carry)` that gives a Bool tensor of rank 0.
        body: a function `(block, *carry)` that gives the next carry, of the same types. It may update states.
        init: the first carry.
        max_trips: a bound that every backend may rely on.
        overrun: that a body which runs after the condition has become false changes nothing that anyone reads. A
            backend whose host waits for each answer may then ask for one only after several trips.

    Returns:
        The last carry. Neither function may close over tensors: what they need is carried.
    """
    trace = current()
    carry = [tensor(t, "while_loop", f"init[{i}]") for i, t in enumerate(init)]
    if not carry:
        raise fail("while_loop carries at least one tensor.")
    if max_trips < 1:
        raise fail(f"while_loop takes max_trips of 1 or more, and got {max_trips}.")
    types = [t.type for t in carry]
    test = region(trace, block, condition, types, "condition")
    step = region(trace, block, body, types, "body")
    trace.function.reads |= test.reads | step.reads
    for path in step.writes:
        trace.write(path)
    outputs = trace.emit(
        "while_loop",
        tuple(t.value() for t in carry),
        {"cond": test, "body": step, "max_trips": int(max_trips), **({"overrun": True} if overrun else {})},
        *types,
    )
    return tuple(Tensor(v) for v in outputs)
