"""A job's pieces by the reference library's own model, eager and compiled."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from nest.bench._loaded import Piece
from nest.bench._work import Job, Work

__all__ = ["CompiledJob", "LibraryJob"]

Array = np.ndarray[Any, Any]


class LibraryJob:
    """The pieces by the library's own model: its forward pass, or a loop over its caches."""

    def __init__(self, library: Any, job: Job, work: Work) -> None:
        self.library, self.job, self.work = library, job, work
        self.model = _moved(library.model, work.device)
        self.given = [_tensor(array, work.device) for array in job.arguments.values()]

    def cast(self) -> None:
        """The model and its inputs in the work's element type."""
        import torch

        dtype = {"f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16}[self.work.dtype]
        self.model = _moved(self.model, self.work.device, dtype)
        if self.work.device == "cuda":
            torch.cuda.reset_peak_memory_stats()  # f32 was for the results alone
        self.given = [x.to(dtype) if x.is_floating_point() else x for x in self.given]

    def pieces(self) -> dict[str, Piece]:
        import torch

        def ended(piece: Piece) -> Any:
            with torch.no_grad(), torch.device(self.work.device):
                made = piece()
            if self.work.device == "cuda":
                torch.cuda.synchronize()
            return made

        return {name: partial(ended, piece) for name, piece in self._by_kind().items()}

    def results(self) -> dict[str, Array]:
        pieces = self.pieces()
        found = {
            {"transcribe": "tokens", "generate": "tokens"}.get(name, name): _host(piece())
            for name, piece in pieces.items()
        }
        if self.job.kind == "speech":
            import torch

            with torch.no_grad(), torch.device(self.work.device):
                found["prefill"] = _host(self._heard()[0])
        return found

    def _by_kind(self) -> dict[str, Piece]:
        if self.job.kind == "speech":
            return {"encode": self._encode, "transcribe": lambda: self._decoded(*self._heard())}
        if self.job.kind == "decoder":
            return {
                "prefill": lambda: self._prompt()[0],
                "generate": lambda: self._decoded(*self._prompt()),
            }
        return {"embed": lambda: self.library.call(self.job.output, self.given)}

    def _encode(self) -> Any:
        return self.model.model.encoder(self.given[0]).last_hidden_state

    def _heard(self) -> tuple[Any, Callable[[Any], Any]]:
        from transformers.cache_utils import DynamicCache, EncoderDecoderCache

        states, decoder = self._encode(), self.model.model.decoder
        held = {_cache_name(decoder): EncoderDecoderCache(DynamicCache(), DynamicCache())}

        def call(ids: Any) -> Any:
            made = decoder(input_ids=ids, encoder_hidden_states=states, use_cache=True, **held)
            return self.model.proj_out(made.last_hidden_state[:, -1])

        return call(self.given[1]), call

    def _prompt(self) -> tuple[Any, Callable[[Any], Any]]:
        from transformers.cache_utils import DynamicCache

        held = {_cache_name(self.model): DynamicCache(config=self.model.config)}

        def call(ids: Any) -> Any:
            made = self.model(input_ids=ids, use_cache=True, logits_to_keep=1, **held)
            return made.logits[:, -1]

        return call(self.given[0]), call

    def _decoded(self, logits: Any, call: Callable[[Any], Any]) -> Any:
        """The largest logit, again and again; ids reach the host at the end alone."""
        import torch

        ids = [logits.argmax(-1, keepdim=True)]
        while len(ids) < self.job.new_tokens:
            ids.append(call(ids[-1]).argmax(-1, keepdim=True))
        return torch.cat(ids, 1).cpu()


class CompiledJob(LibraryJob):
    """The same under torch.compile, as the library documents it: caches of a fixed size, and steps of one shape.

    The prompt is read by the eager model, as it is read once.
    """

    def __init__(self, library: Any, job: Job, work: Work) -> None:
        super().__init__(library, job, work)
        self.cast()
        self.forward: Any = None
        if job.kind == "speech":
            self.model.model.encoder.compile(dynamic=False)
            self.forward = _compiled(self.model.model.decoder)
        elif job.kind == "decoder":
            self.forward = _compiled(self.model)
        else:
            for module in {id(m): m for m in (self.model.base_model, self.model)}.values():
                module.compile(dynamic=False)

    def _heard(self) -> tuple[Any, Callable[[Any], Any]]:
        from transformers.cache_utils import EncoderDecoderCache

        states, decoder = self._encode(), self.model.model.decoder
        caches = EncoderDecoderCache(self._cache(self._slots()), self._cache(states.shape[1]))
        held, place = {_cache_name(decoder): caches}, _Places(self.work.device)

        def call(ids: Any) -> Any:
            forward = self.forward if place.begun else decoder
            made = forward(
                input_ids=ids,
                encoder_hidden_states=states,
                use_cache=True,
                position_ids=place.next(ids),
                **held,
            )
            return self.model.proj_out(made.last_hidden_state[:, -1])

        return call(self.given[1]), call

    def _prompt(self) -> tuple[Any, Callable[[Any], Any]]:
        held, place = {_cache_name(self.model): self._cache(self._slots())}, _Places(self.work.device)

        def call(ids: Any) -> Any:
            forward = self.forward if place.begun else self.model
            made = forward(
                input_ids=ids, use_cache=True, logits_to_keep=1, position_ids=place.next(ids), **held
            )
            return made.logits[:, -1]

        return call(self.given[0]), call

    def _slots(self) -> int:
        return int(self.job.arguments["tokens"].shape[1]) + self.job.new_tokens

    def _cache(self, slots: int) -> Any:
        from transformers.cache_utils import StaticCache

        return StaticCache(config=self.model.config, max_cache_len=slots)


class _Places:
    """Positions of the tokens of each call, which go on where the last one ended."""

    def __init__(self, device: str) -> None:
        self.device, self.begun = device, 0

    def next(self, ids: Any) -> Any:
        import torch

        first, self.begun = self.begun, self.begun + ids.shape[1]
        return torch.arange(first, self.begun, device=self.device)[None].expand(ids.shape[0], -1)


def _compiled(module: Any) -> Any:
    import torch

    return torch.compile(module.forward, dynamic=False)


def _host(made: Any) -> Array:
    return np.asarray((made.float() if made.is_floating_point() else made).cpu())


def _cache_name(module: Any) -> str:
    """What this version of the library calls the argument that holds its caches."""
    return "cache" if "cache" in inspect.signature(module.forward).parameters else "past_key_values"


def _moved(model: Any, device: str, dtype: Any = None) -> Any:
    """The module on a device, its floats in a type; what no entry reads is without data, and stays so."""

    def moved(x: Any) -> Any:
        return x if x.is_meta else x.to(device, dtype if x.is_floating_point() else None)

    return model._apply(moved)


def _tensor(array: Array, device: str) -> Any:
    import torch

    tensor = torch.from_numpy(array).to(device)
    return tensor.long() if tensor.dtype == torch.int32 else tensor
