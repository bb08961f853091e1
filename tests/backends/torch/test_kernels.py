"""What the plan `fast` calls on torch, without a GPU: the same as torch's own, and none of it in the exact plan."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")

import torch
from torch.nn import functional as F  # noqa: N812

import nest
from nest.backends.torch import helpers, kernels
from nest.backends.torch.kept import keep_by_heads
from nest.backends.torch.module import _store_time_major
from nest.ir.inventory import parameters
from nest.ir.plan import plan
from nest.layers import Block, Dim, DType, Float, Linear, State, Static, Tensor, elaborate, entry, split_heads
from nest.loading import program_of
from nest.weights.random import random_parameters


def random(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32))


def test_without_a_gpu_they_are_torch_s_own() -> None:
    x, weight, bias = random(2, 5, 8), random(8), random(8)
    assert torch.equal(kernels.layer_norm(x, weight, bias, 1e-5), F.layer_norm(x, (8,), weight, bias, 1e-5))
    assert torch.equal(kernels.rms_norm(x, weight, 1e-6), helpers.rms_norm(x, weight, 1e-6))
    conv = random(4, 5, 3)
    for activation, function in ((None, lambda y: y), ("gelu", F.gelu)):
        got = kernels.conv1d(x, conv, bias[:4], stride=2, padding=1, activation=activation)
        assert torch.equal(got, function(F.conv1d(x, conv, bias[:4], stride=2, padding=1)))
    q = random(1, 2, 70, 16)
    assert torch.equal(kernels.attend(q, q, q), F.scaled_dot_product_attention(q, q, q))


def test_keys_and_values_are_kept_by_heads() -> None:
    model = _tiny()
    exact, fast = model.new_session(), model.new_session(plan="fast")
    assert fast.model.source.count("kernels.keep_heads(") == 1
    mel = random(1, 80, 3000)
    for session in (exact, fast):
        session.listen(mel)
    for path, kept in exact._live().items():
        torch.testing.assert_close(fast._live()[path], kept)


class Keeper(Block):
    """Keeps two projections of what it hears, the first under the first name or under the second."""

    D: Dim
    Heads: Dim
    Audio: Dim
    T: DType
    crossed: Static[bool] = False

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.k_proj = Linear(self.D, self.D, self.T)
        self.v_proj = Linear(self.D, self.D, self.T)
        self.k = State("Batch Heads Audio D//Heads", self.T)
        self.v = State("Batch Heads Audio D//Heads", self.T)

    @entry
    def listen(self, x: Float[Tensor, "Batch Audio D"]) -> Float[Tensor, "Batch Audio D"]:
        keys, values = (split_heads(made, self.Heads) for made in (self.k_proj(x), self.v_proj(x)))
        self.k.assign(values if self.crossed else keys)
        self.v.assign(keys if self.crossed else values)
        return x


@pytest.mark.parametrize("crossed", [False, True])
def test_halves_in_their_order_are_kept_by_one_kernel(crossed: bool) -> None:
    made = plan(elaborate(Keeper, D=8, Heads=2, Audio=5, T="f32", crossed=crossed), "fast")
    keep_by_heads(made.program)
    written = [n.attrs for f in made.program.functions() for n in f.nodes if n.op == "assign"]
    assert [("second" in attrs) for attrs in written] == ([False, False] if crossed else [True])


def test_convolutions_over_time_take_their_activation() -> None:
    model = _tiny()
    fast, exact = model.new_session(plan="fast").model.source, model.source
    assert fast.count("kernels.conv1d(") == fast.count('activation="gelu"') > 0
    assert "kernels.layer_norm(" in fast
    assert "F.conv1d" not in fast
    assert "kernels" not in exact


def test_weights_of_convolutions_lie_as_the_kernel_reads_them() -> None:
    model = _tiny()
    fast = model.new_session(plan="fast").model
    assert fast.conv1_weight.is_contiguous()
    _store_time_major(fast, plan(model.program, "fast").program)
    for name in ("conv1_weight", "conv2_weight"):
        turned, own = getattr(fast, name), getattr(model, name)
        assert torch.equal(turned, own)
        assert turned.transpose(1, 2).is_contiguous()
        assert own.is_contiguous(), "the exact plan's weights stay as they are"


def _tiny() -> Any:
    program = program_of("whisper-tiny")
    return nest.load("whisper-tiny", backend="torch", weights=random_parameters(parameters(program)))
