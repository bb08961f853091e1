"""Sizes and bounds that calls decide: what may go wrong is a rule of the entry, and false ones are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nest
from nest import layers as nl
from nest.errors import CallError, DefinitionError
from nest.layers import Block, Float32, Int32, Tensor, elaborate, entry

X = np.arange(12, dtype="f4").reshape(3, 4)


def block(compute: Callable[[Tensor], Any], result: Any) -> type[Block]:
    def run(self: Block, x: Float32[Tensor, "A B"]) -> Any:
        return compute(x)

    run.__annotations__ = {"x": Float32[Tensor, "A B"], "return": result}
    return type("Bounds", (Block,), {"run": entry(run)})


def rules(root: type[Block]) -> list[str]:
    return [str(rule) for rule in elaborate(root).entries["run"].signature.rules]


@pytest.mark.parametrize(
    ("compute", "result", "rule", "message"),
    [
        (
            lambda x: nl.slice(x, 0, 0, 9),
            Float32[Tensor, "9 B"],
            ["9 <= A"],
            "Bounds.run requires 9 <= A, and here A = 3",
        ),
        (
            lambda x: nl.slice(x, 0, x.shape[1], x.shape[0]),
            Float32[Tensor, "A-B B"],
            ["B <= A"],
            "Bounds.run requires B <= A, and here A = 3, B = 4",
        ),
        (
            lambda x: nl.slice(x, 0, x.shape[0] - 5, x.shape[0]),
            Float32[Tensor, "5 B"],
            ["0 <= A-5"],
            "Bounds.run requires 0 <= A-5, and here A = 3",
        ),
        (
            lambda x: nl.iota(x.shape[0] - 5),
            Int32[Tensor, "A-5"],
            ["0 <= A-5"],
            "Bounds.run requires 0 <= A-5, and here A = 3",
        ),
    ],
)
@pytest.mark.parametrize("backend", ["reference", "torch"])
def test_a_bound_that_a_call_decides_is_checked_at_the_call(
    compute: Any, result: Any, rule: list[str], message: str, backend: str
) -> None:
    root = block(compute, result)
    assert rules(root) == rule
    model = nest.load(root, backend=backend, weights=None)
    with pytest.raises(CallError, match=message):
        model.run(X)
    assert np.asarray(model.run(np.zeros((9, 4), "f4"))).shape[0] in (4, 5, 9)


def test_a_bound_that_always_holds_is_no_rule() -> None:
    assert rules(block(lambda x: nl.slice(x, 0, 0, x.shape[0]), Float32[Tensor, "A B"])) == []
    twice = block(
        lambda x: nl.slice(nl.concat([x, x], 0), 0, x.shape[0], 2 * x.shape[0]), Float32[Tensor, "A B"]
    )
    assert rules(twice) == []


@pytest.mark.parametrize(
    ("compute", "message"),
    [
        (lambda x: nl.slice(x, 0, -2, x.shape[0]), r"slice -2:A is not inside axis 0, which is A\."),
        (lambda x: nl.slice(x, 0, 2, 1), r"slice 2:1 is not inside axis 0, which is A\."),
        (lambda x: nl.iota(-1), r"iota takes a size of 0 or more, and got -1\."),
        (lambda x: nl.stack([x, x], axis=3), r"stack makes a tensor of rank 3, which has no axis 3\."),
        (lambda x: nl.stack([x, x], axis=-4), r"stack makes a tensor of rank 3, which has no axis -4\."),
        (lambda x: nl.sum(x, axes=()), r"sum takes at least one axis, and got none\."),
        (lambda x: nl.mean(x, axes=[]), r"mean takes at least one axis, and got none\."),
    ],
)
def test_a_bound_that_never_holds_is_refused(compute: Any, message: str) -> None:
    with pytest.raises(DefinitionError, match=message):
        elaborate(block(compute, Float32[Tensor, "A B"]))


def test_a_rule_of_a_callee_is_a_rule_of_the_entry() -> None:
    class Last(Block):
        def forward(self, x: Float32[Tensor, "S N"]) -> Float32[Tensor, "1 N"]:
            return nl.slice(x, 0, x.shape[0] - 1, x.shape[0])

    class Model(Block):
        def build(self) -> None:
            self.last = Last()

        @entry
        def run(self, x: Float32[Tensor, "A B"]) -> Float32[Tensor, "1 B"]:
            return self.last(x)

    model = nest.load(Model, backend="reference", weights=None)
    assert model.run(X).tolist() == [[8.0, 9.0, 10.0, 11.0]]
    with pytest.raises(CallError, match=r"Model\.run requires 0 <= A-1, and here A = 0"):
        model.run(X[:0])
