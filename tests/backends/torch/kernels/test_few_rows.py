"""Kernels of few rows against the same in torch, f32: by Triton's interpreter, or on a GPU where there is one."""

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

from nest.backends.torch.kernels.few_rows import Slab, linear_few
from nest.backends.torch.kernels.heard_attention import attend_heard
from nest.backends.torch.kernels.likeliest import embed, likeliest
from nest.backends.torch.kernels.many_rows import Norm
from nest.backends.torch.kernels.parts import Parts
from nest.backends.torch.kernels.step_attention import Heads, Rotation, attend_step

# The interpreter's own.
pytestmark = pytest.mark.filterwarnings(
    "ignore:Conversion of an array:DeprecationWarning", "ignore::RuntimeWarning"
)

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
TYPES = [torch.float32, torch.float16]


def random(*shape: int, dtype: torch.dtype = torch.float32, scale: float = 1.0, seed: int = 0) -> Tensor:
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))) * scale
    return made.to(DEVICE, dtype)


def close(got: Tensor, expected: Tensor) -> None:
    """Within what rounding the result, and what a norm gives the matrix unit, to got's type explains."""
    bound = {torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}[got.dtype]
    assert ((got.float() - expected).norm() / expected.norm()).item() < bound


def normed(x: Tensor, norm: Norm | None) -> Tensor:
    if norm is None:
        return x
    weight, bias = (None if t is None else t.float() for t in norm[1:3])
    if norm.kind == "rms":
        return F.rms_norm(x, x.shape[-1:], weight, norm.eps)
    return F.layer_norm(x, x.shape[-1:], weight, bias, norm.eps)


def norm_of(kind: str | None, K: int, dtype: torch.dtype) -> Norm | None:
    if kind is None:
        return None
    return Norm(
        kind, 1 + random(K, dtype=dtype, scale=0.1), random(K, dtype=dtype) if kind == "layer" else None, 1e-5
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", [1, 3, 20])
@pytest.mark.parametrize(
    ("kind", "activation", "gated", "bias", "residual"),
    [
        ("layer", None, False, True, False),
        ("layer", "gelu", False, True, False),
        ("rms", "silu", True, False, False),
        (None, "gelu_tanh", True, True, True),
        (None, None, False, True, True),
    ],
)
def test_linear(dtype, rows, kind, activation, gated, bias, residual) -> None:
    K, N = 72, 37
    x = random(1, rows, K, dtype=dtype) + 0.3
    weight = random(N * (1 + gated), K, dtype=dtype, scale=K**-0.5)
    b = random(N * (1 + gated), dtype=dtype) if bias else None
    added = random(1, rows, N, dtype=dtype) if residual else None
    norm = norm_of(kind, K, dtype)
    got = linear_few(x, weight, b, norm=norm, activation=activation, gated=gated, residual=added)
    y = F.linear(normed(x.float(), norm), weight.float(), None if b is None else b.float())
    act = {
        None: lambda t: t, "gelu": F.gelu, "silu": F.silu, "gelu_tanh": lambda t: F.gelu(t, approximate="tanh"),
    }[activation]  # fmt: skip
    y = act(y[..., :N]) * y[..., N:] if gated else act(y)
    close(got, y if added is None else y + added.float())


def test_a_long_row_is_read_in_pieces() -> None:
    x, weight, added = random(1, 1, 300), random(10, 300), random(1, 1, 10)
    got = linear_few(x, weight, residual=added, slab=Slab(4, 64, 4))
    close(got, F.linear(x, weight) + added)


def heads_of(x: Tensor, count: int) -> Tensor:
    return x.unflatten(-1, (count, -1)).transpose(1, 2).float()


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("rows", [1, 2])
def test_attention_to_what_was_heard(dtype, splits, rows) -> None:
    H, KV, E, K = 4, 2, 24, 75
    q = random(2, rows, H * E, dtype=dtype)
    k, v = (random(2, KV, K, E, dtype=dtype, seed=seed) for seed in range(2))
    expected = F.scaled_dot_product_attention(heads_of(q, H), k.float(), v.float(), enable_gqa=True)
    expected = expected.transpose(1, 2).flatten(2)
    for early in (False, True):
        got = attend_heard(q, k, v, split=(splits, 16, 1), early=early)
        close(got.whole() if isinstance(got, Parts) else got, expected)


def test_parts_are_combined_by_what_reads_them() -> None:
    q, k, v = random(1, 1, 64), random(1, 2, 75, 32), random(1, 2, 75, 32, seed=1)
    weight, added = random(20, 64), random(1, 1, 20)
    parts = attend_heard(q, k, v, split=(5, 16, 1))
    close(linear_few(parts, weight, residual=added), F.linear(parts.whole(), weight) + added)


def turned(x: Tensor, slots: Tensor, rotation: Rotation | None) -> Tensor:
    """x [B, S, H, E] at slots [B, S]."""
    if rotation is None:
        return x
    angles = slots[..., None, None] * rotation.inv_freq
    R = 2 * rotation.inv_freq.shape[0]
    x, rest = x[..., :R], x[..., R:]
    a, b = (x[..., ::2], x[..., 1::2]) if rotation.interleaved else x.chunk(2, -1)
    c, s = angles.cos() * rotation.scale, angles.sin() * rotation.scale
    pair = (a * c - b * s, b * c + a * s)
    return torch.cat(
        [torch.stack(pair, -1).flatten(-2) if rotation.interleaved else torch.cat(pair, -1), rest], -1
    )


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("splits", [1, 3])
@pytest.mark.parametrize("S", [1, 3])
@pytest.mark.parametrize("form", ["plain", "halves", "pairs, part of a head", "halves, normed"])
def test_attention_of_a_step(dtype, splits, S, form) -> None:
    """Against attention over caches that are written first; slots beyond a row's own are poison."""
    B, H, KV, E, C = 2, 4, 2, 24, 60
    pos = torch.tensor([0, 41], dtype=torch.int32, device=DEVICE)
    packed = random(B, S, (H + 2 * KV) * E, dtype=dtype)
    caches = [random(B, KV, C, E, dtype=dtype, seed=i) for i in range(2)]
    for cache in caches:
        for b in range(B):
            cache[b, :, int(pos[b]) :] = float("nan")
    rotation = None
    if form != "plain":
        R = 16 if "part" in form else E
        rotation = Rotation(100.0 ** -(torch.arange(0, R, 2, device=DEVICE) / R), "pairs" in form, 1.25)
    weights = (
        [1 + random(E, dtype=dtype, scale=0.2, seed=i) for i in range(2)]
        if "normed" in form
        else [None, None]
    )
    slots = pos[:, None] + torch.arange(S, device=DEVICE)
    parts = packed.float().split([H * E, KV * E, KV * E], -1)
    q, k, v = (t.unflatten(-1, (-1, E)) for t in parts)
    if "normed" in form:
        q, k = (F.rms_norm(t, (E,), w.float(), 1e-6) for t, w in zip((q, k), weights, strict=True))
    q, k = (turned(t, slots, rotation).to(dtype).float() for t in (q, k))
    expected, kept = [], [c.float() for c in caches]
    for b in range(B):
        at = int(pos[b])
        for cache, new in zip(kept, (k, v), strict=True):
            cache[b, :, at : at + S] = new[b].transpose(0, 1)
        mask = torch.arange(at + S, device=DEVICE) <= slots[b][:, None]
        y = F.scaled_dot_product_attention(
            q[b].transpose(0, 1),
            *(c[b, :, : at + S].repeat_interleave(H // KV, 0) for c in kept),
            attn_mask=mask,
        )
        expected.append(y.transpose(0, 1).flatten(1))
    got = attend_step(
        packed, *caches, pos, Heads(H, KV, E), rotation=rotation, q_norm=weights[0], k_norm=weights[1], eps=1e-6,
        split=(splits, 16, 1),
    )  # fmt: skip
    close(got.whole() if isinstance(got, Parts) else got, torch.stack(expected))
    for cache, wanted in zip(caches, kept, strict=True):
        for b in range(B):
            end = int(pos[b]) + S
            close(cache[b, :, :end], wanted[b, :, :end])
            assert cache[b, :, end:].isnan().all()


def test_a_step_past_the_end_of_the_caches_writes_nothing() -> None:
    caches = [torch.zeros(1, 1, 8, 16, device=DEVICE) for _ in range(2)]
    pos = torch.tensor([8], dtype=torch.int32, device=DEVICE)
    attend_step(random(1, 1, 48), *caches, pos, Heads(1, 1, 16))
    assert not any(c.any() for c in caches)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("kind", [None, "layer", "rms"])
def test_likeliest(dtype, rows, kind) -> None:
    K, N = 40, 333
    x, weight = random(rows, K, dtype=dtype), random(N, K, dtype=dtype, scale=0.3)
    bias = random(N)
    bias[::3] = float("-inf")
    norm = norm_of(kind, K, dtype)
    logits = F.linear(normed(x.float(), norm), weight.float()) + bias
    index, largest, mass = likeliest(x, weight, bias, norm=norm)
    assert index.dtype == torch.int32
    assert index.tolist() == logits.argmax(-1).tolist()
    bound = 1e-5 if dtype == torch.float32 or rows == 1 else 5e-3
    torch.testing.assert_close(largest, logits.amax(-1), rtol=bound, atol=bound)
    torch.testing.assert_close(
        mass, (logits - logits.amax(-1, keepdim=True)).exp().sum(-1), rtol=4 * bound, atol=bound
    )


@pytest.mark.parametrize("rows", [1, 2])
def test_of_equals_the_first_is_the_likeliest(rows) -> None:
    """Within a block and in different ones."""
    x, weight = torch.ones(rows, 16, device=DEVICE), torch.zeros(200, 16, device=DEVICE)
    weight[[70, 75, 180]] = 1.0
    index, largest, _ = likeliest(x, weight)
    assert index.tolist() == [70] * rows
    assert largest.tolist() == [16.0] * rows
    assert likeliest(x, weight * 0)[0].tolist() == [0] * rows


@pytest.mark.parametrize("rows", [1, 2])
def test_numbers_that_are_none_give_an_id_of_the_vocabulary(rows) -> None:
    x, weight = torch.full((rows, 16), float("nan"), device=DEVICE), torch.ones(200, 16, device=DEVICE)
    assert all(0 <= i < 200 for i in likeliest(x, weight)[0].tolist())


def test_embedding() -> None:
    table, positions = random(50, 24), random(30, 24)
    ids = torch.tensor([[3, 49], [0, 7]], dtype=torch.int32, device=DEVICE)
    pos = torch.tensor([4, 9], dtype=torch.int32, device=DEVICE)
    slots = pos[:, None] + torch.arange(2, device=DEVICE)
    assert torch.equal(embed(ids, table), table[ids.long()])
    close(embed(ids, table, positions, pos), table[ids.long()] + positions[slots.long()])
