"""transformers' ResNet behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import filled
from nest.verify.library._shared import StatelessLibrary, library_name, sizes_of

__all__ = ["build"]


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> StatelessLibrary:
    """The library's classifier over these parameters and statistics, in f32."""
    import torch
    from transformers import ResNetConfig, ResNetForImageClassification

    sizes, facts = sizes_of(program), program.root.statics
    make: Any = ResNetConfig
    config = make(
        num_channels=sizes["Channels"],
        embedding_size=sizes["Stem"],
        hidden_sizes=list(facts["widths"]),
        depths=list(facts["depths"]),
        layer_type="bottleneck" if facts["bottleneck"] else "basic",
        num_labels=sizes["Classes"],
    )
    with torch.device("meta"):
        empty: Any = ResNetForImageClassification(config)
    model = filled(empty, params, lambda path: library_name(entry, path))
    return StatelessLibrary(
        {
            "forward": lambda pixels: model(pixels).logits,
            "embed_image": lambda pixels: model.resnet(pixels).pooler_output.flatten(1),
        },
        model,
    )
