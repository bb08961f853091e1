"""The session that a model's own entries use: one for each model, one caller at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

from nest.errors import CallError

__all__ = ["HoldsDefault", "call_default"]

_EMPTIED = "The model's default session has been emptied."


class _Session(Protocol):
    @property
    def broken(self) -> bool: ...

    def call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any: ...


class _Default:
    """A session, and the lock that gives it one caller at a time."""

    def __init__(self, session: _Session) -> None:
        self.lock = threading.RLock()
        self.session = session


class HoldsDefault:
    """A model that has a default session.

    A slot is no attribute of `vars(model)`: the model's pytree, copies and pickles know nothing of the session, and the
    session goes when the model goes.
    """

    __slots__ = ("_nest_default",)
    _nest_default: _Default

    @property
    def quantization(self) -> tuple[Any, ...]:
        """What became of the weights of each part that `nest.load` quantized, as `PartQuantization`s."""
        program: Any = getattr(self, "program")  # noqa: B009 - of the models, each of which has one
        return tuple(program.quantization)


_SLOT: Any = vars(HoldsDefault)["_nest_default"]  # models of frameworks have a __setattr__ of their own
# Classes that may have no slots, as those of Flax; their default session must not hold the model.
_BESIDE: WeakKeyDictionary[Any, _Default] = WeakKeyDictionary()
_MAKING = threading.Lock()


def call_default(
    model: Any,
    make: Callable[[], _Session],
    name: str,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Run an entry on the model's default session, which `make` makes when it is first used.

    A caller takes a new session for one that a failed call has broken; of the default one nobody can, so it is
    replaced by an empty one, and the error says so.
    """
    with _MAKING:
        default = _default_of(model)
        if default is None:
            default = _Default(make())
            if isinstance(model, HoldsDefault):
                _SLOT.__set__(model, default)
            else:
                _BESIDE[model] = default
    with default.lock:
        try:
            return default.session.call(name, args, kwargs)
        except BaseException as error:
            if not default.session.broken:
                raise
            default.session = make()
            if isinstance(error, CallError):
                raise CallError(f"{error} {_EMPTIED}") from error
            error.add_note(_EMPTIED)
            raise


def _default_of(model: Any) -> _Default | None:
    if not isinstance(model, HoldsDefault):
        return _BESIDE.get(model)
    try:
        known: _Default = _SLOT.__get__(model, type(model))
    except AttributeError:
        return None
    return known
