"""transformers' decoders behind nest's entries `forward`, `prefill` and `step`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from nest.ir.inventory import parameters
from nest.ir.parammap import TensorSpec
from nest.ir.program import Program
from nest.registry import Entry
from nest.verify.library._decoder_models import decoder_model
from nest.verify.library._generate import greedy
from nest.verify.library._shared import load_tensors
from nest.verify.tokens import Decoding
from nest.weights.evaluate import evaluate
from nest.weights.stored import stored_tensors

__all__ = ["DecoderLibrary", "build"]

Array = np.ndarray[Any, Any]


class DecoderLibrary:
    """The library's model; a session of it keeps tokens in place of caches."""

    name = "transformers"

    def __init__(self, model: Any) -> None:
        self.model = model

    def new_session(self) -> DecoderSession:
        """One row, of any number of calls."""
        return DecoderSession(self.model)


class DecoderSession:
    """The entries by the library's model, a row at a time."""

    def __init__(self, model: Any) -> None:
        import torch

        self.torch = torch
        self.model = model
        self.tokens: list[int] = []
        self._entries: dict[str, Callable[..., Any]] = {
            "forward": self._logits,
            "prefill": self._prefill,
            "step": self._step,
        }
        self.entries = frozenset(self._entries)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry with its arguments in order."""
        with self.torch.no_grad():
            return self._entries[name](*map(np.asarray, inputs))

    def numpy(self, value: Any) -> Array:
        """A result on the host."""
        array: Array = value.numpy()
        return array

    def greedy(self, decoding: Decoding) -> list[int]:
        """The library's `generate`; the tokens of the first prompt's row before the end."""
        return greedy(self.model, decoding, prompt="input_ids")

    def _prefill(self, tokens: Array, lengths: Array) -> Any:
        self.tokens = tokens[0, : int(lengths[0])].tolist()
        return self._last()

    def _step(self, token: Array, pos: Array) -> Any:
        self.tokens = [*self.tokens[: int(pos[0])], int(token[0, 0])]
        return self._last()

    def _last(self) -> Any:
        return self._logits(np.array([self.tokens]))[:, -1]

    def _logits(self, tokens: Array) -> Any:
        return self.model(self.torch.from_numpy(np.asarray(tokens)).long(), use_cache=False).logits


def build(entry: Entry, program: Program, params: Mapping[str, Array]) -> DecoderLibrary:
    """The library's model over these parameters, in f32.

    Raises:
        RuntimeError: the library's names are not those of the entry's checkpoint.
    """
    generics = {n: d.value for n, d in program.root.generics.items() if d.value is not None}
    stored = stored_tensors(parameters(program), entry.bindings, source=entry.name, generics=generics)
    types = {path: TensorSpec(tuple(a.shape), "f32") for path, a in params.items()}
    family = entry.manifest.model.family
    tensors = {_named(n, family): evaluate(e, types, params.__getitem__) for n, e in stored.items()}
    statics = program.root.statics
    model = load_tensors(lambda: decoder_model(family, generics, statics), tensors, absent=["lm_head.weight"])
    return DecoderLibrary(model)


def _named(name: str, family: str) -> str:
    """What the library calls a tensor: GPT-2's are stored without the name of the base model before them."""
    return f"transformer.{name}" if family == "gpt2" and not name.startswith("lm_head.") else name
