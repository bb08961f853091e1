"""Llama and its relatives: decoders of one definition, with other defaults for absent keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._rope import ROPE, rope_facts
from nest.adopting.families._text import decoder_tables
from nest.adopting.family import Family, Form, Refused
from nest.adopting.keys import Anything, Flag, Key, Number, Only, Size, Values, shown

__all__ = ["FAMILIES"]

_DECODER: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **ROPE,
    **idle("initializer_range", "attention_dropout", "pretraining_tp"),
    "hidden_size": Size(4096),
    "num_hidden_layers": Size(32),
    "num_attention_heads": Size(32),
    "hidden_act": Only("silu", "swish"),
    "rms_norm_eps": Number(1e-6),
    "tie_word_embeddings": Flag(False),
}
"""Keys that all of them have."""

_LLAMA: Mapping[str, Key] = {
    **_DECODER,
    "vocab_size": Size(32000),
    "intermediate_size": Size(11008),
    "num_key_value_heads": Size(None),
    "head_dim": Size(None),
    "max_position_embeddings": Size(2048),
    "attention_bias": Only(False),
    "mlp_bias": Only(False),
}

# What old checkpoints keep beside their parameters, and compute anew.
_BUFFERS = ("model.layers.{i}.self_attn.rotary_emb.inv_freq",)


def _decoder(values: Values) -> dict[str, Any]:
    """Generics and static fields that all of them have."""
    heads, width = values["num_attention_heads"], values["hidden_size"]
    return {
        "D": width,
        "Heads": heads,
        "KvHeads": values["num_key_value_heads"] or heads,
        "HeadDim": values["head_dim"] or width // heads,
        "Inner": values["intermediate_size"],
        "Layers": values["num_hidden_layers"],
        "Vocab": values["vocab_size"],
        "MaxTokens": values["max_position_embeddings"],
        **rope_facts(values),
        "eps": values["rms_norm_eps"],
        "tied": values["tie_word_embeddings"],
    }


def _llama(values: Values) -> dict[str, Any]:
    if values["hidden_size"] % values["num_attention_heads"]:
        raise Refused(
            f"'hidden_size' is {values['hidden_size']}, and a multiple of 'num_attention_heads' = "
            f"{values['num_attention_heads']} is expected"
        )
    return _decoder(values)


def window_of(values: Values) -> dict[str, Any]:
    """The window that all layers have, by the keys of Qwen.

    Raises:
        Refused: some layers have one and others none.
    """
    size = values["sliding_window"] if values["use_sliding_window"] else None
    layers, first = values["num_hidden_layers"], values["max_window_layers"]
    kinds = values["layer_types"]
    if kinds is None:
        kinds = [_SLIDING if size is not None and layer >= first else _FULL for layer in range(layers)]
    if not isinstance(kinds, list) or len(kinds) != layers or set(kinds) - {_SLIDING, _FULL}:
        raise Refused(
            f"'layer_types' is {shown(kinds)}, and '{_FULL}' or '{_SLIDING}' for each layer is expected"
        )
    if len(set(kinds)) > 1:
        key = "layer_types" if values["layer_types"] is not None else "max_window_layers"
        raise Refused(
            f"'{key}' gives some layers a window and others none, and the definition has one for all"
        )
    if kinds[0] == _FULL:
        return {}
    if size is None:
        raise Refused(f"'layer_types' has '{_SLIDING}', and there is no window: see 'use_sliding_window'")
    return {"window": size}


_SLIDING, _FULL = "sliding_attention", "full_attention"

_MISTRAL: Mapping[str, Key] = {
    **_LLAMA,
    "intermediate_size": Size(14336),
    "num_key_value_heads": Size(8, optional=True),
    "max_position_embeddings": Size(131072),
    "sliding_window": Size(4096, optional=True),
}

_QWEN2: Mapping[str, Key] = {
    **_DECODER,
    "vocab_size": Size(151936),
    "intermediate_size": Size(22016),
    "num_key_value_heads": Size(32, optional=True),
    # Its configuration has none of its own, and the network takes one that is written there.
    "head_dim": Size(None),
    "max_position_embeddings": Size(32768),
    "use_sliding_window": Flag(False),
    "sliding_window": Size(4096, optional=True),
    "max_window_layers": Anything(28),
    "layer_types": Anything(),
}

_QWEN3: Mapping[str, Key] = {**_QWEN2, "head_dim": Size(128), "attention_bias": Only(False)}


def _qwen(values: Values, **facts: Any) -> dict[str, Any]:
    if type(values["max_window_layers"]) is not int:
        raise Refused(
            f"'max_window_layers' is {shown(values['max_window_layers'])}, and a whole number is expected"
        )
    return {**_decoder(values), **facts, **window_of(values)}


def _family(
    model_type: str, architecture: str, like: str, keys: Mapping[str, Key], generics: Callable[[Values], Any]
) -> Family:
    return Family(
        model_type=model_type,
        forms={architecture: Form(like, idle=_BUFFERS)},
        keys=keys,
        generics=generics,
        tables=decoder_tables,
        rules=_RULES,
    )


# What SmolLM2's bindings do not have, because it has no such parameters.
_RULES = {
    "head": "lm_head.weight",
    **{
        f"layers.{{i}}.attention.{name}_proj.bias": f"model.layers.{{i}}.self_attn.{name}_proj.bias"
        for name in ("q", "k", "v")
    },
    **{
        f"layers.{{i}}.attention.{name}_norm.weight": f"model.layers.{{i}}.self_attn.{name}_norm.weight"
        for name in ("q", "k")
    },
}

_PHI3: Mapping[str, Key] = {
    **_DECODER,
    **idle("resid_pdrop", "embd_pdrop", "original_max_position_embeddings"),
    "vocab_size": Size(32064),
    "hidden_size": Size(3072),
    "intermediate_size": Size(8192),
    "num_key_value_heads": Size(None),
    "head_dim": Size(None),
    "max_position_embeddings": Size(4096),
    "rms_norm_eps": Number(1e-5),
    "sliding_window": Size(None),
    "attention_bias": Only(False),
}

FAMILIES = (
    _family("llama", "LlamaForCausalLM", "smollm2-135m-instruct", _LLAMA, _llama),
    _family(
        "mistral",
        "MistralForCausalLM",
        "mistral-7b-instruct-v0.3",
        _MISTRAL,
        lambda values: {**_decoder(values), "window": values["sliding_window"]},
    ),
    _family(
        "qwen2",
        "Qwen2ForCausalLM",
        "qwen2.5-0.5b-instruct",
        _QWEN2,
        lambda values: _qwen(values, qkv_bias=True),
    ),
    _family("qwen3", "Qwen3ForCausalLM", "qwen3-0.6b", _QWEN3, lambda values: _qwen(values, qk_norm=True)),
    _family(
        "phi3",
        "Phi3ForCausalLM",
        "phi-3-mini-4k-instruct",
        _PHI3,
        lambda values: {**_decoder(values), "window": values["sliding_window"]},
    ),
)
