"""Definition paths in a library's own words, where its modules are not called as its checkpoints' tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

__all__ = ["filled", "renamed", "tower"]

Array = np.ndarray[Any, Any]


def renamed(path: str, names: Mapping[str, str]) -> str:
    """A definition's path in the library's words: each beginning or part that `names` has, in its order."""
    text = f".{path}."
    for ours, theirs in names.items():
        text = text.replace(f".{ours}.", f".{theirs}.")
    return text.strip(".")


def tower(sizes: Mapping[str, int], name: str) -> dict[str, int]:
    """What the library's configuration of one of two encoders takes, from generics such as `VisionD`."""
    return {
        "hidden_size": sizes[f"{name}D"],
        "num_attention_heads": sizes[f"{name}Heads"],
        "intermediate_size": sizes[f"{name}Inner"],
        "num_hidden_layers": sizes[f"{name}Layers"],
    }


def filled(model: Any, params: Mapping[str, Array], name_of: Callable[[str], str]) -> Any:
    """A model of the meta device with these parameters, each in the shape that the library has it in.

    Raises:
        RuntimeError: the library has other names.
    """
    import torch

    shapes = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    state = {}
    for path, array in params.items():
        name = name_of(path)
        if name not in shapes:
            raise RuntimeError(f"The reference library has no parameter '{name}' for '{path}'.")
        state[name] = torch.from_numpy(np.array(array)).reshape(shapes[name])
    missing, unexpected = model.load_state_dict(state, strict=False, assign=True)
    left = [name for name in missing if "num_batches_tracked" not in name and "position_ids" not in name]
    if left or unexpected:
        raise RuntimeError(f"The reference library's names differ: {left}, {unexpected}.")
    for module in model.modules():
        # No checkpoint has them, and square images of the model's own size are placed by them.
        ids = getattr(module, "position_ids", None)
        if ids is not None and ids.is_meta:
            module.position_ids = torch.arange(ids.shape[-1])[None]
    return model.eval()
