"""What `nest.load` returns on nnx: the generated module, with entries that check their arguments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast
from weakref import WeakKeyDictionary

import jax
import jax.numpy as jnp
import numpy as np
from flax import nnx
from flax.core.spmd import get_logical_axis_rules
from jax.export import Exported

from nest.backends.generated import load_generated
from nest.backends.jax.axes import parameter_axes
from nest.backends.jax.compile_cache import use_compile_cache
from nest.backends.jax.engine import Engine
from nest.backends.jax.export import exported_entry
from nest.backends.jax.model import Recipe
from nest.backends.jax.nnx.pure import pure_entries
from nest.backends.jax.nnx.session import NnxSession
from nest.backends.jax.nnx.source import nnx_module
from nest.backends.jax.nnx.variables import drawn, filled, variables
from nest.backends.jax.parameters import placed
from nest.backends.jax.partition import Rules
from nest.backends.jax.placement import Placement, device_of, placement
from nest.backends.jax.planned import PackedParams, planned_engine
from nest.backends.jax.session import Checked
from nest.backends.session import call_default, session_symbols
from nest.errors import CallError
from nest.ir.plan import Plan
from nest.ir.plan import plan as make_plan
from nest.ir.program import Program

__all__ = ["ModelInfo", "NnxModel", "NnxSession", "build", "skeleton"]


@dataclass
class ModelInfo:
    """What a loaded model knows beside its weights; shared by all copies of the model."""

    program: Program
    source: str
    entry: Any = None
    notes: tuple[str, ...] = ()
    session: Mapping[str, int] = field(default_factory=dict)
    recipe: Recipe | None = None
    place: Placement = field(default_factory=Placement)
    compilations: Counter[str] = field(default_factory=Counter)
    engines: dict[Any, Engine] = field(default_factory=dict)
    packed: WeakKeyDictionary[Any, PackedParams] = field(default_factory=WeakKeyDictionary)

    def __post_init__(self) -> None:
        self.checked = Checked(self.program)

    def engine(self, model: NnxModel) -> Engine:
        """What computes a model of this structure; models that were changed by hand have their own."""
        graph, state = nnx.split(model)
        known = self.engines.get(graph)
        if known is None:
            run = pure_entries(self.program, graph, state)
            # Modules that were changed by hand may have other parameters, and use them where the program does not.
            paths = tuple(path for path, _ in variables(model))
            known = self.engines[graph] = Engine(self.program, run, self.compilations, paths, self.place)
        return known

    def planned(self, plan: Plan) -> Engine:
        """What computes by a plan."""
        known = self.engines.get(plan.name)
        if known is None:
            known = self.engines[plan.name] = planned_engine(plan, self.compilations, self.place)
        return known


class NnxModel(nnx.Module):
    """A loaded model. Entries are methods; the ones with states use a default session, one caller at a time.

    It is an `nnx.Module` like any other: its state has definition paths, its parameters are `nnx.Param`, and
    `nnx.split`, `merge`, `jit`, `grad`, `clone` and the rest work on it. Inside a transformation of jax an entry is
    traced in place; one with states is given them there: `model.step(token, pos, state)`, with
    `state = model.new_state()`.
    """

    nest_info: ClassVar[ModelInfo]
    backend: ClassVar[str] = "nnx"
    """The name of the backend."""

    @property
    def entry(self) -> Any:
        """The zoo entry that the model was loaded from, or None."""
        return self.nest_info.entry

    @property
    def program(self) -> Program:
        """The typed program of the definition."""
        return self.nest_info.program

    @property
    def quantization(self) -> tuple[Any, ...]:
        """What became of the weights of each part that `nest.load` quantized, as `PartQuantization`s."""
        return self.nest_info.program.quantization

    @property
    def source(self) -> str:
        """The generated source of this module."""
        return self.nest_info.source

    @property
    def axes(self) -> dict[str, tuple[str, ...]]:
        """What the axes of each parameter are called, by definition path; `sharding=` goes by these names."""
        return parameter_axes(self.program)

    @property
    def compilations(self) -> dict[str, int]:
        """How often each entry was compiled, for this model and its copies."""
        return dict(self.nest_info.compilations)

    def new_state(self, Batch: int | None = None, Capacity: int | None = None) -> nnx.Dict[Any]:
        """The states of a session, all zero, as a tree of caches that mirrors the module."""
        given = {n: v for n, v in (("Batch", Batch), ("Capacity", Capacity)) if v is not None}
        symbols = session_symbols(self.program, {**self.nest_info.session, **given})
        made = cast(Any, super()).new_state(symbols["Batch"], symbols.get("Capacity", 0))
        return cast("nnx.Dict[Any]", made)

    def new_session(self, *, plan: str = "exact", **symbols: int) -> NnxSession:
        """States of their own over these weights, whose values at each call are what the module holds then.

        Args:
            plan: `"exact"`, this module; `"fast"`, the same results over packed weights.
            **symbols: `Batch`, rows; `Capacity`, slots of the caches, by default what the definition admits.
        """
        values = session_symbols(self.program, {**self.nest_info.session, **symbols})
        return NnxSession(self, values, plan=make_plan(self.program, plan))

    def _default_session(self) -> NnxSession:
        return NnxSession(self, session_symbols(self.program, self.nest_info.session), holds_model=False)

    def export(self, name: str, *, platforms: Sequence[str] | None = None, **symbols: int) -> Exported:
        """An entry as StableHLO, its generics symbolic; see `exported_entry`. **symbols are `Batch` and `Capacity`."""
        info = self.nest_info
        info.checked.signature(name)
        session = session_symbols(info.program, {**info.session, **symbols})
        params = {path: v.get_raw_value() for path, v in variables(self)}
        return exported_entry(info.engine(self), name, params, session, platforms)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self._call_entry(name, inputs, {})

    def _call_entry(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        info = self.nest_info
        function = info.program.entries.get(name)
        stateful = function is not None and function.uses_state
        values = dict(variables(self))
        if _traced([*args, *kwargs.values(), *(v.get_raw_value() for v in values.values())]):
            if stateful:
                raise CallError(
                    f"{info.program.name}.{name} has states, and inside a transformation of jax they are given to it: "
                    f"state = model.new_state(); model.{name}(..., state)."
                )
            native = info.checked(name, args, kwargs, {})
            return self._generated(name, *map(jnp.asarray, native))
        if stateful:
            return call_default(self, self._default_session, name, args, kwargs)
        native = info.checked.padded(name, info.checked(name, args, kwargs, {}), {})
        params = {path: v.get_raw_value() for path, v in values.items()}
        results, _ = info.engine(self)(name, params, {}, native)
        return results[0] if info.program.entries[name].signature.single else results

    def _generated(self, name: str, *args: Any) -> Any:
        """The generated method, without checks, at the precision of the exact plan."""
        with jax.default_matmul_precision("highest"), self.nest_info.place.traced():
            return getattr(super(), _printed(name))(*args)

    def __reduce__(self) -> tuple[Any, ...]:
        recipe = self.nest_info.recipe
        if recipe is None:
            raise CallError(
                f"{self.program.name} was built from a class and cannot be pickled; save its nnx.state."
            )
        return _restored, (recipe, {path: np.asarray(v.get_raw_value()) for path, v in variables(self)})


def _traced(values: Sequence[Any]) -> bool:
    return any(isinstance(x, jax.core.Tracer) for x in values)


def build(
    program: Program,
    params: Mapping[str, np.ndarray[Any, Any]] | None,
    *,
    device: str | None = None,
    sharding: Rules | None = None,
    param_dtype: str | None = None,
    rngs: nnx.Rngs | None = None,
    **info: Any,
) -> NnxModel:
    """The module of a program over these parameters, which are copied to where they belong.

    Args:
        params: by definition path; None where they are drawn from `rngs`.
        device: a platform of jax such as `"cpu"` or `"cuda"`; its default if None.
        sharding: which axes lie on which axes of the mesh of `jax.set_mesh`, see `Partition`; if None, as
            `nnx.logical_axis_rules` says it.
        param_dtype: the element type of float parameters; the program's if None.
        rngs: draws the parameters as the module's own constructor does.
        **info: fields of `ModelInfo`.

    Raises:
        CallError: rules that do not fit, or a device, type or generator that is none.
    """
    use_compile_cache()
    rules = sharding if sharding is not None else _rules_of_flax(program)
    place = placement(program, device_of(device), rules)
    model = skeleton(program, place=place, param_dtype=param_dtype, **info)
    if params is not None:
        return filled(model, placed(program, params, place, param_dtype), place)
    if not isinstance(rngs, nnx.Rngs):
        raise CallError(f"rngs= is an nnx.Rngs, such as nnx.Rngs(0), and {rngs!r} was given.")
    return filled(model, drawn(program, rngs, place, param_dtype), place)


def _rules_of_flax(program: Program) -> Rules | None:
    """The logical axis rules that are in force, where there is a mesh; they may be of several models."""
    names = {name for axes in parameter_axes(program).values() for name in axes}
    rules = [(name, axes) for name, axes in get_logical_axis_rules() if name in names]
    return rules if rules and not jax.sharding.get_mesh().empty else None


def skeleton(program: Program, *, param_dtype: str | None = None, **info: Any) -> NnxModel:
    """The module with shapes in place of its parameters: no memory."""
    made = nnx_module(program, casts=param_dtype is not None)
    module = load_generated(made.text, f"{program.name}_nnx")
    generated = getattr(module, made.root)
    details = ModelInfo(program, made.text, **info)
    namespace: dict[str, Any] = {
        "nest_info": details,
        "__module__": module.__name__,
        "__doc__": generated.__doc__,
    }
    for name, function in program.entries.items():
        namespace[name] = _entry_method(
            name, len(function.signature.parameters), function.uses_state, function.doc
        )
    if "forward" in namespace:
        namespace[_printed("forward")] = namespace["forward"]
    cls = type(generated)(made.root, (NnxModel, generated), namespace)
    return cast(NnxModel, nnx.eval_shape(lambda: cls(**made.arguments(jnp), rngs=nnx.Rngs(0))))


def _printed(name: str) -> str:
    """What the generated source calls an entry."""
    return "__call__" if name == "forward" else name


def _restored(recipe: Recipe, arrays: Mapping[str, Any]) -> NnxModel:
    """A pickled model."""
    make, args = recipe
    model = cast(NnxModel, make(*args))
    return filled(model, {path: jnp.asarray(x) for path, x in arrays.items()})


def _entry_method(name: str, count: int, stateful: bool, doc: str | None) -> Callable[..., Any]:
    def method(self: NnxModel, *args: Any, **kwargs: Any) -> Any:
        if stateful and len(args) == count + 1:
            # The states are given: one generated method calls another, or the caller holds them.
            return self._generated(name, *args)
        return self._call_entry(name, args, kwargs)

    method.__name__ = name
    method.__doc__ = doc
    return method
