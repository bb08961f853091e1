"""`nest.save`: a model as files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nest._optional import need
from nest._suggest import did_you_mean
from nest.errors import CallError
from nest.export.checkpoint import write_hf, write_weights
from nest.export.folder import staged
from nest.export.portable import portable

__all__ = ["FORMATS", "save"]

FORMATS = ("hf", "safetensors", "onnx", "stablehlo")


def save(
    model: Any,
    directory: str | os.PathLike[str],
    format: str = "hf",
    *,
    opset: int | None = None,
    platforms: Sequence[str] | None = None,
    local_files_only: bool = False,
) -> list[Path]:
    """Write a loaded or trained model, of any backend, to a folder.

    The files are written under other names and then moved: what is found there is whole. Other files of the folder
    are left alone.

    Args:
        model: what `nest.load` returned, or its compiled wrapper.
        directory: the folder, made where it is not there.
        format: `"hf"`, the tensors as the checkpoint's publisher names and lays them out, with the configuration that
            makes the reference library open the folder; `"safetensors"`, the tensors under definition paths;
            `"onnx"`, a folder that runs with ONNX Runtime and without nest; `"stablehlo"`, entries for `jax.export`.
        opset: of ONNX, the version of the operator set, 24 if left out.
        platforms: of StableHLO, what it is lowered for, `("cpu", "cuda")` if left out.
        local_files_only: take what ONNX needs beside the model, such as the tokenizer, from this machine.

    Returns:
        The files that were written.

    Raises:
        CallError: no such format, an option of another one, or not a model.
        BindingError: the publisher's tensors cannot be made from the model's parameters.
        FetchError, DigestError: what ONNX needs beside the model cannot be had.
        InputError: the folder cannot be written.
        MissingDependencyError: the format's packages are not installed.
    """
    if format not in FORMATS:
        raise CallError(
            f"There is no format '{format}'; nest writes {', '.join(FORMATS)}.{did_you_mean(format, FORMATS)}"
        )
    for name, value, owner in (("opset", opset, "onnx"), ("platforms", platforms, "stablehlo")):
        if value is not None and format != owner:
            raise CallError(f"{name}= belongs to the format '{owner}', and the format is '{format}'.")
    parts = portable(model)
    with staged(directory) as folder:
        if format == "hf":
            write_hf(folder, parts)
        elif format == "safetensors":
            write_weights(folder, parts)
        elif format == "onnx":
            need("onnx_ir", extra="onnx", purpose="write ONNX")
            from nest.export.onnx import write_onnx

            write_onnx(folder, parts, opset, local_files_only=local_files_only)
        else:
            need("jax", extra="jax", purpose="write StableHLO")
            from nest.export.stablehlo import write_stablehlo

            write_stablehlo(folder, parts, ("cpu", "cuda") if platforms is None else platforms)
    return folder.files
