"""What generated source may not trip over: sizes that build named, parameters without axes, layers at two ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.backends.installed import BACKENDS
from nest.layers import Block, Dim, DType, Float, LayerNorm, Param, Static, Tensor, entry, slice


class Odd(Block):
    D: Dim
    T: DType
    extra: Static[int] = 3

    def build(self) -> None:
        self.Count = self.D * 2 + self.extra
        self.table = Param("Count D", self.T)
        self.rest = Param("D+extra", self.T)
        self.gain = Param("", self.T)
        self.norm = LayerNorm(self.D, self.T)

    @entry
    def forward(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B D"]:
        B = x.shape[0]
        whole = self.norm(x)
        first = self.norm(slice(whole, 1, 0, 1).reshape(B, self.D))
        return (first + slice(self.table, 0, 1, 2)) * self.gain + slice(self.rest, 0, 0, self.D)


@pytest.mark.parametrize("backend", [name for name in BACKENDS if BACKENDS[name].installed])
def test_they_run_everywhere(backend: str) -> None:
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, ...]] = {
        "table": (11, 4),
        "rest": (7,),
        "gain": (),
        "norm.weight": (4,),
        "norm.bias": (4,),
    }
    weights = {name: np.asarray(rng.standard_normal(shape), np.float32) for name, shape in shapes.items()}
    x = rng.standard_normal((2, 3, 4)).astype(np.float32)

    def norm(v: Any) -> Any:
        centred = v - v.mean(-1, keepdims=True)
        scaled = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        return scaled * weights["norm.weight"] + weights["norm.bias"]

    wanted = (norm(norm(x)[:, 0]) + weights["table"][1]) * weights["gain"] + weights["rest"][:4]
    model = nest.load(Odd, backend=backend, weights=weights, D=4)
    session = model.new_session()
    np.testing.assert_allclose(session.numpy(session.run_entry("forward", [x])), wanted, atol=1e-5)
