"""Compiled entries: pure functions under `jax.jit`, which give their written states away and get new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import jax
from jax import Array

from nest.backends.jax.placement import Placement
from nest.backends.jax.rules.platform import current_platform
from nest.ir.inventory import used_parameters
from nest.ir.program import Function, Program, path_text

__all__ = ["Compiled", "Engine", "Results", "Run", "States"]

States = dict[str, Array]
Results = tuple[Array, ...]


class Run(Protocol):
    """An entry as a pure function, for jax to trace."""

    def __call__(
        self, name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[Results, States]:
        """The results of entry `name`, and all states after it; everything goes by definition path."""


# Runs of kernels, and the loops around them, are sent to a GPU as one graph: a decode's kernels take less time than the
# host takes to send them one by one.
GPU_OPTIONS = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUBLASLT,CUDNN,CUSTOM_CALL,CONDITIONAL,WHILE",
    "xla_gpu_graph_min_graph_size": 1,
}


@dataclass(frozen=True)
class Compiled:
    """A compiled entry: `run(params, kept, written, *arguments) -> (results, written)`, all but arguments as tuples.

    Attributes:
        run: the function; the buffers of `written` are donated.
        params: definition paths of the parameters that it uses, in order.
        kept: of the states that it reads and leaves as they are.
        written: of the states that it writes.
    """

    run: Callable[..., tuple[Results, Results]]
    params: tuple[str, ...]
    kept: tuple[str, ...]
    written: tuple[str, ...]


class Engine:
    """The entries of a program, each compiled once for each combination of shapes.

    Args:
        program: whose entries.
        run: what computes them.
        compilations: counts the compilations of each entry; it may be shared between engines.
        params: what every entry is given; those parameters of the program that it uses if None.
        place: where states are to stay, on a mesh.
    """

    def __init__(
        self,
        program: Program,
        run: Run,
        compilations: Counter[str] | None = None,
        params: tuple[str, ...] | None = None,
        place: Placement | None = None,
    ) -> None:
        self.program = program
        self.place = place or Placement()
        self._params = params
        self.compilations: Counter[str] = Counter() if compilations is None else compilations
        self._run = run
        self._compiled: dict[str, Compiled] = {}

    def __call__(
        self, name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[Results, States]:
        """The results of an entry and the states that it wrote, whose old buffers are given away."""
        entry = self.compiled(name)
        results, written = entry.run(
            tuple([params[n] for n in entry.params]),
            tuple([states[n] for n in entry.kept]),
            tuple([states[n] for n in entry.written]),
            *arguments,
        )
        return results, dict(zip(entry.written, written, strict=True))

    def compiled(self, name: str) -> Compiled:
        """An entry that is compiled when it is first called, for each combination of shapes."""
        known = self._compiled.get(name)
        if known is None:
            known = self._compiled[name] = self._compile(name)
        return known

    def _compile(self, name: str) -> Compiled:
        function = self.program.entries[name]
        written = written_states(function)
        kept = tuple(n for n in used_states(function) if n not in written)
        params = used_parameters(function) if self._params is None else self._params
        pure = self.pure(name, count=True)

        # A call costs the more the more arrays it hands over, and names are put in order: tuples, of what is used.
        def entry(
            given: Sequence[Array], unchanged: Sequence[Array], changed: Sequence[Array], *arguments: Any
        ) -> tuple[Results, Results]:
            results, after = pure(
                dict(zip(params, given, strict=True)),
                dict(zip(kept, unchanged, strict=True)),
                dict(zip(written, changed, strict=True)),
                *arguments,
            )
            return results, tuple(after[n] for n in written)

        entry.__name__ = entry.__qualname__ = name
        with self.place.traced():
            options = GPU_OPTIONS if current_platform() == "gpu" else None
        run = jax.jit(entry, donate_argnums=2, compiler_options=options)
        return Compiled(run, params, kept, written)

    def pure(self, name: str, *, count: bool = False) -> Callable[..., tuple[Results, States]]:
        """The same function before it is compiled, for jax's transformations."""
        written = written_states(self.program.entries[name])

        def entry(params: Any, kept: States, states: States, *arguments: Any) -> tuple[Results, States]:
            if count:
                # Runs when jax traces, which it does once for each compilation.
                self.compilations[name] += 1
            with jax.default_matmul_precision("highest"), self.place.traced():
                results, after = self._run(name, params, {**kept, **states}, arguments)
            return results, {n: self.place.keep(n, after[n]) for n in written}

        entry.__name__ = entry.__qualname__ = name
        return entry


def written_states(function: Function) -> tuple[str, ...]:
    """The states that an entry writes, by definition path."""
    return tuple(sorted(map(path_text, function.writes)))


def used_states(function: Function) -> tuple[str, ...]:
    """The states that an entry reads or writes."""
    return tuple(sorted(map(path_text, function.reads | function.writes)))
