"""Sessions: who holds a model's states."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from nest.errors import CallError
from nest.ir.inventory import default_capacity
from nest.ir.program import Program

__all__ = ["BaseSession", "default_session", "session_symbols"]


class BaseSession:
    """States of one caller, over weights that all sessions share.

    Entries are methods: `session.step(token, pos)`. A session is used by one thread at a time.

    Attributes:
        symbols: the values of `Batch` and `Capacity`.
    """

    def __init__(self, program: Program, symbols: Mapping[str, int]) -> None:
        self.program = program
        self.symbols = dict(symbols)

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Run an entry: see `EntryCall` for what is checked."""
        raise NotImplementedError

    def numpy(self, value: Any) -> Any:
        """A result as a numpy array on the host."""
        raise NotImplementedError

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self.call(name, inputs, {})

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("_") or name not in self.program.entries:
            raise AttributeError(
                f"{type(self).__name__} of {self.program.name} has no attribute '{name}'; its entries: "
                f"{', '.join(self.program.entries)}"
            )
        return lambda *args, **kwargs: self.call(name, args, kwargs)

    def __repr__(self) -> str:
        symbols = ", ".join(f"{n}={v}" for n, v in self.symbols.items())
        return f"<{type(self).__name__} of {self.program.name}, {symbols}>"


def session_symbols(program: Program, given: Mapping[str, int | None]) -> dict[str, int]:
    """The values of a session's symbols, from what was given and what the definition admits.

    Raises:
        CallError: an unknown symbol, a value that is not a positive integer, or one that a rule forbids.
    """
    unknown = [n for n in given if n not in ("Batch", "Capacity")]
    if unknown:
        raise CallError(
            f"A session of {program.name} has no '{unknown[0]}'; it takes Batch (rows) and Capacity (slots of its "
            f"caches). Generics are chosen when the model is loaded."
        )
    symbols = {"Batch": given.get("Batch") or 1}
    capacity = given.get("Capacity")
    if capacity is None:
        capacity = default_capacity(program)
    if capacity is not None:
        symbols["Capacity"] = capacity
    for name, value in symbols.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise CallError(f"{program.name}: {name} is a positive integer, and {value!r} was given.")
    for rule in program.rules:
        if rule.symbols() & symbols.keys() and not _holds(program, rule, symbols):
            limit = rule.right.value
            raise CallError(
                f"{program.name} requires {rule}, and {rule.left} = {symbols['Capacity']}, {rule.right} = {limit}."
            )
    return symbols


def _holds(program: Program, rule: Any, symbols: Mapping[str, int]) -> bool:
    generics = {n: v.value for n, v in program.root.generics.items() if isinstance(v.value, int)}
    return bool(rule.check({**generics, **symbols}))


class _Default:
    """The session that a model's own entries use, and the lock that gives it one caller at a time."""

    def __init__(self, session: BaseSession) -> None:
        self.lock = threading.RLock()
        self.session = session


# Kept beside the models, so that a module's attributes, pytree, copies and pickles hold no session.
_DEFAULTS: WeakKeyDictionary[Any, _Default] = WeakKeyDictionary()
_MAKING = threading.Lock()


def default_session(model: Any, make: Callable[[], BaseSession]) -> _Default:
    """The model's default session with its lock, made at its first use."""
    with _MAKING:
        known = _DEFAULTS.get(model)
        if known is None:
            known = _DEFAULTS[model] = _Default(make())
        return known
