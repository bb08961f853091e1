"""Convert a GGUF file of the Llama architecture to the published checkpoint's names and layout.

The file's rotary embedding turns neighbouring pairs, the checkpoint's a first and a second half, so the rows of
queries and keys are put back in order. Quantized weights become the f32 values that they stand for: the publisher's
weights after a loss, which is why an entry has to pin the result by a digest of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from nest.errors import WeightsError
from nest.ir.parammap import TensorSpec
from nest.weights._gguf_file import GGUFFile, GGUFTensor, read_gguf_file
from nest.weights.writer import write_safetensors

__all__ = ["convert_llama"]

_TOP = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_HEADS = {"attn_q": "llama.attention.head_count", "attn_k": "llama.attention.head_count_kv"}


def convert_llama(source: Path, target: Path) -> None:
    """Write the model file `source` as a safetensors file `target` of f32 tensors, whole or not at all.

    Raises:
        WeightsError: the file is damaged, is of another architecture or of a type that is not read, lacks a tensor,
            or holds one that the published form has no place for.
    """
    file = read_gguf_file(source)
    found = {name: (tensor, heads) for name, tensor, heads in _tensors(file, source)}
    specs = {name: TensorSpec(tensor.shape, "f32") for name, (tensor, _) in found.items()}
    write_safetensors(target, specs, lambda name: _values(*found[name], source))


def _values(tensor: GGUFTensor, heads: int | None, source: Path) -> npt.NDArray[Any]:
    values = tensor.array()
    if not np.isfinite(values).all():
        raise _error(source, f"'{tensor.name}' has values that are not finite: it is damaged")
    if heads is None:
        return values
    rows, *rest = tensor.shape
    pairs = values.reshape(heads, rows // heads // 2, 2, *rest)
    return np.ascontiguousarray(pairs.swapaxes(1, 2)).reshape(tensor.shape)


def _tensors(file: GGUFFile, source: Path) -> Iterator[tuple[str, GGUFTensor, int | None]]:
    """Published name, tensor, and the heads of those whose rows are to be put in order."""
    if (architecture := file.settings.get("general.architecture")) != "llama":
        raise _error(source, f"expected the architecture llama; it is {architecture!r:.80}")
    layers = _setting(file, "llama.block_count", source)
    expected = {"token_embd.weight", "output_norm.weight"}
    expected |= {f"blk.{index}.{part}.weight" for index in range(layers) for part in _LAYER}
    if missing := sorted(expected - set(file.tensors)):
        raise _error(source, f"it lacks {len(missing)} tensors, such as '{missing[0]}'")
    if other := sorted(set(file.tensors) - expected - set(_TOP)):
        raise _error(source, f"it has tensors that the published checkpoint has no place for: {other[:9]}")
    for name, tensor in file.tensors.items():
        if name in _TOP:
            yield _TOP[name], tensor, None
        elif match := re.fullmatch(r"blk\.(\d+)\.(\w+)\.weight", name):
            index, part = match.groups()
            heads = _heads(file, tensor, _HEADS[part], source) if part in _HEADS else None
            yield f"model.layers.{index}.{_LAYER[part]}.weight", tensor, heads


def _heads(file: GGUFFile, tensor: GGUFTensor, key: str, source: Path) -> int:
    heads = _setting(file, key, source)
    if not tensor.shape or tensor.shape[0] % (2 * heads):
        raise _error(
            source, f"'{tensor.name}' has the shape {list(tensor.shape)}: no {heads} heads of an even size"
        )
    size = tensor.shape[0] // heads
    if (turned := file.settings.get("llama.rope.dimension_count", size)) != size:
        raise _error(
            source, f"expected all {size} dimensions of a head to be turned; it turns {turned!r:.80}"
        )
    return heads


def _setting(file: GGUFFile, key: str, source: Path) -> int:
    value = file.settings.get(key)
    if type(value) is not int or not 0 < value <= 10_000:
        raise _error(source, f"expected a count as '{key}'; it is {value!r:.80}")
    return value


def _error(source: Path, fault: str) -> WeightsError:
    return WeightsError(f"{source} cannot be converted to a Llama checkpoint: {fault}.")
