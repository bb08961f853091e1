"""A loop may run past its end only where its author says that this changes nothing."""

from __future__ import annotations

from typing import Any

import pytest

import nest
from nest.layers import Block, Int32, State, Tensor, entry, while_loop
from nest.layers import any as any_


def torch_zero() -> Any:
    import torch

    return torch.tensor(0, dtype=torch.int32)


def below_three(block: Any, n: Tensor) -> Tensor:
    return any_(n.reshape(1) < 3, 0)


def one_more(block: Any, n: Tensor) -> tuple[Tensor, ...]:
    block.seen.assign(n.reshape(1))
    return (n + 1,)


class Counter(Block):
    """Counts to three, and by eights where it may overrun."""

    def build(self) -> None:
        self.seen = State("1", "i32")

    @entry
    def exactly(self, n: Int32[Tensor, ""]) -> Int32[Tensor, ""]:
        (n,) = while_loop(self, below_three, one_more, [n], max_trips=100)
        return n

    @entry
    def beyond(self, n: Int32[Tensor, ""]) -> Int32[Tensor, ""]:
        (n,) = while_loop(self, below_three, one_more, [n], max_trips=100, overrun=True)
        return n


class Late:
    """Looks at a condition after eight trips, as recorded CUDA graphs do."""

    def __call__(self, condition: Any, body: Any, carry: Any, most: int) -> Any:
        while condition(*carry):
            for _ in range(8):
                carry = body(*carry)
        return carry


def test_a_runner_that_looks_late_gets_those_loops_alone_that_allow_it() -> None:
    pytest.importorskip("torch")
    model = nest.load(Counter, backend="torch", weights=None)
    state = model.new_session().state
    state.runner = Late()
    exactly, beyond = (model.nest_methods[name] for name in ("exactly", "beyond"))
    assert int(exactly(model, torch_zero(), state)) == 3
    assert int(beyond(model, torch_zero(), state)) == 8


@pytest.mark.parametrize("backend", ["reference", "torch", "jax", "nnx"])
def test_on_a_cpu_every_loop_ends_where_it_says(backend: str) -> None:
    model = nest.load(Counter, backend=backend, weights=None)
    assert int(model.exactly(0)) == int(model.beyond(0)) == 3
