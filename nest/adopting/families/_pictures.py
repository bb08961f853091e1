"""How a picture becomes pixels, as `preprocessor_config.json` says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.adopting.repository import Repository

__all__ = ["ACTIVATIONS", "picture_table", "sides"]

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

_RESAMPLE = {0: "nearest", 1: "lanczos", 2: "bilinear", 3: "bicubic"}
_STEPS = ("do_resize", "do_rescale", "do_normalize")
_KNOWN = {
    *_STEPS, "do_center_crop", "do_convert_rgb", "size", "crop_size", "resample", "rescale_factor", "image_mean",
    "image_std", "image_processor_type", "feature_extractor_type", "processor_class", "_processor_class",
    "_valid_processor_keys", "data_format", "input_data_format", "device", "return_tensors", "disable_grouping",
}  # fmt: skip


def picture_table(repository: Repository, height: int, width: int) -> dict[str, Any]:
    """`[preprocess]` where the file says something that nest does, and its pixels fit the model; else nothing."""
    given = repository.json("preprocessor_config.json")
    if not isinstance(given, Mapping):
        return {}
    given = {key: value for key, value in given.items() if value is not None}
    resample = _RESAMPLE.get(given.get("resample", 2))
    if given.keys() - _KNOWN or resample is None or not all(given.get(step, True) is True for step in _STEPS):
        return {}
    resize, crop = sides(given.get("size")), None
    if given.get("do_center_crop") is True:
        crop = sides(given.get("crop_size"))
        crop = [crop, crop] if isinstance(crop, int) else crop
    pixels = crop or ([resize, resize] if isinstance(given.get("size"), int) else resize)
    if resize is None or pixels != [height, width]:
        return {}
    table: dict[str, Any] = {"resize": resize if crop else pixels, "resample": resample}
    if crop:
        table["crop"] = crop
    if (factor := given.get("rescale_factor")) is not None and abs(factor - 1 / 255) > 1e-12:
        table["rescale"] = factor
    for key, name in (("mean", "image_mean"), ("std", "image_std")):
        if name not in given:
            return {}
        table[key] = given[name]
    return table


def sides(given: Any) -> Any:
    """A size as the library writes it: the shorter side, or [height, width]; None where it is neither."""
    if type(given) is int:
        return given
    if isinstance(given, Mapping) and given.keys() == {"height", "width"}:
        return [given["height"], given["width"]]
    if isinstance(given, Mapping) and given.keys() == {"shortest_edge"}:
        return given["shortest_edge"]
    return None
