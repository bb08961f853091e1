"""Sizes that are known only when a graph runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx_ir as ir
import pytest

from nest.layers import (
    Block,
    Dim,
    DType,
    Float,
    Int32,
    Tensor,
    broadcast_to,
    conv,
    entry,
    full,
    iota,
    pad,
    slice,
)


class Sizes(Block):
    T: DType

    @entry
    def go(
        self, x: Float[Tensor, "B N 4"], w: Float[Tensor, "4 4 3"]
    ) -> tuple[
        Int32[Tensor, "3"], Float[Tensor, "B (N-2)//2+1 4"], Float[Tensor, "B N//2 4"], Float[Tensor, "B N+B 4"],
        Int32[Tensor, "N*B-(N-5)//3"], Float[Tensor, "B*N 2 2"], Float[Tensor, "N B B N 4"],
    ]:  # fmt: skip
        B, N, _ = x.shape
        y = conv(x.permute(0, 2, 1), w, stride=2, padding=0).permute(0, 2, 1)
        return (
            full((3,), (N - 9) // 4, "i32"),
            pad(y, 1, 0, (N - 2) // 2 + 1 - y.shape[1]),
            slice(x, 1, 0, N // 2),
            pad(x, 1, B, 0, value=1.5),
            iota(N * B - (N - 5) // 3),
            x.reshape(B * N, 2, 2),
            broadcast_to(x, (N, B, B, N, 4)),
        )


@pytest.mark.parametrize(("rows", "length"), [(1, 5), (2, 6), (3, 12), (1, 3)])
def test_sizes_are_computed_as_the_definition_says(rows: int, length: int, pair: Callable[..., Any]) -> None:
    model, oracle = pair(Sizes)
    rng = np.random.default_rng(length)
    inputs = [rng.standard_normal(s).astype("f4") for s in ((rows, length, 4), (4, 4, 3))]
    for got, want in zip(model.go(*inputs), oracle.go(*inputs), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-5)


class Reshapes(Block):
    D: Dim
    H: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.H == 0)

    @entry
    def go(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B H N D//H"]:
        B, N, D = x.shape
        return x.reshape(B, N, self.H, D // self.H).permute(0, 2, 1, 3)


def test_a_reshape_that_keeps_its_symbols_computes_no_size(pair: Callable[..., Any]) -> None:
    model, _ = pair(Reshapes, D=6, H=2)
    assert [n.op_type for n in model.graph("go").graph] == ["Reshape", "Transpose"]


def test_axes_are_named_as_the_signature_spells_them(pair: Callable[..., Any]) -> None:
    model, _ = pair(Reshapes, D=6, H=2)
    graph = model.graph("go").graph
    assert [(v.name, _axes(v)) for v in graph.inputs] == [("x", ["B", "N", 6])]
    assert [(v.name, _axes(v)) for v in graph.outputs] == [("result", ["B", 2, "N", 3])]


def _axes(value: ir.Value) -> list[Any]:
    return [d if isinstance(d, int) else d.value for d in value.shape or ()]


class Repeated(Block):
    """What several layers compute again: positions from the same dim, the same row of indices."""

    T: DType

    @entry
    def go(self, x: Float[Tensor, "B N"]) -> Int32[Tensor, "N"]:
        N = x.shape[1]
        return iota(N) + iota(N) * iota(N)


def test_equal_computations_are_one_node(pair: Callable[..., Any]) -> None:
    model, _ = pair(Repeated)
    kinds = [n.op_type for n in model.graph("go").graph]
    assert kinds.count("Range") == 1
    assert kinds.count("Shape") == 1
    np.testing.assert_array_equal(model.go(np.zeros((1, 4), "f4")), np.arange(4) + np.arange(4) ** 2)
