"""What `nest.load` returns on jax: parameters as a pytree, entries as compiled pure functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.export import Exported

from nest._timing import stretch
from nest.backends.jax.axes import parameter_axes
from nest.backends.jax.compile_cache import use_compile_cache
from nest.backends.jax.engine import Engine, States
from nest.backends.jax.export import exported_entry
from nest.backends.jax.lower import lower
from nest.backends.jax.parameters import placed
from nest.backends.jax.partition import Rules
from nest.backends.jax.placement import Placement, device_of, placement
from nest.backends.jax.planned import PackedParams, planned_engine
from nest.backends.jax.session import Checked, JaxSession, new_states
from nest.backends.session import HoldsDefault, call_default, session_symbols
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.ir.plan import plan as make_plan
from nest.ir.program import Program

__all__ = ["JaxModel", "Recipe", "build", "skeleton"]

Recipe = tuple[Callable[..., Any], tuple[Any, ...]]
"""What makes the same model without weights, for pickle: a function and its arguments."""


class JaxModel(HoldsDefault):
    """A loaded model. Entries are methods; the ones with states use a default session, one caller at a time.

    Attributes:
        program: the typed program of the definition.
        params: the parameters, a dict by definition path: a pytree for jax's transformations.
        entry: the zoo entry that the model was loaded from, or None.
        notes: what its weights came with.
    """

    backend: ClassVar[str] = "jax"
    """The name of the backend."""

    def __init__(
        self,
        program: Program,
        params: dict[str, Array],
        *,
        place: Placement | None = None,
        entry: Any = None,
        session: Mapping[str, int] | None = None,
        notes: Sequence[str] = (),
        recipe: Recipe | None = None,
    ) -> None:
        self.program = program
        self.params = params
        self.entry = entry
        self.notes = tuple(notes)
        self._recipe = recipe
        self._place = place or Placement()
        self._session = dict(session or {})
        self._checked = Checked(program)
        self._engine = Engine(program, self._run, place=self._place)
        self._plans: dict[str, tuple[Engine, PackedParams]] = {}

    def _run(
        self, name: str, params: Mapping[str, Array], states: States, arguments: Sequence[Any]
    ) -> tuple[tuple[Array, ...], States]:
        after = dict(states)
        return lower(self.program.entries[name], params, after, arguments), after

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """What the axes of each parameter are called, by definition path; `sharding=` goes by these names."""
        return parameter_axes(self.program)

    @property
    def compilations(self) -> dict[str, int]:
        """How often each entry was compiled."""
        return dict(self._engine.compilations)

    def function(self, name: str) -> Callable[..., Any]:
        """An entry as a pure function, not compiled, for `jax.jit`, `grad`, `vmap` and the rest.

        `f(params, *arguments) -> result`; for an entry with states `f(params, states, *arguments) -> (result, states)`,
        with states as `new_states` makes them. Every argument is given, `lengths` too, and nothing is checked.

        Raises:
            CallError: there is no such entry.
        """
        self._checked.signature(name)
        function = self.program.entries[name]
        pure = self._engine.pure(name)

        def single(results: tuple[Array, ...]) -> Any:
            return results[0] if function.signature.single else results

        def stateless(params: Mapping[str, Array], *arguments: Any) -> Any:
            return single(pure(params, {}, {}, *arguments)[0])

        def stateful(params: Mapping[str, Array], states: States, *arguments: Any) -> tuple[Any, States]:
            results, written = pure(params, states, {}, *arguments)
            return single(results), {**states, **written}

        return stateful if function.uses_state else stateless

    def new_states(self, **symbols: int) -> States:
        """The states of a session by definition path, all zero, for `function`."""
        given = {**self._session, **symbols}
        return new_states(self.program, session_symbols(self.program, given), self._place)

    def new_session(self, *, plan: str = "exact", **symbols: int) -> JaxSession:
        """States of their own over these weights.

        Args:
            plan: `"exact"`, the definition as it is written; `"fast"`, the same results over packed weights.
            **symbols: `Batch`, rows; `Capacity`, slots of the caches, by default what the definition admits.
        """
        values = session_symbols(self.program, {**self._session, **symbols})
        with stretch(f"plan {plan}"):
            made = make_plan(self.program, plan)
        engine, packed = self._engine, None
        if made.params is not None:
            if plan not in self._plans:
                self._plans[plan] = (
                    planned_engine(made, engine.compilations, self._place),
                    PackedParams(made.params),
                )
            engine, packed = self._plans[plan]
        return JaxSession(
            self.program,
            values,
            engine=engine,
            checked=self._checked,
            params=lambda: self.params if packed is None else packed.of(self.params),
            place=self._place,
        )

    def export(self, name: str, *, platforms: Sequence[str] | None = None, **symbols: int) -> Exported:
        """An entry as StableHLO, its generics symbolic; see `exported_entry`. **symbols are `Batch` and `Capacity`."""
        self._checked.signature(name)
        session = session_symbols(self.program, {**self._session, **symbols})
        return exported_entry(self._engine, name, self.params, session, platforms)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self._call(name, inputs, {})

    def _call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function = self.program.entries.get(name)
        if function is not None and function.uses_state:
            return call_default(self, self.new_session, name, args, kwargs)
        native = self._checked(name, args, kwargs, {})
        native = self._checked.padded(name, native, {})
        results, _ = self._engine(name, self.params, {}, native)
        return results[0] if self.program.entries[name].signature.single else results

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "program" or name not in self.program.entries:
            raise AttributeError(
                f"{type(self).__name__} has no attribute '{name}'; its entries: {', '.join(self.program.entries)}"
            )
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    def __deepcopy__(self, memo: dict[int, Any]) -> JaxModel:
        """Parameters of its own, and the same compiled code."""
        other = copy.copy(self)
        other.params = {path: jnp.copy(x) for path, x in self.params.items()}
        other._plans = {}
        return other

    def __copy__(self) -> JaxModel:
        other = JaxModel.__new__(JaxModel)
        vars(other).update(vars(self))
        other._plans = {}
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        if self._recipe is None:
            raise CallError(
                f"{self.program.name} was built from a class and cannot be pickled; save its params."
            )
        return _restored, (self._recipe, {path: np.asarray(x) for path, x in self.params.items()})

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.program.name}>"


def build(
    program: Program,
    params: Mapping[str, np.ndarray[Any, Any]],
    *,
    device: str | None = None,
    sharding: Rules | None = None,
    param_dtype: str | None = None,
    **info: Any,
) -> JaxModel:
    """The model of a program over these parameters, which are copied to where they belong.

    Args:
        device: a platform of jax such as `"cpu"` or `"cuda"`; its default if None.
        sharding: which axes lie on which axes of the mesh of `jax.set_mesh`, see `Partition`.
        param_dtype: the element type of float parameters; the program's if None.
        **info: `entry`, `session`, `notes` and `recipe`, see `JaxModel`.
    """
    use_compile_cache()
    place = placement(program, device_of(device), sharding)
    with stretch("put the weights"):
        arrays = placed(program, params, place, param_dtype)
    return JaxModel(program, arrays, place=place, **info)


def skeleton(program: Program, **info: Any) -> JaxModel:
    """The model without parameters."""
    use_compile_cache()
    return JaxModel(program, {}, **info)


def _restored(recipe: Recipe, params: Mapping[str, np.ndarray[Any, Any]]) -> JaxModel:
    """A pickled model."""
    make, args = recipe
    model: JaxModel = make(*args)
    model.params = {path: jnp.array(params[path]) for path in parameters(model.program)}
    return model
