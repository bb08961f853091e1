"""Definitions that would never end, and Python that a traced method has not."""

from __future__ import annotations

import pytest

import nest
from nest.errors import DefinitionError
from nest.layers import Block, Dim, Float32, Tensor, elaborate, entry


def test_a_block_that_builds_itself() -> None:
    class Endless(Block):
        def build(self) -> None:
            self.inner = Endless()

        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x

    with pytest.raises(
        DefinitionError, match="Endless is built inside its own build, with the same generics"
    ):
        elaborate(Endless)


def test_a_block_that_builds_ever_larger_ones() -> None:
    class Growing(Block):
        D: Dim

        def build(self) -> None:
            self.inner = Growing(D=self.D + 1)

        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x

    with pytest.raises(DefinitionError, match=r"in Growing\.build: this calls itself without an end\."):
        elaborate(Growing, D=1)


def test_a_method_that_calls_itself() -> None:
    class Circle(Block):
        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return self.again(x)

        def again(self, x):  # type: ignore[no-untyped-def]
            return self.again(x)

    with pytest.raises(DefinitionError, match=r"in Circle\.run: this calls itself without an end\."):
        elaborate(Circle)


def test_super_is_not_there_in_a_method() -> None:
    class Base(Block):
        def forward(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x + 1.0

    class Twice(Base):
        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return self.forward(x)

        def forward(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return super().forward(x) * 2.0

    with pytest.raises(
        DefinitionError, match=r"super\(\) does not reach a traced method: give what the base"
    ):
        elaborate(Twice)


@pytest.mark.parametrize("backend", ["reference", "torch"])
def test_thousands_of_operations_in_a_row(backend: str) -> None:
    class Long(Block):
        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            for _ in range(3000):
                x = x + 1.0
            return x

    assert nest.load(Long, backend=backend, weights=None).run([1.0]).tolist() == [3001.0]


def test_a_tensor_that_was_kept_from_another_method() -> None:
    kept: list[Tensor] = []

    class Leak(Block):
        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            kept.append(x)
            return x + 1.0

        @entry
        def other(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x + kept[0]

    with pytest.raises(DefinitionError, match=r"A tensor of another call was used in other: f32\[A\]"):
        elaborate(Leak)


def test_arguments_by_name_alone() -> None:
    class Named(Block):
        @entry
        def run(self, *, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x

    with pytest.raises(DefinitionError, match="argument 'x' is keyword-only; the arguments of a function"):
        elaborate(Named)


def test_a_build_that_ends_the_program() -> None:
    class Leaving(Block):
        def build(self) -> None:
            raise SystemExit(4)

        @entry
        def run(self, x: Float32[Tensor, "A"]) -> Float32[Tensor, "A"]:
            return x

    with pytest.raises(DefinitionError, match=r"Leaving ended the program \(SystemExit: 4\) while it was"):
        elaborate(Leaving)
