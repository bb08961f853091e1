"""BERT: the bare encoder, and sentence encoders that are made of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from nest.adopting.common import COMMON, TEXT, idle
from nest.adopting.families._sentences import sentence_facts, sentence_tables
from nest.adopting.family import Family, Form, Refused, Tables
from nest.adopting.keys import Key, Number, Only, Size, Values
from nest.adopting.repository import Repository

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {
    **COMMON,
    **TEXT,
    **idle(
        "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "classifier_dropout",
        # Of the pooler and the embeddings of configurations before 2020, which the library does not read.
        "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers", "pooler_size_per_head", "pooler_type",
        "directionality", "layer_norm_type",
    ),
    "vocab_size": Size(30522),
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

_IDLE = ("embeddings.position_ids", "pooler.dense.weight", "pooler.dense.bias")


def _generics(values: Values) -> dict[str, Any]:
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


def _choose(repository: Repository, form: Form) -> Form:
    """A bare encoder, unless the repository says what makes a vector of its states."""
    if form.root == "Encoder" and "modules.json" in repository.names:
        return replace(form, root=None, entry=None, task=True)
    return form


def _tables(repository: Repository, values: Values) -> Tables:
    if "modules.json" not in repository.names:
        return {}
    return {"generics": sentence_facts(repository), **sentence_tables(repository, values)}


FAMILIES = (
    Family(
        model_type="bert",
        forms={"BertModel": Form("all-MiniLM-L6-v2", root="Encoder", entry="encode", idle=_IDLE, task=False)},
        keys=_KEYS,
        generics=_generics,
        tables=_tables,
        prefix="bert.",
        choose=_choose,
    ),
)
