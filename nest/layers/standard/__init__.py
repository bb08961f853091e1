"""The standard layers: blocks that users of every framework know, written once over the ops."""

from nest.layers.standard.attention import merge_heads, split_heads
from nest.layers.standard.conv import Conv1d, Conv2d
from nest.layers.standard.embedding import Embedding
from nest.layers.standard.encoder import Mlp, PreNormLayer, SelfAttention, activate
from nest.layers.standard.grouped_attention import GroupedAttention
from nest.layers.standard.linear import Linear
from nest.layers.standard.mlp import GatedMlp
from nest.layers.standard.norm import BatchNorm, GroupNorm, LayerNorm, RMSNorm
from nest.layers.standard.resize import CubicResize
from nest.layers.standard.rope import rope_frequencies
from nest.layers.standard.vision import PatchEmbedding, PatchPositions

__all__ = [
    "BatchNorm",
    "Conv1d",
    "Conv2d",
    "CubicResize",
    "Embedding",
    "GatedMlp",
    "GroupNorm",
    "GroupedAttention",
    "LayerNorm",
    "Linear",
    "Mlp",
    "PatchEmbedding",
    "PatchPositions",
    "PreNormLayer",
    "RMSNorm",
    "SelfAttention",
    "activate",
    "merge_heads",
    "rope_frequencies",
    "split_heads",
]
