"""Who takes part in `nest bench`: nest on a backend at a plan, and the reference library; each has the job's pieces."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import nest
from nest.bench._work import CAPACITY, Job, Work, job_of
from nest.loading import program_of
from nest.registry import Entry, find
from nest.verify.library import library_of
from nest.verify.setting import pinned_parameters
from nest.weights import open_checkpoint

__all__ = ["Contender", "Method", "contender"]

Array = np.ndarray[Any, Any]
Piece = Callable[[], Any]
LIBRARY = "transformers"


@dataclass(frozen=True)
class Method:
    """A contender's choices. `backend` is one of nest's, or `transformers`; `graphs`: CUDA graphs, of torch alone."""

    backend: str
    plan: str = "exact"
    graphs: bool = False

    @property
    def title(self) -> str:
        """Its name in tables."""
        if self.backend == LIBRARY:
            return "transformers (eager)"
        plan = ", fast" if self.plan == "fast" else ""
        return f"nest {self.backend}{plan}{', CUDA graphs' if self.graphs else ''}"

    @property
    def key(self) -> str:
        """Its name without spaces."""
        return self.title.lower().replace(",", "").replace("(", "").replace(")", "").replace(" ", "-")


@dataclass
class Contender:
    """Loaded: the job's pieces, each of which ends when its result is there; what they give; seconds of the load."""

    pieces: dict[str, Piece]
    results: Callable[[], dict[str, Array]]
    load_s: float | None


def contender(method: Method, work: Work, weights: str | None) -> Contender:
    """Load a contender.

    Args:
        weights: a file of parameters by definition path; the pinned ones if None.
    """
    entry = find(work.entry)
    if method.backend == LIBRARY:
        return _library(entry, work, weights)
    return _nest(entry, method, work, weights)


def _nest(entry: Entry, method: Method, work: Work, weights: str | None) -> Contender:
    options: dict[str, Any] = {"threads": work.threads} if method.backend == "onnx" else {}
    if method.backend == "onnx" and work.device == "cuda":
        options["providers"] = ["CUDAExecutionProvider"]
    if method.backend == "torch":
        options["device"] = work.device
        _torch_threads(work)
    job = job_of(entry, program_of(entry), work)
    start = perf_counter()
    given: dict[str, Any] = {} if weights is None else {"weights": weights}
    model = nest.load(
        entry, backend=method.backend, dtype=work.dtype, local_files_only=True, **given, **options
    )
    sizes = {"Capacity": CAPACITY} if job.kind == "decoder" else {}
    chosen: dict[str, Any] = {} if method.plan == "exact" else {"plan": method.plan}
    chosen |= {"graphs": True} if method.graphs else {}
    rows = {"Batch": work.batch} if job.kind in ("speech", "decoder") else {}
    session = model.new_session(**chosen, **rows, **sizes)
    taken = perf_counter() - start
    return _NestJob(session, job, _placer(method.backend, work), _waiter(work)).contender(taken)


class _NestJob:
    """The pieces on a session."""

    def __init__(
        self, session: Any, job: Job, place: Callable[[Array], Any], wait: Callable[[Any], Any]
    ) -> None:
        self.session, self.job, self.wait = session, job, wait
        self.given = {name: place(array) for name, array in job.arguments.items()}
        rows = len(next(iter(job.arguments.values())))
        self.out = np.zeros((rows, job.new_tokens), np.int32)
        self.end = np.int32(-1)

    def contender(self, load_s: float) -> Contender:
        pieces = {"speech": self._speech, "decoder": self._decoder}.get(self.job.kind, self._plain)()
        return Contender({n: partial(self._timed, p) for n, p in pieces.items()}, self._results, load_s)

    def _timed(self, piece: Piece) -> Any:
        return self.wait(piece())

    def _speech(self) -> dict[str, Piece]:
        mel, tokens, session = self.given["mel"], self.given["tokens"], self.session
        self.wait(session.listen(mel))
        step = np.zeros((len(self.out), 1), np.int32), np.full(len(self.out), tokens.shape[1], np.int32)
        return {
            "encode": lambda: session.run_entry("encode", [mel]),
            "prefill": lambda: session.prefill(tokens),
            "step": lambda: session.step(*step),
            "transcribe": lambda: session.hear(mel, tokens, self.out, self.end)[0],
        }

    def _decoder(self) -> dict[str, Piece]:
        tokens, session = self.given["tokens"], self.session
        whole = session.whole_decodes
        return {
            "prefill": lambda: session.prefill(tokens),
            "generate": lambda: session.greedy(tokens, self.out, self.end)[0] if whole else self._stepwise(),
        }

    def _plain(self) -> dict[str, Piece]:
        return {"embed": lambda: self.session.run_entry(self.job.output, list(self.given.values()))}

    def _stepwise(self) -> Array:
        """Where one call is not the fast way to decode: an entry a token, the choice on the host."""
        session, tokens = self.session, self.job.arguments["tokens"]
        logits, ids = session.prefill(tokens), self.out.copy()
        for i in range(ids.shape[1]):
            ids[:, i] = session.numpy(logits).argmax(-1)
            if i + 1 < ids.shape[1]:
                pos = np.full(len(ids), tokens.shape[1] + i, np.int32)
                logits = session.step(ids[:, i : i + 1], pos)
        return ids

    def _results(self) -> dict[str, Array]:
        named = {"speech": ("encode", "prefill"), "decoder": ("prefill",)}.get(self.job.kind, ("embed",))
        pieces = {"speech": self._speech, "decoder": self._decoder}.get(self.job.kind, self._plain)()
        found = {name: self._host(pieces[name]()) for name in named}
        loop = {"speech": "transcribe", "decoder": "generate"}.get(self.job.kind)
        return {**found, **({"tokens": self._host(pieces[loop]())} if loop else {})}

    def _host(self, value: Any) -> Array:
        array = value if isinstance(value, np.ndarray) else np.asarray(self.session.numpy(value))
        return array.astype(np.float32) if array.dtype.kind not in "iu" else array


def _placer(backend: str, work: Work) -> Callable[[Array], Any]:
    """Inputs lie where the model does, so that the copy is no part of anyone's time."""
    if backend == "torch":
        import torch

        return lambda array: torch.from_numpy(array).to(work.device)
    if backend in ("jax", "nnx"):
        import jax

        return lambda array: jax.device_put(array)
    return lambda array: array


def _waiter(work: Work) -> Callable[[Any], Any]:
    def wait(value: Any) -> Any:
        if hasattr(value, "block_until_ready"):
            return value.block_until_ready()
        if work.device == "cuda":
            import torch

            torch.cuda.synchronize()
        return value

    return wait


def _library(entry: Entry, work: Work, weights: str | None) -> Contender:
    _torch_threads(work)
    program = program_of(entry)
    params: Mapping[str, Any]
    if weights is None:
        params = pinned_parameters(entry, program, {"local_files_only": True})
    else:
        params = {path: view.array() for path, view in open_checkpoint([weights]).items()}
    library = library_of(entry, program, params)
    if library is None:
        raise RuntimeError(f"the family '{entry.manifest.model.family}' has no module in nest/verify/library")
    job = _LibraryJob(library, job_of(entry, program, work), work)
    found = job.results()  # in f32: what is right, whatever type the work is in
    job.cast()
    return Contender(job.pieces(), lambda: found, None)


class _LibraryJob:
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
            {"transcribe": "tokens", "generate": "tokens"}.get(name, name): np.asarray(piece().cpu())
            for name, piece in pieces.items()
        }
        if self.job.kind == "speech":
            import torch

            with torch.no_grad(), torch.device(self.work.device):
                found["prefill"] = np.asarray(self._heard()[0].cpu())
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


def _torch_threads(work: Work) -> None:
    import torch

    if work.device == "cpu":
        torch.set_num_threads(work.threads)
