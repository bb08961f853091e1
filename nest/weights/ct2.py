"""Convert CTranslate2's Whisper weights to the published checkpoint's names and layout.

CTranslate2 stacks the rows of projections that share an input ([q; k; v], or [k; v] for cross-attention) and
gives keys a bias of zeros; the published checkpoint has one tensor each and no key bias. Values are written
as f32. The published Whisper weights are f16 values stored as f32, and so are restored to the byte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from nest.errors import WeightsError
from nest.ir.parammap import Cast, Expr, Slice, Source
from nest.weights._ct2_file import CT2File, read_ct2_file
from nest.weights.evaluate import evaluate
from nest.weights.writer import write_safetensors

__all__ = ["convert_whisper"]

_FACTS = {
    "decoder/activation": 3,  # the error-function GELU
    "decoder/alibi": 0,
    "decoder/pre_norm": 1,
    "decoder/scale_embeddings": 0,
    "decoder/start_from_zero_embedding": 0,
}
_SETTINGS = re.compile(r"(encoder|decoder)/num_heads|decoder/alignment_(heads|layer)")
_TIE = ("decoder/projection/weight", "decoder/embeddings/weight")
_FLOATS = ("f32", "f16", "bf16")


def convert_whisper(source: Path, target: Path) -> None:
    """Write the model file `source` as a safetensors file `target`, whole or not at all.

    Raises:
        WeightsError: the file is damaged, is no Whisper model, is quantized, or holds what the published form
            has no place for.
    """
    file = read_ct2_file(source)
    _check(file, source)
    types = {name: view.spec for name, view in file.variables.items()}
    tensors = dict(_tensors(file, source))
    unused = set(types) - {name for expression in tensors.values() for name in expression.sources()}
    unused -= {*_FACTS, *(name for name in types if _SETTINGS.fullmatch(name))}
    if unused:
        raise _error(
            source, f"it has variables that the published checkpoint has no place for: {sorted(unused)}"
        )
    specs = {name: expression.infer(types) for name, expression in tensors.items()}
    write_safetensors(
        target,
        specs,
        lambda name: evaluate(tensors[name], types, lambda variable: file.variables[variable].array()),
    )


def _check(file: CT2File, source: Path) -> None:
    if (file.specification, file.revision) != ("WhisperSpec", 3):
        raise _error(
            source, f"expected WhisperSpec revision 3; it is {file.specification} revision {file.revision}"
        )
    if file.aliases != dict([_TIE]):
        raise _error(
            source, f"expected '{_TIE[0]}' to be '{_TIE[1]}' and no other alias; it has {file.aliases}"
        )
    for name, expected in _FACTS.items():
        if name in file.variables and (found := file.variables[name].array().tolist()) != expected:
            raise _error(source, f"expected '{name}' to be {expected}; it is {found}")


def _tensors(file: CT2File, source: Path) -> Iterator[tuple[str, Expr]]:
    """Published name and expression over the file's variables, tensor by tensor."""
    reader = _Variables(file, source)
    for side in ("encoder", "decoder"):
        model = f"model.{side}"
        yield f"{model}.embed_positions.weight", reader.tensor(f"{side}/position_encodings/encodings")
        yield from reader.norm(f"{model}.layer_norm", f"{side}/layer_norm")
        for index in range(reader.layers(side)):
            yield from _layer(
                reader, f"{model}.layers.{index}", f"{side}/layer_{index}", cross=side == "decoder"
            )
    for conv in ("conv1", "conv2"):
        yield from reader.linear([f"model.encoder.{conv}"], f"encoder/{conv}")
    yield "model.decoder.embed_tokens.weight", reader.tensor("decoder/embeddings/weight")


def _layer(reader: _Variables, to: str, of: str, *, cross: bool) -> Iterator[tuple[str, Expr]]:
    yield from reader.norm(f"{to}.self_attn_layer_norm", f"{of}/self_attention/layer_norm")
    yield from reader.linear(
        [f"{to}.self_attn.{part}_proj" for part in "qkv"], f"{of}/self_attention/linear_0"
    )
    yield from reader.linear([f"{to}.self_attn.out_proj"], f"{of}/self_attention/linear_1")
    if cross:
        yield from reader.norm(f"{to}.encoder_attn_layer_norm", f"{of}/attention/layer_norm")
        yield from reader.linear([f"{to}.encoder_attn.q_proj"], f"{of}/attention/linear_0")
        yield from reader.linear(
            [f"{to}.encoder_attn.{part}_proj" for part in "kv"], f"{of}/attention/linear_1"
        )
        yield from reader.linear([f"{to}.encoder_attn.out_proj"], f"{of}/attention/linear_2")
    yield from reader.norm(f"{to}.final_layer_norm", f"{of}/ffn/layer_norm")
    yield from reader.linear([f"{to}.fc1"], f"{of}/ffn/linear_0")
    yield from reader.linear([f"{to}.fc2"], f"{of}/ffn/linear_1")


class _Variables:
    """Expressions over the file's variables, each checked for presence and dtype."""

    def __init__(self, file: CT2File, source: Path) -> None:
        self._file = file
        self._source = source

    def layers(self, side: str) -> int:
        found = {
            match.group(1)
            for name in self._file.variables
            if (match := re.match(rf"{side}/layer_(\d+)/", name))
        }
        return len(found)

    def tensor(self, name: str) -> Expr:
        if name not in self._file.variables:
            raise _error(self._source, f"the variable '{name}' is missing")
        dtype = self._file.variables[name].dtype
        if dtype not in _FLOATS:
            raise _error(self._source, f"'{name}' is stored as {dtype}; expected {', '.join(_FLOATS)}")
        return Source(name) if dtype == "f32" else Cast(Source(name), "f32")

    def norm(self, to: str, of: str) -> Iterator[tuple[str, Expr]]:
        yield f"{to}.weight", self.tensor(f"{of}/gamma")
        yield f"{to}.bias", self.tensor(f"{of}/beta")

    def linear(self, to: list[str], of: str) -> Iterator[tuple[str, Expr]]:
        """Projections whose rows are stacked in one weight and one bias, in the order of `to`."""
        weight, bias = self.tensor(f"{of}/weight"), self.tensor(f"{of}/bias")
        shape = self._file.variables[f"{of}/weight"].shape
        if not shape or shape[0] % len(to) or self._file.variables[f"{of}/bias"].shape != shape[:1]:
            raise _error(
                self._source, f"'{of}' has the shape {list(shape)}: no {len(to)} projections with a bias each"
            )
        rows = shape[0] // len(to)
        for index, name in enumerate(to):
            start, stop = index * rows, (index + 1) * rows
            part = slice(start, stop)
            yield f"{name}.weight", weight if len(to) == 1 else Slice(weight, 0, start, stop)
            if not name.endswith("k_proj"):
                yield f"{name}.bias", bias if len(to) == 1 else Slice(bias, 0, start, stop)
            elif np.any(self._file.variables[f"{of}/bias"].array()[part]):
                raise _error(self._source, f"'{of}/bias' rows {start}:{stop}, of {name}, are not all zero")


def _error(source: Path, fault: str) -> WeightsError:
    return WeightsError(f"{source} cannot be converted to a Whisper checkpoint: {fault}.")
