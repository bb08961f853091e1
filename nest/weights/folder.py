"""Where the weights of a folder are: in one safetensors file, or in shards that an index lists."""

from __future__ import annotations

import json
import os
from pathlib import Path

from nest.errors import WeightsError

__all__ = ["weights_files"]

_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"


def weights_files(given: str | os.PathLike[str]) -> list[Path]:
    """The safetensors files that a path means: itself, or for a folder or an index of shards those of it.

    Raises:
        WeightsError: the index cannot be read, or names files outside its folder.
    """
    path = Path(given)
    if os.path.isdir(path):  # noqa: PTH112  a path too long is none
        index = path / _INDEX
        return [path / _FILE] if (path / _FILE).is_file() or not index.is_file() else _shards(index)
    return _shards(path) if path.name.endswith(".safetensors.index.json") else [path]


def _shards(index: Path) -> list[Path]:
    try:
        names = set(json.loads(index.read_text("utf-8"))["weight_map"].values())
        if not names or not all(isinstance(name, str) and Path(name).name == name for name in names):
            raise ValueError("its 'weight_map' is to name files beside it")
    except (OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        reason = getattr(error, "strerror", None) or error
        raise WeightsError(
            f"The index {index} cannot be read: {reason}. Expected an object 'weight_map' from tensor to file."
        ) from error
    return [index.parent / name for name in sorted(names)]
