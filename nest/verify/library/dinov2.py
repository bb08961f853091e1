"""transformers' DINOv2 behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import filled, renamed
from nest.verify.library._shared import StatelessLibrary, sizes_of

__all__ = ["build"]

_NAMES = {
    "class_token": "embeddings.cls_token",
    "patches": "embeddings.patch_embeddings.projection",
    "positions.weight": "embeddings.position_embeddings",
    "layers": "encoder.layer",
    "scale1": "layer_scale1.lambda1",
    "scale2": "layer_scale2.lambda1",
    "out_proj": "o_proj",
    "norm": "layernorm",
}


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> StatelessLibrary:
    """The library's model over these parameters, in f32; pictures of other sizes have positions interpolated."""
    import torch
    from transformers import Dinov2Config, Dinov2Model

    sizes, facts = sizes_of(program), program.root.statics
    make: Any = Dinov2Config
    config = make(
        image_size=sizes["Grid"] * sizes["Patch"],
        patch_size=sizes["Patch"],
        num_channels=sizes["Channels"],
        hidden_size=sizes["D"],
        num_attention_heads=sizes["Heads"],
        mlp_ratio=sizes["Inner"] // sizes["D"],
        num_hidden_layers=sizes["Layers"],
        layer_norm_eps=facts["eps"],
        hidden_act=facts["activation"],
    )
    with torch.device("meta"):
        empty: Any = Dinov2Model(config)
    # It stands for patches that were hidden while the model was trained.
    empty.embeddings.mask_token = None
    model = filled(empty, params, lambda path: renamed(path, _NAMES))

    def states(pixels: Any, mask: Any) -> Any:
        seen = torch.nn.functional.pad(mask, (1, 0), value=True)
        return model(pixels, attention_mask=seen)

    return StatelessLibrary(
        {
            "forward": lambda pixels, mask: states(pixels, mask).last_hidden_state,
            "embed_image": lambda pixels, mask: states(pixels, mask).pooler_output,
        },
        model,
    )
