"""How a picture becomes pixels, as `preprocessor_config.json` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.common import COMMON, idle
from nest.adopting.family import Refused
from nest.adopting.keys import Anything, Key, Only, Size, Values, shown
from nest.adopting.repository import Repository

__all__ = ["ACTIVATIONS", "PATCHES", "picture_table", "sides", "square"]

ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "quick_gelu": "quick_gelu",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""What the definitions call the reference library's activations."""

PATCHES: Mapping[str, Key] = {
    **COMMON,
    **idle("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range"),
    "hidden_size": Size(768),
    "num_hidden_layers": Size(12),
    "num_attention_heads": Size(12),
    "num_channels": Size(3),
    "image_size": Anything(224),
    "hidden_act": Only(*ACTIVATIONS),
    "qkv_bias": Only(True),
}
"""Keys of transformers over patches."""

_RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_STEPS = ("do_resize", "do_rescale", "do_normalize")
_KNOWN = {
    *_STEPS, "do_center_crop", "do_convert_rgb", "size", "crop_size", "resample", "rescale_factor", "image_mean",
    "image_std", "image_processor_type", "feature_extractor_type", "processor_class", "_processor_class",
    "_valid_processor_keys", "data_format", "input_data_format", "device", "return_tensors", "disable_grouping",
}  # fmt: skip


def picture_table(repository: Repository) -> tuple[dict[str, Any], list[int]]:
    """`[preprocess]`, and the height and width that it makes; nothing where the file says what nest does not do."""
    given = repository.json("preprocessor_config.json")
    if not isinstance(given, Mapping):
        return {}, []
    given = {key: value for key, value in given.items() if value is not None}
    resample = _RESAMPLE.get(given.get("resample", 2))
    steps = all(given.get(step, True) is True for step in _STEPS)
    if (
        given.keys() - _KNOWN
        or resample is None
        or not steps
        or not {"image_mean", "image_std"} <= given.keys()
    ):
        return {}, []
    resize, crop = sides(given.get("size")), None
    if given.get("do_center_crop") is True:
        crop = sides(given.get("crop_size"))
        crop = [crop, crop] if isinstance(crop, int) else crop
    elif isinstance(resize, int) and isinstance(given["size"], int):
        resize = [resize, resize]
    pixels = crop or resize
    if resize is None or not isinstance(pixels, list):
        return {}, []
    table: dict[str, Any] = {"resize": resize, "resample": resample, **({"crop": crop} if crop else {})}
    if (factor := given.get("rescale_factor")) is not None and abs(factor - 1 / 255) > 1e-12:
        table["rescale"] = factor
    return {**table, "mean": given["image_mean"], "std": given["image_std"]}, pixels


def square(values: Values) -> tuple[int, int]:
    """The side of the pictures and of their patches.

    Raises:
        Refused: they are not square, or the patches do not fill the picture.
    """
    height, width = _pair(values, "image_size")
    patch, other = _pair(values, "patch_size")
    if patch != other:
        raise Refused(f"'patch_size' is {shown(values['patch_size'])}, and the definition has square patches")
    if height % patch or height != width:
        raise Refused(
            f"'image_size' is {shown(values['image_size'])}, and a square of whole patches ('patch_size' = {patch}) is "
            f"expected"
        )
    return height, patch


def _pair(values: Values, key: str) -> tuple[int, int]:
    """Height and width."""
    given = values[key]
    pair = given if isinstance(given, list) else [given, given]
    if len(pair) != 2 or not all(type(side) is int and side >= 1 for side in pair):
        raise Refused(f"'{key}' is {shown(given)}, and a whole number or two of them are expected")
    return pair[0], pair[1]


def sides(given: Any) -> Any:
    """A size as the library writes it: the shorter side, or [height, width]; None where it is neither."""
    if type(given) is int:
        return given
    if isinstance(given, Mapping) and given.keys() == {"height", "width"}:
        return [given["height"], given["width"]]
    if isinstance(given, Mapping) and given.keys() == {"shortest_edge"}:
        return given["shortest_edge"]
    return None
