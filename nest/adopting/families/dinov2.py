"""DINOv2: the bare network, whose states are vectors of pictures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import idle
from nest.adopting.families._pictures import ACTIVATIONS, PATCHES, picture_table, square
from nest.adopting.family import Family, Form, Tables
from nest.adopting.keys import Anything, Key, Number, Only, Size, Values
from nest.adopting.repository import Repository

__all__ = ["FAMILIES"]

_KEYS: Mapping[str, Key] = {
    **PATCHES,
    **idle(
        "drop_path_rate",
        # Where its scales begin in training; tokens for masked patches; how a backbone's maps are cut out.
        "layerscale_value", "use_mask_token", "apply_layernorm", "reshape_hidden_states", "out_features", "out_indices",
        "_out_features", "_out_indices", "stage_names",
    ),
    "mlp_ratio": Size(4),
    "patch_size": Anything(14),
    "layer_norm_eps": Number(1e-6),
    "use_swiglu_ffn": Only(False),
}  # fmt: skip


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
        "Inner": values["hidden_size"] * values["mlp_ratio"],
        "Layers": values["num_hidden_layers"],
        "eps": values["layer_norm_eps"],
        "activation": ACTIVATIONS[values["hidden_act"]],
    }


def _tables(repository: Repository, values: Values) -> Tables:
    preprocess, pixels = picture_table(repository)
    side, patch = square(values)
    if not preprocess or any(size % patch for size in pixels):
        return {}
    task: dict[str, Any] = {"kind": "image-embedding"}
    if pixels != [side, side]:
        # It was trained on larger pictures than it is used on; positions are interpolated.
        task["generics"] = {"Height": pixels[0], "Width": pixels[1]}
    return {"task": task, "preprocess": preprocess}


FAMILIES = (
    Family(
        model_type="dinov2",
        forms={"Dinov2Model": Form("dinov2-base", idle=("embeddings.mask_token",))},
        keys=_KEYS,
        generics=_generics,
        tables=_tables,
    ),
)
