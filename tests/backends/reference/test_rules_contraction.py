"""Products, convolutions, pooling and normalizations against torch, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from nest.backends.reference.rules import RULES

RNG = np.random.default_rng(3)


def draw(*shape: int) -> Any:
    return RNG.normal(size=shape)


def t(x: Any) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(x))


def check(result: Any, expected: torch.Tensor) -> None:
    assert result.shape == tuple(expected.shape)
    assert np.abs(result - expected.numpy()).max(initial=0.0) < 1e-12


@pytest.mark.parametrize("lead", [(), (4,), (2, 3)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear(lead: tuple[int, ...], with_bias: bool) -> None:
    x, weight, bias = draw(*lead, 5), draw(7, 5), draw(7) if with_bias else None
    check(
        RULES["linear"](x, weight, bias),
        functional.linear(t(x), t(weight), None if bias is None else t(bias)),
    )


def test_expert_linear_takes_a_matrix_for_each_row() -> None:
    x, weight, experts = (
        draw(6, 5),
        draw(4, 3, 5),
        np.array([3, 0, 3, 1, 0, 3], np.int32),
    )
    expected = torch.einsum("ni,noi->no", t(x), t(weight)[torch.from_numpy(experts).long()])
    check(RULES["expert_linear"](x, weight, experts), expected)


@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("bhqd,bhkd->bhqk", [(2, 3, 4, 5), (2, 3, 6, 5)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("ii->i", [(3, 3)]),
        ("bi,ij,bj->b", [(2, 3), (3, 4), (2, 4)]),
        ("i,j->ij", [(3,), (4,)]),
    ],
)
def test_einsum(equation: str, shapes: list[tuple[int, ...]]) -> None:
    operands = [draw(*shape) for shape in shapes]
    check(
        RULES["einsum"](*operands, equation=equation),
        torch.einsum(equation, *map(t, operands)),
    )


@settings(deadline=None, max_examples=60)
@given(
    spatial=st.integers(1, 2),
    groups=st.sampled_from([1, 2, 3]),
    kernel=st.integers(1, 3),
    stride=st.integers(1, 3),
    padding=st.integers(0, 2),
    room=st.integers(0, 4),
    with_bias=st.booleans(),
)
def test_conv(
    spatial: int,
    groups: int,
    kernel: int,
    stride: int,
    padding: int,
    room: int,
    with_bias: bool,
) -> None:
    # The second axis differs in every respect, so that a swap of the two shows.
    kernels, strides = (kernel, 2)[:spatial], (stride, 2)[:spatial]
    pads, sizes = (padding, 1)[:spatial], (kernel + room, 5)[:spatial]
    x, weight = draw(2, 2 * groups, *sizes), draw(3 * groups, 2, *kernels)
    bias = draw(3 * groups) if with_bias else None
    convolve = functional.conv1d if spatial == 1 else functional.conv2d
    expected = convolve(t(x), t(weight), None if bias is None else t(bias), strides, pads, 1, groups)
    check(
        RULES["conv"](x, weight, bias, stride=strides, padding=pads, groups=groups),
        expected,
    )


def test_conv_of_the_depth_of_its_channels() -> None:
    x, weight = draw(2, 5, 9), draw(5, 1, 3)
    result = RULES["conv"](x, weight, None, stride=(1,), padding=(1,), groups=5)
    check(result, functional.conv1d(t(x), t(weight), None, 1, 1, 1, 5))


@pytest.mark.parametrize(
    ("kernel", "stride", "padding"),
    [(2, 2, 0), (3, 2, 1), (3, 1, 1), (1, 1, 0), (2, 3, 1)],
)
def test_max_pool(kernel: int, stride: int, padding: int) -> None:
    x = draw(2, 3, 7, 8) - 10.0  # all negative: padding with zeros would win
    result = RULES["max_pool"](x, kernel=kernel, stride=stride, padding=padding)
    check(result, functional.max_pool2d(t(x), kernel, stride, padding))


@pytest.mark.parametrize("eps", [1e-5, 0.1])
@pytest.mark.parametrize(("with_weight", "with_bias"), [(True, True), (True, False), (False, False)])
def test_layer_norm(eps: float, with_weight: bool, with_bias: bool) -> None:
    x, weight, bias = (
        draw(2, 3, 6),
        draw(6) if with_weight else None,
        draw(6) if with_bias else None,
    )
    expected = functional.layer_norm(
        t(x),
        (6,),
        None if weight is None else t(weight),
        None if bias is None else t(bias),
        eps,
    )
    check(RULES["layer_norm"](x, weight, bias, eps=eps), expected)


@pytest.mark.parametrize("eps", [1e-6, 0.1])
def test_rms_norm(eps: float) -> None:
    x, weight = draw(2, 3, 6), draw(6)
    check(
        RULES["rms_norm"](x, weight, eps=eps),
        functional.rms_norm(t(x), (6,), t(weight), eps),
    )
    check(RULES["rms_norm"](x, None, eps=eps), functional.rms_norm(t(x), (6,), None, eps))


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 4, 5)])
@pytest.mark.parametrize("groups", [1, 2, 3])
def test_group_norm(shape: tuple[int, ...], groups: int) -> None:
    x, weight, bias = draw(*shape), draw(6), draw(6)
    result = RULES["group_norm"](x, weight, bias, groups=groups, eps=1e-3)
    check(result, functional.group_norm(t(x), groups, t(weight), t(bias), 1e-3))


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 5), (2, 6, 4, 5)])
def test_batch_norm_uses_the_stored_statistics(shape: tuple[int, ...]) -> None:
    x, mean, variance, weight, bias = (
        draw(*shape),
        draw(6),
        np.abs(draw(6)),
        draw(6),
        draw(6),
    )
    expected = functional.batch_norm(t(x), t(mean), t(variance), t(weight), t(bias), False, 0.0, 1e-3)
    check(RULES["batch_norm"](x, mean, variance, weight, bias, eps=1e-3), expected)


def test_norms_of_a_constant_are_finite() -> None:
    x = np.full((1, 4), 3.0)
    np.testing.assert_array_equal(RULES["layer_norm"](x, None, None, eps=1e-5), np.zeros((1, 4)))
    np.testing.assert_array_equal(RULES["rms_norm"](0 * x, None, eps=1e-6), np.zeros((1, 4)))
