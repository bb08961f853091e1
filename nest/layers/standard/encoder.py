"""The pre-norm transformer layer that encoders of pictures, and of the texts that go with them, are made of."""

from __future__ import annotations

from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Bool, Float, Static
from nest.layers.block import Block
from nest.layers.standard.attention import merge_heads, split_heads
from nest.layers.standard.linear import Linear
from nest.layers.standard.norm import LayerNorm
from nest.layers.tensor import Tensor

__all__ = ["Mlp", "PreNormLayer", "SelfAttention", "activate"]


def activate(x: Tensor, name: str) -> Tensor:
    """An activation by its name: `"gelu"`, `"gelu_tanh"`, `"quick_gelu"` (x * sigmoid(1.702 x)), `"relu"`, `"silu"`."""
    if name == "quick_gelu":
        return x * ops.sigmoid(x * 1.702)
    if name in ("gelu", "gelu_tanh"):
        return ops.gelu(x, approximate=name == "gelu_tanh")
    if name not in ("relu", "silu"):
        raise DefinitionError(
            f"activate knows 'gelu', 'gelu_tanh', 'quick_gelu', 'relu' and 'silu', and got {name!r}."
        )
    return ops.relu(x) if name == "relu" else ops.silu(x)


class SelfAttention(Block):
    """Multi-head attention of a sequence to itself; each of the four projections has a bias."""

    D: Dim
    Heads: Dim
    T: DType

    def build(self) -> None:
        self.require(self.D % self.Heads == 0)
        self.q_proj = Linear(self.D, self.D, self.T)
        self.k_proj = Linear(self.D, self.D, self.T)
        self.v_proj = Linear(self.D, self.D, self.T)
        self.out_proj = Linear(self.D, self.D, self.T)

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """Every place sees the places where the mask is True."""
        B, N = mask.shape
        q, k, v = self.heads(x)
        y: Tensor = self.out_proj(merge_heads(ops.attention(q, k, v, mask=mask.reshape(B, 1, 1, N))))
        return y

    def causal(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Place i sees places 0 to i."""
        q, k, v = self.heads(x)
        y: Tensor = self.out_proj(merge_heads(ops.attention(q, k, v, causal=True)))
        return y

    def heads(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        projections = (self.q_proj(x), self.k_proj(x), self.v_proj(x))
        q, k, v = (split_heads(p, self.Heads) for p in projections)
        return q, k, v


class Mlp(Block):
    """Two linear layers around an activation, one of those that `activate` knows."""

    D: Dim
    Inner: Dim
    T: DType
    activation: Static[str] = "gelu"

    def build(self) -> None:
        self.fc1 = Linear(self.D, self.Inner, self.T)
        self.fc2 = Linear(self.Inner, self.D, self.T)

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        """[*S, D] -> [*S, D]."""
        y: Tensor = self.fc2(activate(self.fc1(x), self.activation))
        return y


class PreNormLayer(Block):
    """Self-attention and an MLP, each over a normalized input and added to it."""

    D: Dim
    Heads: Dim
    Inner: Dim
    T: DType
    eps: Static[float] = 1e-5
    activation: Static[str] = "gelu"

    def build(self) -> None:
        self.norm1 = LayerNorm(self.D, self.T, eps=self.eps)
        self.attention = SelfAttention(self.D, self.Heads, self.T)
        self.norm2 = LayerNorm(self.D, self.T, eps=self.eps)
        self.mlp = Mlp(self.D, self.Inner, self.T, activation=self.activation)

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        """Every place sees the places where the mask is True."""
        x = x + self.attention(self.norm1(x), mask)
        y: Tensor = x + self.mlp(self.norm2(x))
        return y

    def causal(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B N D"]:
        """Place i sees places 0 to i."""
        x = x + self.attention.causal(self.norm1(x))
        y: Tensor = x + self.mlp(self.norm2(x))
        return y
