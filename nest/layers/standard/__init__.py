"""The standard layers: blocks that users of every framework know, written once over the ops."""

from nest.layers.standard.attention import merge_heads, split_heads
from nest.layers.standard.conv import Conv1d, Conv2d
from nest.layers.standard.embedding import Embedding
from nest.layers.standard.linear import Linear
from nest.layers.standard.norm import GroupNorm, LayerNorm, RMSNorm

__all__ = [
    "Conv1d",
    "Conv2d",
    "Embedding",
    "GroupNorm",
    "LayerNorm",
    "Linear",
    "RMSNorm",
    "merge_heads",
    "split_heads",
]
