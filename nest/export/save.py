"""`nest.save`: a model as files."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from nest._suggest import did_you_mean
from nest.errors import CallError
from nest.export.checkpoint import write_hf, write_weights
from nest.export.folder import Staged, staged
from nest.export.portable import Portable, portable

__all__ = ["FORMATS", "save"]

FORMATS = ("hf", "safetensors")


def save(
    model: Any,
    directory: str | os.PathLike[str],
    format: str = "hf",
) -> list[Path]:
    """Write a loaded or trained model, of any backend, to a folder.

    The files are written under other names and then moved: what is found there is whole. Other files of the folder
    are left alone.

    Args:
        model: what `nest.load` returned, or its compiled wrapper.
        directory: the folder, made where it is not there.
        format: `"hf"`, the tensors as the checkpoint's publisher names and lays them out, with the configuration that
            makes the reference library open the folder; `"safetensors"`, the tensors under definition paths.

    Returns:
        The files that were written.

    Raises:
        CallError: no such format, or not a model.
        BindingError: the publisher's tensors cannot be made from the model's parameters.
        InputError: the folder cannot be written.
    """
    if format not in FORMATS:
        raise CallError(
            f"There is no format '{format}'; nest writes {', '.join(FORMATS)}.{did_you_mean(format, FORMATS)}"
        )
    parts = portable(model)
    with staged(directory) as folder:
        _WRITERS[format](folder, parts)
    return folder.files


_WRITERS: dict[str, Callable[[Staged, Portable], None]] = {"hf": write_hf, "safetensors": write_weights}
