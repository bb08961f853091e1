"""transformers' ModernBERT behind nest's entries."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._shared import StatelessLibrary, load_tensors, sizes_of

__all__ = ["build"]

Array = np.ndarray[Any, Any]

_OUTER = {
    "token_embedding": "model.embeddings.tok_embeddings.weight",
    "embedding_norm.weight": "model.embeddings.norm.weight",
    "final_norm.weight": "model.final_norm.weight",
    "head.weight": "head.dense.weight",
    "head_norm.weight": "head.norm.weight",
    "head_bias": "decoder.bias",
}
_LAYER = {
    "attn.Wqkv": ("attention.query", "attention.key", "attention.value"),
    "attn.Wo": ("attention.output",),
    "mlp_norm": ("mlp_norm",),
    "mlp.Wi": ("mlp.gate_proj", "mlp.up_proj"),
    "mlp.Wo": ("mlp.down_proj",),
}


def build(entry: Entry, program: Program, params: Mapping[str, Array]) -> StatelessLibrary:
    """The library's model over these parameters, in f32."""
    from transformers import ModernBertForMaskedLM

    config = _config(sizes_of(program), program.root.statics)
    model = load_tensors(
        lambda: ModernBertForMaskedLM(config),
        _tensors(params, config.num_hidden_layers),
        absent=("decoder.weight",),
    )

    def encode(tokens: Any, lengths: Any) -> Any:
        import torch

        counted = torch.arange(tokens.shape[1])[None] < lengths[:, None]
        return model.model(input_ids=tokens, attention_mask=counted.long()).last_hidden_state

    def mask_logits(tokens: Any, lengths: Any) -> Any:
        return model.decoder(model.head(encode(tokens, lengths)))

    def mask_logits_at(tokens: Any, places: Any, lengths: Any) -> Any:
        logits = mask_logits(tokens, lengths)
        return logits.gather(1, places[..., None].expand(-1, -1, logits.shape[-1]))

    entries: dict[str, Callable[..., Any]] = {"encode": encode, "mask_logits": mask_logits}
    entries["mask_logits_at"] = mask_logits_at
    return StatelessLibrary(entries, model)


def _config(sizes: Mapping[str, int], statics: Mapping[str, Any]) -> Any:
    from transformers import ModernBertConfig

    kinds = [
        "sliding_attention" if i % statics["period"] else "full_attention" for i in range(sizes["Layers"])
    ]
    thetas = {"full_attention": statics["global_theta"], "sliding_attention": statics["local_theta"]}
    make: Any = ModernBertConfig
    return make(
        vocab_size=sizes["Vocab"],
        hidden_size=sizes["D"],
        intermediate_size=sizes["Inner"],
        num_hidden_layers=sizes["Layers"],
        num_attention_heads=sizes["Heads"],
        max_position_embeddings=sizes["MaxTokens"],
        norm_eps=statics["eps"],
        local_attention=statics["window"],
        layer_types=kinds,
        rope_parameters={k: {"rope_type": "default", "rope_theta": t} for k, t in thetas.items()},
        pad_token_id=0,
        bos_token_id=0,
        eos_token_id=0,
        cls_token_id=0,
        sep_token_id=0,
    )


def _tensors(params: Mapping[str, Array], layers: int) -> dict[str, Array]:
    """The parameters as the library has them: queries, keys and values in one matrix, gate and up in another."""
    found = {name: params[path] for path, name in _OUTER.items()}
    for i in range(layers):
        for name, paths in _LAYER.items():
            parts = [params[f"layers.{i}.{path}.weight"] for path in paths]
            found[f"model.layers.{i}.{name}.weight"] = np.concatenate(parts)
        if i:
            found[f"model.layers.{i}.attn_norm.weight"] = params[f"layers.{i}.attention_norm.weight"]
    return found
