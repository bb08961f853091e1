"""Sessions over an NNX module."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from flax import nnx
from jax import Array

from nest.backends.jax.nnx.variables import variables
from nest.backends.jax.planned import PackedParams
from nest.backends.jax.session import JaxSession
from nest.ir.plan import Plan

if TYPE_CHECKING:
    from nest.backends.jax.nnx.model import NnxModel

__all__ = ["NnxSession"]


class _Values(Mapping[str, Array]):
    """What variables hold now, by definition path; only those are read that an entry uses."""

    def __init__(self, variables: Mapping[str, nnx.Variable[Array]]) -> None:
        self._variables = variables

    def __getitem__(self, path: str) -> Array:
        value: Array = self._variables[path].get_raw_value()
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)


class NnxSession(JaxSession):
    """A session over an NNX module: split once, then pure jax.

    Args:
        model: whose parameters it reads.
        symbols: `Batch` and `Capacity`.
        holds_model: keep the model alive; its own default session must not.
        plan: what is run; the module itself if None or `exact`.
    """

    def __init__(
        self,
        model: NnxModel,
        symbols: Mapping[str, int],
        *,
        holds_model: bool = True,
        plan: Plan | None = None,
    ) -> None:
        info = model.nest_info
        own = dict(variables(model))

        engine, packed = info.engine(model), None
        if plan is not None and plan.params is not None:
            engine, packed = info.planned(plan), info.packed.setdefault(model, PackedParams(plan.params))
        super().__init__(
            info.program,
            symbols,
            engine=engine,
            checked=info.checked,
            params=lambda: _Values(own) if packed is None else packed.of(_Values(own)),
            place=info.place,
        )
        self._plan = plan
        self._model: Callable[[], NnxModel | None] = (lambda: model) if holds_model else weakref.ref(model)

    @property
    def model(self) -> NnxModel:
        """The module that the session is of."""
        return cast("NnxModel", self._model())

    def _sibling(self, symbols: Mapping[str, int]) -> NnxSession:
        return NnxSession(self.model, symbols, plan=self._plan)

    @property
    def caches(self) -> nnx.Dict[Any]:
        """A copy of the states as a tree of caches that mirrors the module, for `model.step(token, pos, state)`."""
        tree = self.model.new_state(**self.symbols)
        states = self.state
        for path, cache in variables(cast(nnx.Module, tree)):
            cache.set_value(states[path])
        return tree
