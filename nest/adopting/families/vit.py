"""ViT, as a classifier of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import COMMON, idle
from nest.adopting.families._pictures import ACTIVATIONS, picture_table
from nest.adopting.family import Family, Form, Refused, Tables
from nest.adopting.keys import Anything, Key, Number, Only, Size, Values, shown
from nest.adopting.repository import Repository

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {
    **COMMON,
    # The pooler is of the bare network, and the stride of a decoder that fills in masked patches.
    **idle(
        "hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range", "encoder_stride",
        "pooler_output_size", "pooler_act",
    ),
    "hidden_size": Size(768),
    "num_hidden_layers": Size(12),
    "num_attention_heads": Size(12),
    "intermediate_size": Size(3072),
    "num_channels": Size(3),
    "image_size": Anything(224),
    "patch_size": Anything(16),
    "hidden_act": Only(*ACTIVATIONS),
    "layer_norm_eps": Number(1e-12),
    "qkv_bias": Only(True),
    "id2label": Anything(),
    "num_labels": Anything(),
}  # fmt: skip


def _generics(values: Values) -> dict[str, Any]:
    height, width = _pair(values, "image_size")
    patch, other = _pair(values, "patch_size")
    if patch != other:
        raise Refused(f"'patch_size' is {shown(values['patch_size'])}, and the definition has square patches")
    if height % patch or width % patch or height != width:
        raise Refused(
            f"'image_size' is {shown(values['image_size'])}, and a square of whole patches ('patch_size' = {patch}) is "
            f"expected"
        )
    return {
        "Height": height,
        "Width": width,
        "Channels": values["num_channels"],
        "Patch": patch,
        "Grid": height // patch,
        "D": values["hidden_size"],
        "Heads": values["num_attention_heads"],
        "Inner": values["intermediate_size"],
        "Layers": values["num_hidden_layers"],
        "Classes": _classes(values),
        "eps": values["layer_norm_eps"],
        "activation": ACTIVATIONS[values["hidden_act"]],
    }


def _pair(values: Values, key: str) -> tuple[int, int]:
    """Height and width."""
    given = values[key]
    pair = given if isinstance(given, list) else [given, given]
    if len(pair) != 2 or not all(type(side) is int and side >= 1 for side in pair):
        raise Refused(f"'{key}' is {shown(given)}, and a whole number or two of them are expected")
    return pair[0], pair[1]


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
    height, width = _pair(values, "image_size")
    preprocess = picture_table(repository, height, width)
    names = values.given.get("id2label")
    if (
        not preprocess
        or not isinstance(names, Mapping)
        or {int(key) for key in names} != set(range(len(names)))
    ):
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
