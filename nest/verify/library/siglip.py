"""transformers' SigLIP behind nest's entries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._renaming import filled, tower
from nest.verify.library._shared import StatelessLibrary, library_name, sizes_of

__all__ = ["build"]

Array = np.ndarray[Any, Any]

_ACTIVATIONS = {"gelu_tanh": "gelu_pytorch_tanh"}


def build(entry: Entry, program: Program, params: Mapping[str, Array]) -> StatelessLibrary:
    """The library's two encoders over these parameters, in f32."""
    import torch
    from transformers import SiglipConfig, SiglipModel

    sizes, facts = sizes_of(program), program.root.statics
    activation = _ACTIVATIONS.get(facts["activation"], facts["activation"])
    both = {"layer_norm_eps": facts["eps"], "hidden_act": activation}
    text = {
        "vocab_size": sizes["Vocab"],
        "max_position_embeddings": sizes["MaxTokens"],
        "bos_token_id": 0,
        "eos_token_id": 1,
    }
    config = SiglipConfig(
        text_config={**tower(sizes, "Text"), **text, **both, "projection_size": sizes["VisionD"]},
        vision_config={
            **tower(sizes, "Vision"),
            **both,
            "image_size": sizes["Grid"] * sizes["Patch"],
            "patch_size": sizes["Patch"],
            "num_channels": sizes["Channels"],
        },
    )
    with torch.device("meta"):
        empty: Any = SiglipModel(config)
    names = {path: library_name(entry, path) for path in params if not path.startswith(_FUSED)}
    fused = {path: path for path in ("in_proj_weight", "in_proj_bias")}
    model = filled(empty, _with_fused(params), lambda path: names.get(path) or _HEAD + fused[path])
    return StatelessLibrary(
        {
            "embed_image": lambda pixels, mask: _unit(_image(model.vision_model, pixels, mask)),
            "embed_text": lambda tokens: _unit(_text(model.text_model, tokens)),
            "similarity": lambda images, texts: _logits(model, images, texts),
            "match": lambda images, texts: _logits(model, images, texts).sigmoid(),
        },
        model,
    )


_HEAD = "vision_model.head.attention."
_FUSED = tuple(f"vision.pool.{letter}_proj." for letter in "qkv")


def _with_fused(params: Mapping[str, Array]) -> dict[str, Array]:
    """The pool's three projections as the library has them, in one matrix."""
    kept = {path: array for path, array in params.items() if not path.startswith(_FUSED)}
    for kind in ("weight", "bias"):
        kept[f"in_proj_{kind}"] = np.concatenate([params[prefix + kind] for prefix in _FUSED])
    return kept


def _image(vision: Any, pixels: Any, mask: Any) -> Any:
    """As the library's vision model has it, which takes no mask itself."""
    x = vision.embeddings(pixels, interpolate_pos_encoding=True)
    x = vision.encoder(inputs_embeds=x, attention_mask=mask[:, None, None]).last_hidden_state
    x, head = vision.post_layernorm(x), vision.head
    probe = head.probe.repeat(len(x), 1, 1)
    found = head.attention(probe, x, x, key_padding_mask=~mask)[0]
    return (found + head.mlp(head.layernorm(found)))[:, 0]


def _text(text: Any, tokens: Any) -> Any:
    import torch

    places = torch.arange(tokens.shape[1])[None]
    return text(input_ids=tokens, position_ids=places).pooler_output


def _unit(x: Any) -> Any:
    return x / x.norm(dim=-1, keepdim=True)


def _logits(model: Any, images: Any, texts: Any) -> Any:
    return images @ texts.t() * model.logit_scale.exp() + model.logit_bias
