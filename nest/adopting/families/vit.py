"""ViT, as a classifier of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import idle
from nest.adopting.families._pictures import ACTIVATIONS, PATCHES, picture_table, square
from nest.adopting.family import Family, Form, Refused, Tables
from nest.adopting.keys import Anything, Key, Number, Size, Values, shown
from nest.adopting.repository import Repository

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {
    **PATCHES,
    # The pooler is of the bare network, and the stride of a decoder that fills in masked patches.
    **idle("encoder_stride", "pooler_output_size", "pooler_act"),
    "intermediate_size": Size(3072),
    "patch_size": Anything(16),
    "layer_norm_eps": Number(1e-12),
    "id2label": Anything(),
    "num_labels": Anything(),
}


def _generics(values: Values) -> dict[str, Any]:
    side, patch = square(values)
    return {
        "Height": side,
        "Width": side,
        "Channels": values["num_channels"],
        "Patch": patch,
        "Grid": side // patch,
        "D": values["hidden_size"],
        "Heads": values["num_attention_heads"],
        "Inner": values["intermediate_size"],
        "Layers": values["num_hidden_layers"],
        "Classes": _classes(values),
        "eps": values["layer_norm_eps"],
        "activation": ACTIVATIONS[values["hidden_act"]],
    }


def _classes(values: Values) -> int:
    """How many classes there are: as many as have names, and two where nothing is said."""
    names, count = values["id2label"], values["num_labels"]
    if names is None:
        if count is not None and (type(count) is not int or count < 1):
            raise Refused(f"'num_labels' is {shown(count)}, and a whole number of at least 1 is expected")
        return count or 2
    if not isinstance(names, Mapping) or not names or not all(str(key).isdecimal() for key in names):
        raise Refused(
            f"'id2label' is {shown(names)}, and an object from a class's number to its name is expected"
        )
    if count is not None and count != len({int(key) for key in names}):
        raise Refused(f"'num_labels' is {shown(count)}, and 'id2label' has {len(names)} names")
    return len({int(key) for key in names})


def _tables(repository: Repository, values: Values) -> Tables:
    preprocess, pixels = picture_table(repository)
    side, _ = square(values)
    names = values.given.get("id2label")
    numbers = {int(key) for key in names} if isinstance(names, Mapping) else set()
    if pixels != [side, side] or not numbers or numbers != set(range(len(numbers))):
        return {}
    return {
        "task": {"kind": "image-classification"},
        "labels": {"file": "config.json"},
        "preprocess": preprocess,
    }


FAMILIES = (
    Family(
        model_type="vit",
        forms={
            "ViTForImageClassification": Form(
                "vit-base-patch16-224", idle=("vit.pooler.dense.weight", "vit.pooler.dense.bias")
            )
        },
        keys=_KEYS,
        generics=_generics,
        tables=_tables,
        prefix="vit.",
    ),
)
