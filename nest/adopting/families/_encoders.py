"""What BERT and RoBERTa have in common: the keys, and what is made of the encoder's states."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._sentences import sentence_facts, sentence_tables
from nest.adopting.families._text import mask_tables
from nest.adopting.family import Form, Refused, Tables
from nest.adopting.keys import Key, Number, Only, Size, Values
from nest.adopting.repository import Repository

__all__ = ["ENCODER", "IDLE_TENSORS", "encoder_facts", "encoder_tables", "sentences_if_said"]

ENCODER: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **idle(
        "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "classifier_dropout",
        # Of configurations before 2020, which the library does not read.
        "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
        "directionality", "layer_norm_type",
    ),
    "hidden_size": Size(768),
    "num_hidden_layers": Size(12),
    "num_attention_heads": Size(12),
    "intermediate_size": Size(3072),
    "max_position_embeddings": Size(512),
    "type_vocab_size": Size(2),
    "hidden_act": Only("gelu"),
    "layer_norm_eps": Number(1e-12),
    "tie_word_embeddings": Only(True),
    # Later versions of the library know positions of one kind alone; earlier ones had others.
    "position_embedding_type": Only("absolute"),
}  # fmt: skip

IDLE_TENSORS = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")
"""Numbers that are no parameters, and a layer that only a head over whole texts would read."""


def encoder_facts(values: Values) -> dict[str, Any]:
    """Generics and static fields.

    Raises:
        Refused: the heads do not fill the width.
    """
    if values["hidden_size"] % values["num_attention_heads"]:
        raise Refused(
            f"'hidden_size' is {values['hidden_size']}, and a multiple of 'num_attention_heads' = "
            f"{values['num_attention_heads']} is expected"
        )
    return {
        "Vocab": values["vocab_size"],
        "Positions": values["max_position_embeddings"],
        "Types": values["type_vocab_size"],
        "D": values["hidden_size"],
        "Heads": values["num_attention_heads"],
        "Inner": values["intermediate_size"],
        "Layers": values["num_hidden_layers"],
        "eps": values["layer_norm_eps"],
    }


_HEADS = tuple(
    f"{name}.{part}"
    for name in (
        "cls.predictions", "cls.predictions.transform.dense", "cls.predictions.transform.LayerNorm",
        "cls.predictions.decoder", "cls.seq_relationship", "lm_head", "lm_head.dense", "lm_head.layer_norm",
        "lm_head.decoder",
    )
    for part in ("weight", "bias", "gamma", "beta")
)  # fmt: skip


def sentences_if_said(repository: Repository, form: Form) -> Form:
    """A sentence encoder where the repository says what makes a vector of the states, whatever its head."""
    if "modules.json" not in repository.names:
        return form
    return replace(form, root="SentenceEncoder", entry="embed", idle=(*form.idle, *IDLE_TENSORS, *_HEADS))


def encoder_tables(first_position: Callable[[Values], int]) -> Callable[[Repository, Values], Tables]:
    """The tables of an encoder's task; `first_position` counts the rows of its table of positions that no token has."""

    def tables(repository: Repository, values: Values) -> Tables:
        most = values["max_position_embeddings"] - first_position(values)
        if "modules.json" in repository.names:
            return {"generics": sentence_facts(repository), **sentence_tables(repository, most)}
        if str(values.given.get("architectures")).endswith(("ForMaskedLM']", "ForPreTraining']")):
            return mask_tables(repository, most)
        return {}

    return tables
