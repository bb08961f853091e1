"""Matrix products and convolutions."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.types import TensorType
from nest.layers._trace import fail
from nest.layers.ops._emit import emit, need_dtype, need_kind, need_rank, need_same, tensor
from nest.layers.tensor import Tensor

__all__ = ["conv", "einsum", "expert_linear", "linear"]


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.T + bias over the last axis: [..., In] and [Out, In] give [..., Out]."""
    x, weight = tensor(x, "linear"), tensor(weight, "linear", "weight")
    bias = None if bias is None else tensor(bias, "linear", "bias")
    need_kind(x, "float", "linear")
    need_rank(weight, 2, "linear", "weight")
    dtype = need_dtype("linear", x=x, weight=weight, bias=bias)
    received = [("x", x.type), ("weight", weight.type)]
    if x.rank < 1:
        raise fail("linear takes a tensor of rank 1 or more for 'x'.", *received)
    need_same(
        x.shape[-1], weight.shape[1], "linear: the last axis of x and of weight must be equal", *received
    )
    if bias is not None:
        need_rank(bias, 1, "linear", "bias")
        received.append(("bias", bias.type))
        need_same(
            weight.shape[0], bias.shape[0], "linear: axis 0 of weight and of bias must be equal", *received
        )
    return emit("linear", [x, weight, bias], TensorType((*x.shape[:-1], weight.shape[0]), dtype))


def expert_linear(x: Tensor, weight: Tensor, experts: Tensor) -> Tensor:
    """linear with a matrix a row: x [N, In], weight [Experts, Out, In], experts Int32[N] give [N, Out]."""
    x, weight = tensor(x, "expert_linear"), tensor(weight, "expert_linear", "weight")
    experts = tensor(experts, "expert_linear", "experts")
    need_rank(x, 2, "expert_linear")
    need_rank(weight, 3, "expert_linear", "weight")
    need_rank(experts, 1, "expert_linear", "experts")
    need_kind(experts, "int", "expert_linear", "experts")
    dtype = need_dtype("expert_linear", x=x, weight=weight)
    received = (("x", x.type), ("weight", weight.type), ("experts", experts.type))
    need_same(
        x.shape[1],
        weight.shape[2],
        "expert_linear: the last axis of x and of weight must be equal",
        *received,
    )
    need_same(x.shape[0], experts.shape[0], "expert_linear: one expert a row", *received)
    return emit("expert_linear", [x, weight, experts], TensorType((x.shape[0], weight.shape[1]), dtype))


def einsum(equation: str, *operands: Tensor) -> Tensor:
    """Einstein's summation, with the equation spelled whole: `"bhqd,bhkd->bhqk"`. No ellipsis.

    A letter is one size wherever it stands; letters that the result lacks are summed.
    """
    given = [tensor(t, "einsum", f"operand {i}") for i, t in enumerate(operands)]
    dtype = need_dtype("einsum", **{f"operand {i}": t for i, t in enumerate(given)})
    inputs, result = _equation(equation, len(given))
    received = [(f"operand {i}", t.type) for i, t in enumerate(given)]
    sizes: dict[str, Dim] = {}
    for letters, t in zip(inputs, given, strict=True):
        if len(letters) != t.rank:
            raise fail(
                f"einsum '{equation}' names {len(letters)} axes of a rank-{t.rank} operand.", *received
            )
        for letter, dim in zip(letters, t.shape, strict=True):
            need_same(
                sizes.setdefault(letter, dim),
                dim,
                f"einsum: the letter '{letter}' must be one size",
                *received,
            )
    if unknown := [c for c in result if c not in sizes]:
        raise fail(f"einsum '{equation}': the result has '{unknown[0]}', which no operand has.", *received)
    return emit(
        "einsum", given, TensorType([sizes[c] for c in result], dtype), equation=equation.replace(" ", "")
    )


def _equation(equation: str, count: int) -> tuple[list[str], str]:
    left, arrow, result = equation.replace(" ", "").partition("->")
    inputs = left.split(",")
    letters = [c for part in (*inputs, result) for c in part]
    if (
        not arrow
        or len(inputs) != count
        or not all(c.isalpha() for c in letters)
        or len(set(result)) != len(result)
    ):
        raise fail(
            f"einsum takes an equation such as 'bqd,bkd->bqk' with one part for each operand; got '{equation}' for "
            f"{count} operands."
        )
    return inputs, result


def conv(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int | tuple[int, ...] = 1,
    padding: int | tuple[int, ...] = 0,
    groups: int | Dim = 1,
) -> Tensor:
    """Cross-correlation over the last one or two axes, channels before them.

    x [B, Cin, L] and weight [Cout, Cin//groups, K] give [B, Cout, (L + 2*padding - K)//stride + 1]; two spatial
    axes likewise. Zeros are padded on both sides of each spatial axis.
    """
    x, weight = tensor(x, "conv"), tensor(weight, "conv", "weight")
    bias = None if bias is None else tensor(bias, "conv", "bias")
    need_kind(x, "float", "conv")
    dtype = need_dtype("conv", x=x, weight=weight, bias=bias)
    received = [("x", x.type), ("weight", weight.type)]
    if x.rank not in (3, 4) or weight.rank != x.rank:
        raise fail("conv takes x [B, Cin, L] or [B, Cin, H, W] and a weight of the same rank.", *received)
    spatial = x.rank - 2
    strides, pads = _each(stride, spatial, "stride"), _each(padding, spatial, "padding")
    count = Dim.of(groups)
    need_same(
        weight.shape[1] * count,
        x.shape[1],
        "conv: axis 1 of weight times groups must be the channels of x",
        *received,
    )
    if bias is not None:
        received.append(("bias", bias.type))
        need_rank(bias, 1, "conv", "bias")
        need_same(
            weight.shape[0], bias.shape[0], "conv: axis 0 of weight and of bias must be equal", *received
        )
    sizes = [
        window(size, kernel, s, p)
        for size, kernel, s, p in zip(x.shape[2:], weight.shape[2:], strides, pads, strict=True)
    ]
    shape = (x.shape[0], weight.shape[0], *sizes)
    attrs = {"stride": strides, "padding": pads, "groups": count}
    return emit("conv", [x, weight, bias], TensorType(shape, dtype), **attrs)


def window(size: Dim, kernel: Dim, stride: int, padding: int) -> Dim:
    """How many places a window of `kernel` takes along an axis."""
    room = size + (2 * padding) - kernel
    return room + 1 if stride == 1 else room // stride + 1


def _each(value: int | tuple[int, ...], count: int, name: str) -> tuple[int, ...]:
    values = (value,) * count if isinstance(value, int) else tuple(value)
    if len(values) != count or any(v < (1 if name == "stride" else 0) for v in values):
        raise fail(f"conv takes a {name} for each of {count} spatial axes, and got {value}.")
    return values
