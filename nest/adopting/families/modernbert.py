"""ModernBERT: the model of masked words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._text import mask_tables
from nest.adopting.family import Family, Form, Refused
from nest.adopting.keys import Anything, Key, Number, Only, Size, Values, shown

__all__ = ["FAMILIES"]

_SLIDING, _FULL = "sliding_attention", "full_attention"

_KEYS: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **idle(
        "cls_token_id", "initializer_range", "initializer_cutoff_factor", "attention_dropout", "embedding_dropout",
        "mlp_dropout", "classifier_pooling", "classifier_dropout",
        "deterministic_flash_attn", "sparse_pred_ignore_index", "reference_compile", "repad_logits_with_grad",
        # The published file has these two of BERT's, and the library reads neither.
        "layer_norm_eps", "position_embedding_type",
    ),
    "vocab_size": Size(50368),
    "hidden_size": Size(768),
    "intermediate_size": Size(1152),
    "num_hidden_layers": Size(22),
    "num_attention_heads": Size(12),
    "max_position_embeddings": Size(8192),
    "local_attention": Size(128),
    "norm_eps": Number(1e-5),
    "hidden_activation": Only("gelu"),
    "norm_bias": Only(False),
    "attention_bias": Only(False),
    "mlp_bias": Only(False),
    "decoder_bias": Only(True),
    "sparse_prediction": Only(False),
    # Of the head over masked words too, whatever their names say.
    "classifier_bias": Only(False),
    "classifier_activation": Only("gelu"),
    "tie_word_embeddings": Only(True),
    "global_attn_every_n_layers": Size(3),
    "layer_types": Anything(),
    "global_rope_theta": Number(160000.0),
    "local_rope_theta": Number(10000.0),
    "rope_parameters": Anything(),
    "rope_scaling": Only(None),
}  # fmt: skip


def _generics(values: Values) -> dict[str, Any]:
    return {
        "Vocab": values["vocab_size"],
        "MaxTokens": values["max_position_embeddings"],
        "D": values["hidden_size"],
        "Heads": values["num_attention_heads"],
        "Inner": values["intermediate_size"],
        "Layers": values["num_hidden_layers"],
        "window": values["local_attention"],
        "period": _period(values),
        "global_theta": _theta(values, _FULL, "global_rope_theta"),
        "local_theta": _theta(values, _SLIDING, "local_rope_theta"),
        "eps": values["norm_eps"],
    }


def _period(values: Values) -> int:
    """Every how many layers one attends to all of the text, the first among them."""
    kinds, layers = values["layer_types"], values["num_hidden_layers"]
    if kinds is None:
        return int(values["global_attn_every_n_layers"])
    for period in range(1, layers + 1):
        if kinds == [_SLIDING if layer % period else _FULL for layer in range(layers)]:
            return period
    raise Refused(
        f"'layer_types' is {shown(kinds)}, and the definition has '{_FULL}' in every so many of its {layers} layers, "
        f"from the first on, and '{_SLIDING}' between"
    )


def _theta(values: Values, kind: str, old: str) -> float:
    """The base of the positions of one kind of layer."""
    given = values["rope_parameters"]
    if given is not None and (not isinstance(given, Mapping) or given.keys() - {_FULL, _SLIDING}):
        raise Refused(
            f"'rope_parameters' is {shown(given)}, and an object for each kind of layer is expected"
        )
    own = (given or {}).get(kind)
    if own is None:
        own = {}
    if not isinstance(own, Mapping) or own.keys() - {"rope_type", "type", "rope_theta"}:
        raise Refused(
            f"'rope_parameters.{kind}' is {shown(own)}, and 'rope_type' and 'rope_theta' are expected"
        )
    if own.get("rope_type", own.get("type", "default")) != "default":
        raise Refused(f"'rope_parameters.{kind}' is {shown(own)}, and the definition has the type 'default'")
    theta = own.get("rope_theta", values[old])
    if type(theta) not in (int, float) or not theta > 0:
        raise Refused(
            f"'rope_parameters.{kind}.rope_theta' is {shown(theta)}, and a positive number is expected"
        )
    return float(theta)


FAMILIES = (
    Family(
        model_type="modernbert",
        forms={"ModernBertForMaskedLM": Form("modernbert-base")},
        keys=_KEYS,
        generics=_generics,
        tables=lambda repository, values: mask_tables(repository, values["max_position_embeddings"]),
    ),
)
