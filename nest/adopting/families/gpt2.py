"""GPT-2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._text import decoder_tables
from nest.adopting.family import Family, Form, Refused
from nest.adopting.keys import Key, Number, Only, Size, Values, shown

__all__ = ["FAMILIES"]

_ALIASES = {
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}

_KEYS: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **idle(
        "resid_pdrop", "embd_pdrop", "attn_pdrop", "initializer_range", "summary_type", "summary_use_proj",
        "summary_activation", "summary_proj_to_labels", "summary_first_dropout",
        # The order of the same sum, for training in half precision; a name that the library has given up.
        "reorder_and_upcast_attn", "n_ctx",
    ),
    "vocab_size": Size(50257),
    "n_positions": Size(1024),
    "n_embd": Size(768),
    "n_layer": Size(12),
    "n_head": Size(12),
    "n_inner": Size(None),
    "layer_norm_epsilon": Number(1e-5),
    "activation_function": Only("gelu_new", "gelu_pytorch_tanh"),
    "scale_attn_weights": Only(True),
    "scale_attn_by_inverse_layer_idx": Only(False),
    "tie_word_embeddings": Only(True),
    **{alias: Size(None) for alias in _ALIASES},
}  # fmt: skip


def _generics(values: Values) -> dict[str, Any]:
    for alias, name in _ALIASES.items():
        # A second name of the same fact, which would take the place of the first.
        if alias in values.given and values[alias] != values[name]:
            raise Refused(
                f"'{alias}' is {shown(values[alias])}, and '{name}', which means the same, is {values[name]}"
            )
    return {
        "D": values["n_embd"],
        "Heads": values["n_head"],
        "Inner": values["n_inner"] or 4 * values["n_embd"],
        "Layers": values["n_layer"],
        "Vocab": values["vocab_size"],
        "MaxTokens": values["n_positions"],
        "eps": values["layer_norm_epsilon"],
    }


FAMILIES = (
    Family(
        model_type="gpt2",
        forms={"GPT2LMHeadModel": Form("gpt2", idle=("h.{i}.attn.masked_bias", "h.{i}.attn.bias"))},
        keys=_KEYS,
        generics=_generics,
        tables=decoder_tables,
        prefix="transformer.",
    ),
)
