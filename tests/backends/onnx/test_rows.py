"""Rows between products: no node shapes them back, and what needs the other axes still has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nest.layers import Block, Dim, DType, Float, LayerNorm, Linear, Tensor, entry, gelu


class Mlp(Block):
    """A residual pair of products, and the ways out of rows: another operand's axes, a permutation, a broadcast."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.norm = LayerNorm(self.D, self.T)
        self.up = Linear(self.D, 2 * self.D, self.T)
        self.down = Linear(2 * self.D, self.D, self.T)

    @entry
    def alone(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        return self.down(gelu(self.up(self.norm(self.down(self.up(x))))))

    @entry
    def mixed(self, x: Float[Tensor, "B N D"], some: Float[Tensor, "N D"]) -> Float[Tensor, "N B D"]:
        y = self.down(self.up(x)) + x
        return self.down(self.up(y + some)).permute(1, 0, 2) * 2.0


def test_products_follow_each_other(pair: Callable[..., Any]) -> None:
    model, oracle = pair(Mlp, D=5)
    kinds = [n.op_type for n in model.graph("alone").graph]
    assert kinds.count("Gemm") == 4
    assert kinds.count("Reshape") == 2  # to rows, and back at the end
    x = np.random.default_rng(0).standard_normal((3, 4, 5)).astype("f4")
    np.testing.assert_allclose(model.alone(x), oracle.alone(x), rtol=0, atol=1e-5)


def test_what_looks_at_other_axes_has_them(pair: Callable[..., Any]) -> None:
    model, oracle = pair(Mlp, D=5)
    rng = np.random.default_rng(1)
    for rows, count in ((3, 4), (1, 4), (3, 1), (2, 2)):
        x, some = (rng.standard_normal(s).astype("f4") for s in ((rows, count, 5), (count, 5)))
        np.testing.assert_allclose(model.mixed(x, some), oracle.mixed(x, some), rtol=0, atol=1e-5)
