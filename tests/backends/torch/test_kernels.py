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
from nest.backends.torch.module import _store_time_major
from nest.ir.inventory import parameters
from nest.ir.plan import plan
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
