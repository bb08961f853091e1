"""Matrix products and convolutions, accumulated in f32."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from nest.backends.jax.rules._registry import rule
from nest.backends.jax.rules.platform import current_platform

__all__: list[str] = []


@rule
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias over the last axis; weight is [Out, In]. Both are used in x's type."""
    weight = weight.astype(x.dtype)
    # Not x @ weight.T: on the CPU, XLA would then copy the transposed weight at every call.
    y = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
    return (y if bias is None else y + bias.astype(x.dtype)).astype(x.dtype)


@rule
def quantized_linear(x: Array, values: Array, scales: Array, bias: Array | None = None) -> Array:
    """x @ weight.T + bias; the weight is values [In, Out] times scales [Out], or groups of two a byte less 8."""
    if values.ndim == 2:
        weight = (values.astype(jnp.float32) * scales).astype(x.dtype)
        y = jnp.matmul(x, weight, preferred_element_type=jnp.float32)
    else:
        nibbles = jnp.stack([values & 15, values >> 4], -1).reshape(*scales.shape, -1)
        weight = (nibbles.astype(jnp.float32) - 8) * scales[..., None]
        weight = weight.astype(x.dtype).reshape(values.shape[0], -1)
        y = lax.dot_general(x, weight, (((x.ndim - 1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
    return (y if bias is None else y + bias.astype(x.dtype)).astype(x.dtype)


@rule
def expert_linear(x: Array, weight: Array, experts: Array) -> Array:
    """Row n of x [N, In] times matrix experts[n] of weight [Experts, Out, In]."""
    y = jnp.einsum("ni,noi->no", x, weight[experts], preferred_element_type=jnp.float32)
    return y.astype(x.dtype)


@rule
def einsum(*operands: Array, equation: str) -> Array:
    """Einstein's summation."""
    return jnp.einsum(equation, *operands, preferred_element_type=jnp.float32).astype(operands[0].dtype)


@rule
def conv(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    *,
    stride: tuple[int, ...],
    padding: tuple[int, ...],
    groups: int = 1,
) -> Array:
    """Cross-correlation of x [B, Cin, ...] with weight [Cout, Cin//groups, ...], zeros padded on both sides."""
    weight = weight.astype(x.dtype)
    if x.ndim == 3 and groups == 1 and current_platform() == "gpu":
        # One matrix product over the taps, which GPUs run faster than their convolutions of this kind.
        signal = jnp.pad(x, ((0, 0), (0, 0), (padding[0], padding[0]))).transpose(0, 2, 1)
        last = signal.shape[1] - weight.shape[2]
        taps = [signal[:, t : t + last + 1 : stride[0]] for t in range(weight.shape[2])]
        filters = weight.transpose(0, 2, 1).reshape(weight.shape[0], -1)
        y = jnp.einsum("blk,ok->bol", jnp.concatenate(taps, -1), filters, preferred_element_type=jnp.float32)
    else:
        y = lax.conv_general_dilated(
            x, weight, stride, [(p, p) for p in padding], feature_group_count=groups,
            preferred_element_type=jnp.float32,
        )  # fmt: skip
    if bias is not None:
        y = y + bias.astype(x.dtype).reshape(-1, *[1] * len(stride))
    return y.astype(x.dtype)


@rule
def max_pool(x: Array, *, kernel: int, stride: int, padding: int) -> Array:
    """The largest element of each window of x [B, C, H, W]; padding never wins."""
    window, strides = (1, 1, kernel, kernel), (1, 1, stride, stride)
    sides = [(0, 0), (0, 0), (padding, padding), (padding, padding)]
    largest: Array = lax.reduce_window(x, -jnp.inf, lax.max, window, strides, sides)
    return largest
