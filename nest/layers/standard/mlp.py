"""The gated feed-forward layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Static
from nest.layers.block import Block
from nest.layers.standard.linear import Linear
from nest.layers.tensor import Tensor

__all__ = ["GatedMlp"]

_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "silu": ops.silu,
    "gelu": ops.gelu,
    "gelu_tanh": partial(ops.gelu, approximate=True),
}


class GatedMlp(Block):
    """down(activation(gate(x)) * up(x)) (Shazeer, 2020, arXiv 2002.05202).

    SwiGLU with `silu`, GeGLU with `gelu` and, by the tanh formula, `gelu_tanh`.
    """

    D: Dim
    Inner: Dim
    T: DType
    activation: Static[str] = "silu"

    def build(self) -> None:
        self.gate_proj = Linear(self.D, self.Inner, self.T, bias=False)
        self.up_proj = Linear(self.D, self.Inner, self.T, bias=False)
        self.down_proj = Linear(self.Inner, self.D, self.T, bias=False)

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        """[*S, D] -> [*S, D]."""
        gate = _ACTIVATIONS[self.activation](self.gate_proj(x))
        y: Tensor = self.down_proj(gate * self.up_proj(x))
        return y
