"""RoBERTa: BERT whose positions begin after the padding token's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.families._encoders import (
    ENCODER,
    IDLE_TENSORS,
    encoder_facts,
    encoder_tables,
    sentences_if_said,
)
from nest.adopting.family import Family, Form, Refused
from nest.adopting.keys import Anything, Key, Size, Values, shown

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {**ENCODER, "vocab_size": Size(50265), "pad_token_id": Anything(1)}


def _first_position(values: Values) -> int:
    return int(values["pad_token_id"]) + 1


def _generics(values: Values) -> dict[str, Any]:
    pad = values["pad_token_id"]
    if type(pad) is not int or not 0 <= pad < min(
        values["vocab_size"], values["max_position_embeddings"] - 1
    ):
        raise Refused(
            f"'pad_token_id' is {shown(pad)}, and positions, which begin after it, leave no room for a token"
        )
    return {**encoder_facts(values), "first_position": _first_position(values)}


FAMILIES = (
    Family(
        model_type="roberta",
        forms={
            "RobertaForMaskedLM": Form("roberta-base", idle=IDLE_TENSORS),
            "RobertaModel": Form("roberta-base", root="Encoder", entry="encode", idle=IDLE_TENSORS),
        },
        keys=_KEYS,
        generics=_generics,
        tables=encoder_tables(_first_position),
        prefix="roberta.",
        choose=sentences_if_said,
    ),
)
