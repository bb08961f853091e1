"""The layer API: what a zoo entry's definition is written in. See `README.md` in this folder."""

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.layers import ops
from nest.layers.annotations import Bool, Fill, Float, Float32, Int32, Static
from nest.layers.array import BlockArray, block_array
from nest.layers.block import Batch, Block, Capacity
from nest.layers.entry import elaborate, entry
from nest.layers.members import Buffer, Param, State
from nest.layers.ops import *  # noqa: F403
from nest.layers.standard import (
    BatchNorm,
    Conv1d,
    Conv2d,
    CubicResize,
    Embedding,
    GatedMlp,
    GroupedAttention,
    GroupNorm,
    LayerNorm,
    Linear,
    Mlp,
    PatchEmbedding,
    PatchPositions,
    PreNormLayer,
    RMSNorm,
    SelfAttention,
    activate,
    merge_heads,
    rope_frequencies,
    split_heads,
)
from nest.layers.tensor import Tensor

__all__ = [
    "Batch",
    "BatchNorm",
    "Block",
    "BlockArray",
    "Bool",
    "Buffer",
    "Capacity",
    "Conv1d",
    "Conv2d",
    "CubicResize",
    "DType",
    "Dim",
    "Embedding",
    "PreNormLayer",
    "Fill",
    "Float",
    "Float32",
    "GatedMlp",
    "GroupNorm",
    "GroupedAttention",
    "Int32",
    "LayerNorm",
    "Linear",
    "Mlp",
    "Param",
    "PatchEmbedding",
    "PatchPositions",
    "RMSNorm",
    "SelfAttention",
    "State",
    "Static",
    "Tensor",
    "activate",
    "block_array",
    "elaborate",
    "entry",
    "merge_heads",
    "ops",
    "rope_frequencies",
    "split_heads",
    *ops.__all__,
]
