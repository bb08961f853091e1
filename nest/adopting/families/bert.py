"""BERT: the bare encoder, sentence encoders, and the model of masked words."""

from __future__ import annotations

from collections.abc import Mapping

from nest.adopting.families._encoders import (
    ENCODER,
    IDLE_TENSORS,
    encoder_facts,
    encoder_tables,
    sentences_if_said,
)
from nest.adopting.family import Family, Form
from nest.adopting.keys import Key, Size

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {**ENCODER, "vocab_size": Size(30522)}
_FOLLOWS = ("cls.seq_relationship.weight", "cls.seq_relationship.bias")

FAMILIES = (
    Family(
        model_type="bert",
        forms={
            "BertModel": Form("all-MiniLM-L6-v2", root="Encoder", entry="encode", idle=IDLE_TENSORS),
            "BertForMaskedLM": Form(
                "bert-base-uncased", root="MaskedLM", entry="mask_logits", idle=(*IDLE_TENSORS, *_FOLLOWS)
            ),
            "BertForPreTraining": Form("bert-base-uncased", root="PreTraining", entry="mask_logits"),
        },
        keys=_KEYS,
        generics=encoder_facts,
        tables=encoder_tables(lambda _: 0),
        prefix="bert.",
        choose=sentences_if_said,
    ),
)
