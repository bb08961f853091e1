"""transformers' CLIP behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import filled, tower
from nest.verify.library._shared import StatelessLibrary, library_name, sizes_of

__all__ = ["build"]


def build(entry: Entry, program: Program, params: Mapping[str, np.ndarray[Any, Any]]) -> StatelessLibrary:
    """The library's two encoders over these parameters, in f32."""
    import torch
    from transformers import CLIPConfig, CLIPModel

    sizes, facts = sizes_of(program), program.root.statics
    text = {
        "vocab_size": sizes["Vocab"],
        "max_position_embeddings": sizes["MaxTokens"],
        "bos_token_id": 0,
        "eos_token_id": 2,
    }
    config = CLIPConfig(
        text_config={**tower(sizes, "Text"), **text, "hidden_act": facts["activation"]},
        vision_config={
            **tower(sizes, "Vision"),
            "image_size": sizes["Grid"] * sizes["Patch"],
            "patch_size": sizes["Patch"],
            "num_channels": sizes["Channels"],
            "hidden_act": facts["activation"],
        },
        projection_dim=sizes["Joint"],
    )
    with torch.device("meta"):
        empty: Any = CLIPModel(config)
    model = filled(empty, params, lambda path: library_name(entry, path))
    return StatelessLibrary(
        {
            "embed_image": lambda pixels, mask: _unit(_image(model, pixels, mask)),
            "embed_text": lambda tokens, lengths: _unit(_text(model, tokens, lengths)),
            "similarity": lambda images, texts: _logits(model, images, texts),
            "match": lambda images, texts: _logits(model, images, texts).softmax(dim=1),
        },
        model,
    )


def _image(model: Any, pixels: Any, mask: Any) -> Any:
    """As the library's vision model has it, which takes no mask itself."""
    import torch

    vision = model.vision_model
    seen = torch.nn.functional.pad(mask, (1, 0), value=True)[:, None, None]
    x = vision.pre_layrnorm(vision.embeddings(pixels, interpolate_pos_encoding=True))
    x = vision.encoder(inputs_embeds=x, attention_mask=seen).last_hidden_state
    return model.visual_projection(vision.post_layernorm(x[:, 0]))


def _text(model: Any, tokens: Any, lengths: Any) -> Any:
    """The state of the last token; the library takes that of the largest id, which in a text is the end token's."""
    import torch

    ids = tokens[:, : int(lengths.max())]
    places = torch.arange(ids.shape[1])[None]
    states = model.text_model(input_ids=ids, position_ids=places).last_hidden_state
    last = states[range(len(lengths)), lengths - 1]
    return model.text_projection(last)


def _unit(x: Any) -> Any:
    return x / x.norm(dim=-1, keepdim=True)


def _logits(model: Any, images: Any, texts: Any) -> Any:
    return images @ texts.t() * model.logit_scale.exp()
