"""Definitions that once became wrong source: names that collide, views of states, loops that only look alike."""

from __future__ import annotations

import math

import numpy as np
import pytest

from nest.errors import DefinitionError
from nest.layers import (
    Block,
    Capacity,
    DType,
    Float,
    Linear,
    Param,
    State,
    Tensor,
    block_array,
    concat,
    elaborate,
    entry,
    exp,
    full,
    gelu,
    layer_norm,
    maximum,
    relu,
    silu,
    slice,
    where,
)
from nest.loading import load


class Typed(Block):
    T: DType


class SwappedCarries(Typed):
    def build(self) -> None:
        self.layers = block_array(3, lambda i: Linear(3, 3, self.T))

    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        a, b = exp(x), x * 2.0
        a, b = b, a
        for layer in self.layers:
            a = layer.forward(a)
            b = layer.forward(b) + a
            a, b = b, a
        return a - b


class LastOfAnIteration(SwappedCarries):
    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        for layer in self.layers:
            x = layer.forward(x)
            before = x
            x = relu(before) - 0.5
        return before


class Growing(Typed):
    def build(self) -> None:
        self.layers = block_array(3, lambda i: Linear(3, 3, self.T))

    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 12"]:
        grown = x
        for layer in self.layers:
            grown = concat([layer_norm(grown), layer.forward(x)], 1)
        return grown


class Infinities(Typed):
    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        low = full((x.shape[0], 3), -math.inf, self.T)
        return exp(maximum(where(x < 0.0, -math.inf, x), low))


class NamesOfTheFile(Typed):
    def build(self) -> None:
        self.layers = block_array(2, lambda i: Linear(3, 3, self.T))

    @entry
    def f(self, torch: Float[Tensor, "F 3"], layer: Float[Tensor, "F 3"]) -> Float[Tensor, "F 3"]:
        F = torch.shape[0]
        zip = silu(torch)
        rms_norm = gelu(zip)
        repeat = rms_norm + layer
        for line in self.layers:
            repeat = line.forward(repeat) * zip
        return repeat.reshape(F * 3).reshape(F, 3)


class F(Typed):
    """A block called as the functional module is, with a backslash \\ and \"\"\" in its docstring\""""

    def forward(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        return gelu(x)


class CallsF(Typed):
    def build(self) -> None:
        self.inner = F(self.T)

    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        return self.inner.forward(gelu(x))


STATELESS = [SwappedCarries, LastOfAnIteration, Growing, Infinities, NamesOfTheFile, CallsF]


@pytest.mark.parametrize("root", STATELESS)
@pytest.mark.parametrize("backend", ["torch", "nnx"])
def test_generated_source_computes_what_the_program_says(root: type[Block], backend: str) -> None:
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    inputs = [x, x + 1] if root is NamesOfTheFile else [x]
    exact = load(root, backend="reference", precision="f64", weights=None).f(*inputs)
    model = load(root, backend=backend, weights=None)
    got = model.f(*inputs)
    got = got.detach().numpy() if backend == "torch" else np.asarray(got)
    np.testing.assert_allclose(got, exact, atol=1e-5)


class Counter(Typed):
    """Reads, then writes, in one expression."""

    def build(self) -> None:
        self.require(Capacity <= 4)
        self.k = State("Batch Capacity 3", self.T, write_axis=1)

    @entry
    def f(self, x: Float[Tensor, "Batch 1 3"]) -> Float[Tensor, "Batch Capacity 3"]:
        return (self.k.read() + 1.0) * self.k.update(x, 0)

    @entry
    def whole(self, x: Float[Tensor, "Batch 1 3"]) -> Float[Tensor, "Batch Capacity 3"]:
        return self.k.update(x, 0)


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx", "onnx"])
def test_a_read_sees_what_was_there_before_the_write(backend: str) -> None:
    session = load(Counter, backend=backend, weights=None).new_session()
    oracle = load(Counter, backend="reference", weights=None).new_session()
    for value in (1.0, 2.0, 3.0):
        x = np.full((1, 1, 3), value, np.float32)
        np.testing.assert_allclose(session.numpy(session.f(x)), oracle.f(x), atol=1e-6)


@pytest.mark.parametrize("backend", ["torch", "jax", "nnx", "onnx", "reference"])
def test_a_result_does_not_change_with_the_next_call(backend: str) -> None:
    session = load(Counter, backend=backend, weights=None).new_session()
    first = session.whole(np.ones((1, 1, 3), np.float32))
    kept = np.array(session.numpy(first))
    session.whole(np.full((1, 1, 3), 5.0, np.float32))
    np.testing.assert_array_equal(session.numpy(first), kept)


class Getter(Typed):
    def build(self) -> None:
        self.s = State("Batch 3", self.T)

    def get(self) -> Float[Tensor, "Batch 3"]:
        return self.s.read()

    def put(self, x: Float[Tensor, "Batch 3"]) -> Float[Tensor, "Batch 3"]:
        return self.s.assign(x)


class ViewOfACall(Typed):
    def build(self) -> None:
        self.c = Getter(self.T)

    @entry
    def f(self, x: Float[Tensor, "Batch 3"]) -> Float[Tensor, "Batch 3"]:
        old = self.c.get()
        return self.c.put(x) + old


class ViewOfAView(Typed):
    def build(self) -> None:
        self.s = State("Batch 3", self.T)

    @entry
    def f(self, x: Float[Tensor, "Batch 3"]) -> Float[Tensor, "Batch 2"]:
        old = slice(self.s.read(), 1, 0, 2)
        self.s.assign(x)
        return old


class ViewAsArgument(Typed):
    def build(self) -> None:
        self.c = Getter(self.T)

    @entry
    def f(self, x: Float[Tensor, "Batch 3"]) -> Float[Tensor, "Batch 3"]:
        return self.c.put(self.c.s.read())


@pytest.mark.parametrize("root", [ViewOfACall, ViewOfAView])
def test_views_are_followed_through_calls_and_shapes(root: type[Block]) -> None:
    with pytest.raises(
        DefinitionError, match=r"A view of the state 'self\.(c\.)?s' is used after the state was written"
    ):
        elaborate(root, T="f32")


def test_a_view_is_not_given_to_what_writes_its_state() -> None:
    with pytest.raises(
        DefinitionError, match=r"Getter.put is given a view of the state 'self.c.s', and writes that"
    ):
        elaborate(ViewAsArgument, T="f32")


class MethodName(Typed):
    def build(self) -> None:
        self.f = Param("3", self.T)  # type: ignore[assignment,method-assign]

    @entry
    def f(self, x: Float[Tensor, "B 3"]) -> Float[Tensor, "B 3"]:
        return x


def test_a_member_called_as_a_method() -> None:
    with pytest.raises(DefinitionError, match=r"MethodName\.f is a method, and build cannot assign it"):
        elaborate(MethodName, T="f32")
