"""A process in which contenders are measured: it loads them, and does their job when it is their turn.

Lines of JSON go in and out: `load` and `run` name a contender by its key, `drop` forgets one. So many contenders can
wait beside each other while one works, and each one's memory is that of its own process.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from time import perf_counter
from typing import IO, Any

from nest.bench._loaded import Contender
from nest.errors import MissingDependencyError, NestError

__all__ = ["Lane"]


class Lane:
    """The process, from outside.

    Args:
        threads: the size of each library's pool; none may count more cores than it is lent.
        pinned: to so many cores, and to the processor: jax would compute on a GPU wherever there is one.
        python: what runs it, if another than this one.
        path: the folder in which that one finds nest, and nothing else that this one has installed.
    """

    def __init__(
        self, threads: int, *, pinned: bool = True, python: str = sys.executable, path: str | None = None
    ) -> None:
        pools = {f"{n}_NUM_THREADS": str(threads) for n in ("OMP", "MKL", "OPENBLAS")}
        platform = {"JAX_PLATFORMS": "cpu"} if pinned else {}
        found = {} if path is None else {"PYTHONPATH": path}
        self._process = subprocess.Popen(
            [python, "-m", "nest.bench._lane", str(threads if pinned else 0)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, **pools, **platform, **found, "XLA_PYTHON_CLIENT_PREALLOCATE": "false"},
        )  # fmt: skip

    def send(self, what: str, **facts: Any) -> None:
        """Ask for something; `answer` gives what came of it."""
        if self._process.stdin is None or self._process.stdin.closed:
            return
        try:
            self._process.stdin.write(json.dumps({"do": what, **facts}) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return  # the answer says that it ended

    def answer(self) -> dict[str, Any]:
        """What was asked for; of a process that ended, an `error`."""
        answers = self._process.stdout
        line = answers.readline() if answers and not answers.closed else ""
        if not line:
            return {"error": f"the process ended with code {self._process.wait()}"}
        made: dict[str, Any] = json.loads(line)
        return made

    def ask(self, what: str, **facts: Any) -> dict[str, Any]:
        """Ask, and wait for the answer."""
        self.send(what, **facts)
        return self.answer()

    def end(self) -> None:
        """Let the process end, and wait for it."""
        if self._process.stdin:
            self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()


class _Server:
    """The process, from inside."""

    def __init__(self) -> None:
        self.loaded: dict[str, Any] = {}

    def device(self, backend: str, device: str) -> Any:
        """Whether a backend computes on a device here."""
        from nest.bench._devices import check_device

        check_device(backend, device)
        return {}

    def load(
        self,
        key: str,
        method: dict[str, Any],
        work: dict[str, Any],
        weights: str | None,
        task: str | None,
        into: str,
    ) -> Any:
        """Load a contender, do its job twice, and keep its results in a file."""
        from nest.bench._contenders import Method, contender
        from nest.bench._devices import check_device
        from nest.bench._work import Work

        check_device(method["backend"], work["device"])
        return self._loaded(key, lambda: contender(Method(**method), Work(**work), weights, task), into)

    def load_peer(self, key: str, name: str, given: dict[str, Any], into: str) -> Any:
        """The same of a peer; `absent` says why it has no part."""
        from nest.bench.peers.load import absent, loaded, versions

        why = absent(name, given["device"], given["weights"])
        if why:
            return {"absent": why}
        return {**self._loaded(key, lambda: loaded(name, given), into), "versions": versions(name)}

    def _loaded(self, key: str, make: Callable[[], Contender], into: str) -> dict[str, Any]:
        import numpy as np

        before = _device_memory(begin=True)
        made = make()
        start = perf_counter()
        for piece in made.pieces.values():
            piece()
        first = perf_counter() - start
        np.savez(into, **made.results())
        for piece in made.pieces.values():
            piece()
        self.loaded[key] = made
        return {"load_s": made.load_s, "first_s": first, **_peaks(before)}

    def run(self, key: str) -> Any:
        """Do each piece once; milliseconds by name."""
        taken = {}
        for name, piece in self.loaded[key].pieces.items():
            start = perf_counter()
            piece()
            taken[name] = 1e3 * (perf_counter() - start)
        return {"ms": taken, **_host_peak()}

    def drop(self, key: str) -> Any:
        """Forget a contender, and what the frameworks keep of it."""
        self.loaded.pop(key, None)
        gc.collect()
        if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
            sys.modules["torch"].cuda.empty_cache()
            sys.modules["torch"].cuda.reset_peak_memory_stats()
        if "jax" in sys.modules:
            sys.modules["jax"].clear_caches()
        return {}

    def serve(self, asked: IO[str], answers: IO[str]) -> None:
        """Answer line by line until there are none."""
        for line in asked:
            facts = json.loads(line)
            try:
                made = getattr(self, facts.pop("do"))(**facts)
            except Exception as error:  # one contender's failure is its row, and others go on
                text = " ".join(str(error).split())[:300]
                made = {"error": text if isinstance(error, NestError) else f"{type(error).__name__}: {text}"}
                if isinstance(error, MissingDependencyError):
                    made["missing"] = error.name or ""
            answers.write(json.dumps(made) + "\n")
            answers.flush()


def _host_peak() -> dict[str, float]:
    import resource

    # Linux counts in KiB, macOS in bytes.
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {"peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}


def _device_memory(*, begin: bool = False) -> tuple[float, float]:
    """MiB of the device that are in use, and the most that were; `begin` counts the most anew, where that can be."""
    if "jax" in sys.modules:
        stats = sys.modules["jax"].devices()[0].memory_stats() or {}
        return stats.get("bytes_in_use", 0) / 2**20, stats.get("peak_bytes_in_use", 0) / 2**20
    cuda = sys.modules["torch"].cuda if "torch" in sys.modules else None
    if cuda is None or not cuda.is_available():
        return 0.0, 0.0
    if begin:
        cuda.reset_peak_memory_stats()
    return cuda.memory_allocated() / 2**20, cuda.max_memory_allocated() / 2**20


def _peaks(before: tuple[float, float]) -> dict[str, float]:
    """The peaks over what was in use before. jax's is never counted anew: where it did not rise, it is not told."""
    most = _device_memory()[1]
    return {**_host_peak(), **({"peak_vram_mib": most - before[0]} if most > before[1] else {})}


def main() -> None:
    """Serve on standard input and output; what libraries print goes to standard error."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")  # that a long text is cut is part of the job
    threads = int(sys.argv[1])
    if threads and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    _Server().serve(sys.stdin, answers)


if __name__ == "__main__":
    main()
