"""Causal self-attention of decoders: grouped heads, rotary positions, caches."""

from __future__ import annotations

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Float, Float32, Int32, Static
from nest.layers.block import Block
from nest.layers.members import State
from nest.layers.standard.attention import merge_heads
from nest.layers.standard.linear import Linear
from nest.layers.standard.norm import RMSNorm
from nest.layers.tensor import Tensor

__all__ = ["GroupedAttention"]


class GroupedAttention(Block):
    """Causal self-attention with rotary positions, where several query heads share a key and value head.

    Ainslie et al., 2023, "GQA", arXiv 2305.13245; with as many key heads as query heads it is plain attention. A
    session keeps keys, already turned, and values.

    Args:
        HeadDim: elements of a head; Heads * HeadDim need not be D.
        qkv_bias: queries, keys and values have biases (Qwen 2).
        qk_norm: the epsilon of a norm over each head of queries and keys, before they are turned (Qwen 3).
        window: a query sees only the last `window` keys, its own among them.
        scale, softcap: of scores, as `attention` has them (Gemma 2).
    """

    D: Dim
    Heads: Dim
    KvHeads: Dim
    HeadDim: Dim
    T: DType
    qkv_bias: Static[bool] = False
    qk_norm: Static[float | None] = None
    window: Static[int | None] = None
    scale: Static[float | None] = None
    softcap: Static[float | None] = None

    def build(self) -> None:
        self.require(self.Heads % self.KvHeads == 0)
        self.require(self.HeadDim % 2 == 0)
        self.q_proj = Linear(self.D, self.Heads * self.HeadDim, self.T, bias=self.qkv_bias)
        self.k_proj = Linear(self.D, self.KvHeads * self.HeadDim, self.T, bias=self.qkv_bias)
        self.v_proj = Linear(self.D, self.KvHeads * self.HeadDim, self.T, bias=self.qkv_bias)
        self.o_proj = Linear(self.Heads * self.HeadDim, self.D, self.T, bias=False)
        self.q_norm = None if self.qk_norm is None else RMSNorm(self.HeadDim, self.T, eps=self.qk_norm)
        self.k_norm = None if self.qk_norm is None else RMSNorm(self.HeadDim, self.T, eps=self.qk_norm)
        self.k_cache = State("Batch KvHeads Capacity HeadDim", self.T, write_axis=2)
        self.v_cache = State("Batch KvHeads Capacity HeadDim", self.T, write_axis=2)

    def forward(self, x: Float[Tensor, "B S D"], inv_freq: Float32[Tensor, "R"]) -> Float[Tensor, "B S D"]:
        """Without caches: the whole of each row."""
        q, k, v = self.heads(x, ops.full((x.shape[0],), 0, "i32"), inv_freq)
        return self.merged(self.seen(q, k, v))

    def prefill(
        self, x: Float[Tensor, "Batch S D"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch S D"]:
        """The prompt, from slot 0."""
        q, k, v = self.heads(x, ops.full((x.shape[0],), 0, "i32"), inv_freq)
        # What a shorter row's padding writes is overwritten by its own tokens before any query sees it.
        self.k_cache.update(k, 0)
        self.v_cache.update(v, 0)
        return self.merged(self.seen(q, k, v))

    def step(
        self, x: Float[Tensor, "Batch 1 D"], pos: Int32[Tensor, "Batch"], inv_freq: Float32[Tensor, "R"]
    ) -> Float[Tensor, "Batch 1 D"]:
        """One token of each row, at its own slot."""
        q, k, v = self.heads(x, pos, inv_freq)
        keys = self.k_cache.update(k, pos)
        values = self.v_cache.update(v, pos)
        return self.merged(self.seen(q, keys, values, pos))

    def heads(
        self, x: Float[Tensor, "B S D"], pos: Int32[Tensor, "B"], inv_freq: Float32[Tensor, "R"]
    ) -> tuple[
        Float[Tensor, "B Heads S HeadDim"],
        Float[Tensor, "B KvHeads S HeadDim"],
        Float[Tensor, "B KvHeads S HeadDim"],
    ]:
        """Queries and keys, turned by their positions pos, pos+1, ..., and values."""
        B, S, _ = x.shape
        q = self.q_proj(x).reshape(B, S, self.Heads, self.HeadDim)
        k = self.k_proj(x).reshape(B, S, self.KvHeads, self.HeadDim)
        v = self.v_proj(x).reshape(B, S, self.KvHeads, self.HeadDim)
        if self.q_norm is not None and self.k_norm is not None:
            q, k = self.q_norm(q), self.k_norm(k)
        turned = (ops.rope(t.permute(0, 2, 1, 3), pos, inv_freq) for t in (q, k))
        return *turned, v.permute(0, 2, 1, 3)

    def seen(self, q: Tensor, keys: Tensor, values: Tensor, pos: Tensor | None = None):  # type: ignore[no-untyped-def]
        return ops.attention(
            q, keys, values, pos, causal=True, window=self.window, scale=self.scale, softcap=self.softcap
        )

    def merged(self, heads: Float[Tensor, "B Heads S HeadDim"]) -> Float[Tensor, "B S D"]:
        """What the heads found, as one vector of each place."""
        x: Tensor = self.o_proj(merge_heads(heads))
        return x
