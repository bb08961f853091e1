"""transformers' decoders of nest's sizes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["decoder_model"]

_ROPE_SCALING = ("factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
_CLASSES = {
    "llama": ("LlamaConfig", "LlamaForCausalLM"),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM"),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM"),
    "phi3": ("Phi3Config", "Phi3ForCausalLM"),
    "gpt2": ("GPT2Config", "GPT2LMHeadModel"),
}

_NO_IDS = dict.fromkeys(("bos_token_id", "eos_token_id", "pad_token_id"))
"""The library's own would end texts, and may lie outside a small vocabulary."""


def decoder_model(family: str, generics: Mapping[str, Any], statics: Mapping[str, Any]) -> Any:
    """The library's model of a family and these sizes, with weights of its own."""
    import transformers

    config, model = (getattr(transformers, name) for name in _CLASSES[family])
    given = _gpt2(generics, statics) if family == "gpt2" else _llama(family, generics, statics)
    return model(config(**given, **_NO_IDS))


def _llama(family: str, g: Mapping[str, Any], s: Mapping[str, Any]) -> dict[str, Any]:
    rope: dict[str, Any] = {"rope_type": "default", "rope_theta": s["rope_theta"]}
    if s["rope_scaling"] is not None:
        rope |= {"rope_type": "llama3", **dict(zip(_ROPE_SCALING, s["rope_scaling"], strict=True))}
    made = {
        "vocab_size": g["Vocab"],
        "hidden_size": g["D"],
        "intermediate_size": g["Inner"],
        "num_hidden_layers": g["Layers"],
        "num_attention_heads": g["Heads"],
        "num_key_value_heads": g["KvHeads"],
        "head_dim": g["HeadDim"],
        "max_position_embeddings": g["MaxTokens"],
        "rms_norm_eps": s["eps"],
        "rope_parameters": rope,
        "tie_word_embeddings": s["tied"],
    }
    if family == "phi3":
        made |= {"sliding_window": s["window"], "original_max_position_embeddings": g["MaxTokens"]}
    return made


def _gpt2(g: Mapping[str, Any], s: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "vocab_size": g["Vocab"],
        "n_embd": g["D"],
        "n_inner": g["Inner"],
        "n_layer": g["Layers"],
        "n_head": g["Heads"],
        "n_positions": g["MaxTokens"],
        "layer_norm_epsilon": s["eps"],
    }
