"""Compiled entries: pure functions under `jax.jit`, which give their written states away and get new ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import jax
from jax import Array

from nest.ir.program import Function, Program, path_text

__all__ = ["Engine", "Run", "States"]

States = dict[str, Array]
Results = tuple[Array, ...]


class Run(Protocol):
    """An entry as a pure function, for jax to trace."""

    def __call__(
        self, name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[Results, States]:
        """The results of entry `name`, and all states after it; everything goes by definition path."""


class Engine:
    """The entries of a program, each compiled once for each combination of shapes.

    Args:
        program: whose entries.
        run: what computes them.
        compilations: counts the compilations of each entry; it may be shared between engines.
    """

    def __init__(self, program: Program, run: Run, compilations: Counter[str] | None = None) -> None:
        self.program = program
        self.compilations: Counter[str] = Counter() if compilations is None else compilations
        self._run = run
        self._compiled: dict[str, Callable[..., tuple[Results, States]]] = {}

    def __call__(
        self, name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[Results, States]:
        """The results of an entry and the states that it wrote, whose old buffers are given away."""
        function = self.program.entries[name]
        written = written_states(function)
        kept = {n: states[n] for n in used_states(function) if n not in written}
        return self.compiled(name)(params, kept, {n: states[n] for n in written}, *arguments)

    def compiled(self, name: str) -> Callable[..., tuple[Results, States]]:
        """`f(params, kept, written, *arguments) -> (results, written)`; the buffers of `written` are donated."""
        known = self._compiled.get(name)
        if known is None:
            known = self._compiled[name] = jax.jit(self.pure(name, count=True), donate_argnums=2)
        return known

    def pure(self, name: str, *, count: bool = False) -> Callable[..., tuple[Results, States]]:
        """The same function before it is compiled, for jax's transformations."""
        written = written_states(self.program.entries[name])

        def entry(params: Any, kept: States, states: States, *arguments: Any) -> tuple[Results, States]:
            if count:
                # Runs when jax traces, which it does once for each compilation.
                self.compilations[name] += 1
            with jax.default_matmul_precision("highest"):
                results, after = self._run(name, params, {**kept, **states}, arguments)
            return results, {n: after[n] for n in written}

        entry.__name__ = entry.__qualname__ = name
        return entry


def written_states(function: Function) -> tuple[str, ...]:
    """The states that an entry writes, by definition path."""
    return tuple(sorted(map(path_text, function.writes)))


def used_states(function: Function) -> tuple[str, ...]:
    """The states that an entry reads or writes."""
    return tuple(sorted(map(path_text, function.reads | function.writes)))
