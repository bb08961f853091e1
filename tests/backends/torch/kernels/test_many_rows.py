"""Kernels of many rows against the same in torch, f32: by Triton's interpreter, or on a GPU where there is one."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from torch import Tensor
from torch.nn import functional as F  # noqa: N812

if not torch.cuda.is_available() and not os.environ.get("TRITON_INTERPRET"):
    pytest.skip("Triton kernels need a GPU, or TRITON_INTERPRET=1", allow_module_level=True)

from nest.backends.torch.kernels.conv import conv_rows
from nest.backends.torch.kernels.encoder_attention import attend_all
from nest.backends.torch.kernels.many_rows import Norm, Tile, norm_rows
from nest.backends.torch.kernels.products import linear_heads

# The interpreter's own.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Conversion of an array:DeprecationWarning", "ignore::RuntimeWarning"
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def random(*shape: int, dtype: torch.dtype = torch.float16, scale: float = 1.0) -> Tensor:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape))) * scale
    return made.to(DEVICE, dtype)


def close(got: Tensor, expected: Tensor) -> None:
    """Within what rounding to 16 bits explains."""
    bound = {torch.float16: 1e-3, torch.bfloat16: 8e-3}[got.dtype]
    assert ((got.float() - expected).norm() / expected.norm()).item() < bound


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("width", [16, 40])
@pytest.mark.parametrize("kind", ["layer", "rms"])
def test_norms(kind: str, width: int, dtype: torch.dtype) -> None:
    x, weight = random(2, 7, width, dtype=dtype) + 3, random(width, dtype=dtype)
    if kind == "layer":
        bias = random(width, dtype=dtype, scale=0.5)
        expected = F.layer_norm(x.float(), (width,), weight.float(), bias.float(), 1e-5)
    else:
        bias, expected = None, F.rms_norm(x.float(), (width,), weight.float(), 1e-5)
    close(norm_rows(x, Norm(kind, weight, bias, 1e-5)), expected)
    turned = x.transpose(0, 1).contiguous().transpose(0, 1)
    assert torch.equal(
        norm_rows(turned, Norm(kind, weight, bias, 1e-5)), norm_rows(x, Norm(kind, weight, bias, 1e-5))
    )


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 1])
@pytest.mark.parametrize(("channels", "activation"), [(8, "gelu"), (16, None)])
def test_convolutions(channels: int, activation: str | None, padding: int, stride: int) -> None:
    x, weight, bias = random(2, 45, channels), random(20, channels, 3, scale=0.3), random(20)
    expected = F.conv1d(
        x.transpose(1, 2).float(), weight.float(), bias.float(), stride=stride, padding=padding
    ).transpose(1, 2)
    got = conv_rows(
        x, weight.transpose(1, 2).contiguous(), bias, stride=stride, padding=padding, activation=activation,
        tile=Tile(16, 16, 16, 4, 2),
    )  # fmt: skip
    close(got, F.gelu(expected) if activation else expected)


def test_gelu_of_all_numbers() -> None:
    """A convolution with one tap and one channel gives the activation of each finite number of 16 bits."""
    numbers = torch.arange(1 << 16, dtype=torch.int32).to(torch.int16).view(torch.float16)
    x = numbers[torch.isfinite(numbers)].reshape(1, -1, 1).to(DEVICE)
    one = torch.ones(1, 1, 1, dtype=torch.float16, device=DEVICE)
    got = conv_rows(x, one, activation="gelu", tile=Tile(4096, 16, 16, 4, 2))
    torch.testing.assert_close(got, F.gelu(x.float()).half(), rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize(("queries", "keys"), [(40, 96), (33, 70)])
def test_attention(queries: int, keys: int, splits: int) -> None:
    q, k, v = (random(2, n, 3, 16).transpose(1, 2) for n in (queries, keys, keys))
    got = attend_all(3 * q, k, v, scale=0.5, tile=Tile(16, 16, 0, 4, 2), splits=splits)
    expected = F.scaled_dot_product_attention(3 * q.float(), k.float(), v.float(), scale=0.5)
    close(got, expected)
    assert torch.equal(got, attend_all(3 * q, k, v, scale=0.5, tile=Tile(16, 16, 0, 4, 2), splits=splits))


@pytest.mark.parametrize("depth", [16, 32])
@pytest.mark.parametrize("biased", [True, False])
def test_products_by_heads(biased: bool, depth: int) -> None:
    x, weight, bias = random(2, 37, 48), random(2 * 3 * 16, 48, scale=0.2), random(96) if biased else None
    first, second = (
        torch.full((2, 3, 37, 16), float("nan"), dtype=torch.float16, device=DEVICE) for _ in range(2)
    )
    linear_heads(first, second, x, weight, bias, tile=Tile(16, 16, depth, 4, 2))
    expected = F.linear(x.float(), weight.float(), None if bias is None else bias.float())
    for got, half in zip((first, second), expected.chunk(2, dim=2), strict=True):
        close(got, half.reshape(2, 37, 3, 16).transpose(1, 2))
