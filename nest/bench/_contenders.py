"""Who takes part in `nest bench`: nest on a backend at a plan, and the reference library; each has the job's pieces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

import nest
from nest.bench._library_job import CompiledJob, LibraryJob
from nest.bench._loaded import Contender, Piece
from nest.bench._task_pieces import library_task, nest_task
from nest.bench._work import CAPACITY, Job, Work, job_of
from nest.bench.peers import PEERS
from nest.loading import program_of
from nest.registry import Entry, find
from nest.verify.library import library_of
from nest.verify.setting import pinned_parameters
from nest.weights import open_checkpoint

__all__ = ["COMPILED", "LIBRARY", "Method", "contender"]

Array = np.ndarray[Any, Any]
LIBRARY = "transformers"
COMPILED = "compiled"
"""The plan of the library's model under torch.compile."""


@dataclass(frozen=True)
class Method:
    """A contender's choices. `backend` is one of nest's, or `transformers`; `graphs`: CUDA graphs, of torch alone."""

    backend: str
    plan: str = "exact"
    graphs: bool = False

    @property
    def peer(self) -> bool:
        """Whether it is one of `nest.bench.peers`."""
        return self.backend in PEERS

    @property
    def title(self) -> str:
        """Its name in tables."""
        if self.backend == LIBRARY:
            return f"transformers ({'compiled' if self.plan == COMPILED else 'eager'})"
        if self.peer:
            return self.backend
        plan = ", fast" if self.plan == "fast" else ""
        return f"nest {self.backend}{plan}{', CUDA graphs' if self.graphs else ''}"

    @property
    def key(self) -> str:
        """Its name without spaces."""
        return self.title.lower().replace(",", "").replace("(", "").replace(")", "").replace(" ", "-")


def contender(method: Method, work: Work, weights: str | None, task: str | None = None) -> Contender:
    """Load a contender.

    Args:
        weights: a file of parameters by definition path; the pinned ones if None.
        task: the file of the whole job's arrays (`nest.bench._task`), if there is one.
    """
    entry = find(work.entry)
    if method.backend == LIBRARY:
        return _library(entry, method, work, weights, task)
    return _nest(entry, method, work, weights, task)


def _nest(entry: Entry, method: Method, work: Work, weights: str | None, task: str | None) -> Contender:
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
    whole = None if task is None else nest_task(model, method.plan, task, work)
    taken = perf_counter() - start
    made = _NestJob(session, job, _placer(method.backend, work), _waiter(work)).contender(taken)
    return made if whole is None else _with_task(made, whole)


def _with_task(made: Contender, whole: Piece) -> Contender:
    """A contender whose last piece is the whole job."""
    results = made.results
    return Contender({**made.pieces, "task": whole}, lambda: {**results(), **_arrays(whole())}, made.load_s)


def _arrays(found: Mapping[str, Any]) -> dict[str, Array]:
    return {name: np.asarray(value) for name, value in found.items()}


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


def _library(entry: Entry, method: Method, work: Work, weights: str | None, task: str | None) -> Contender:
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
    job = job_of(entry, program, work)
    if method.plan == COMPILED:
        compiled = CompiledJob(library, job, work)
        return Contender(compiled.pieces(), compiled.results, None)
    whole = None if task is None else library_task(entry, library, task, work)
    made = LibraryJob(library, job, work)
    # In f32: what is right, whatever type the work is in.
    found = {**made.results(), **({} if whole is None else _arrays(whole()))}
    made.cast()
    pieces = made.pieces()
    if whole is not None and work.dtype == "f32":
        pieces["task"] = whole
    return Contender(pieces, lambda: found, None)


def _torch_threads(work: Work) -> None:
    import torch

    if work.device == "cpu":
        torch.set_num_threads(work.threads)
