"""transformers' ViT behind nest's entries."""

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
    "norm1": "layernorm_before",
    "norm2": "layernorm_after",
    "out_proj": "o_proj",
    "norm": "layernorm",
}


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> StatelessLibrary:
    """The library's classifier over these parameters, in f32; images of other sizes have positions interpolated."""
    import torch
    from transformers import ViTConfig, ViTForImageClassification

    sizes, facts = sizes_of(program), program.root.statics
    make: Any = ViTConfig
    config = make(
        image_size=sizes["Grid"] * sizes["Patch"],
        patch_size=sizes["Patch"],
        num_channels=sizes["Channels"],
        hidden_size=sizes["D"],
        num_attention_heads=sizes["Heads"],
        intermediate_size=sizes["Inner"],
        num_hidden_layers=sizes["Layers"],
        num_labels=sizes["Classes"],
        layer_norm_eps=facts["eps"],
        hidden_act=facts["activation"],
    )
    with torch.device("meta"):
        empty: Any = ViTForImageClassification(config)
    model = filled(empty, params, _library_name)

    def options(mask: Any) -> dict[str, Any]:
        seen = torch.nn.functional.pad(mask, (1, 0), value=True)
        return {"attention_mask": seen, "interpolate_pos_encoding": True}

    return StatelessLibrary(
        {
            "forward": lambda pixels, mask: model(pixels, **options(mask)).logits,
            "encode": lambda pixels, mask: model.vit(pixels, **options(mask)).last_hidden_state,
        },
        model,
    )


def _library_name(path: str) -> str:
    name = renamed(path, _NAMES)
    return name if name.startswith("classifier.") else f"vit.{name}"
