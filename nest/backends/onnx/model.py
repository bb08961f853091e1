"""What `nest.load` returns on the ONNX backend."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy.typing as npt

from nest._timing import stretch
from nest.backends.onnx.options import Options, Provider
from nest.backends.onnx.runtime import Runtime
from nest.backends.onnx.session import OnnxSession, call_stateless
from nest.backends.onnx.weights import WeightFiles
from nest.backends.session import HoldsDefault, call_default, session_symbols
from nest.errors import CallError
from nest.ir.inventory import parameters, states
from nest.ir.plan import Plan, plan
from nest.ir.program import Program

if TYPE_CHECKING:
    import onnx_ir as ir

__all__ = ["OnnxModel", "build"]


class OnnxModel(HoldsDefault):
    """A loaded model: ONNX graphs over weights that are stored once, and lazily made sessions of ONNX Runtime.

    Entries are methods, which take and give numpy arrays; the ones with states use a default session, one caller at a
    time.

    Attributes:
        program: the typed program of the definition.
        entry: the zoo entry that the model was loaded from, or None.
        notes: where the weights came from, where that is not the publisher.
    """

    backend: ClassVar[str] = "onnx"
    """The name of the backend."""

    def __init__(
        self, runtime: Runtime, *, entry: Any = None, session: Mapping[str, int], notes: Sequence[str] = ()
    ) -> None:
        self.runtime = runtime
        self.program = runtime.program
        self.entry = entry
        self.notes = tuple(notes)
        self._session_defaults = dict(session)
        self._plans: dict[str, Runtime] = {}
        self._others: dict[tuple[str, int], Runtime] = {}
        self._planning = threading.Lock()

    @property
    def providers(self) -> tuple[str, ...]:
        """The execution providers that the model runs on, in order of preference."""
        return tuple(name for name, _ in self.runtime.options.providers)

    @property
    def threads(self) -> int:
        """How many threads one call uses."""
        return self.runtime.options.threads

    def graph(self, name: str) -> ir.Model:
        """An entry's ONNX model; its weights are external data."""
        return self.runtime.lowered(name).model

    def new_session(self, *, plan: str = "exact", threads: int | None = None, **symbols: int) -> OnnxSession:
        """States of their own over these weights.

        Args:
            plan: `"exact"`, the definition as it is written; `"fast"`, the same results by the runtime's own ops, over
                packed weights.
            threads: for one call; the model's `threads` if left out. Sessions of one thread each, called side by side,
                do more in a second than one of several.
            **symbols: `Batch`, rows; `Capacity`, slots of the caches, by default what the definition admits.

        Raises:
            CallError: `threads` is no positive integer.
            WeightsError: packed weights cannot be written to a temporary file.
        """
        given = {**self._session_defaults, **symbols}
        runtime = self._planned(plan)
        if runtime.options.with_threads(threads) is not runtime.options:
            runtime = self._threaded(plan, runtime, threads)
        return OnnxSession(runtime, session_symbols(self.program, given))

    def _threaded(self, name: str, runtime: Runtime, threads: int | None) -> Runtime:
        """The same plan over the same weights with other threads for a call."""
        options = runtime.options.with_threads(threads)
        with self._planning:
            key = (name, options.threads)
            if key not in self._others:
                self._others[key] = Runtime(self.program, runtime.weights, options, runtime.plan)
            return self._others[key]

    def _planned(self, name: str) -> Runtime:
        if name == "exact":
            return self.runtime
        with self._planning:
            if name not in self._plans:
                with stretch(f"plan {name}"):
                    made = plan(self.program, name, changes=("shortlist", "columns"))
                self._plans[name] = self.runtime if made.name == "exact" else self._made(made)
            return self._plans[name]

    def _made(self, made: Plan) -> Runtime:
        weights, options = self.runtime.weights, self.runtime.options
        with stretch("pack the weights"):
            packed = weights if made.params is None else weights.packed(made.program, made.params)
        return Runtime(self.program, packed, options, made)

    def run_entry(self, name: str, inputs: Sequence[Any] = ()) -> Any:
        """Run an entry by name, with its arguments in order."""
        return self._call(name, inputs, {})

    def _call(self, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        function = self.program.entries.get(name)
        if function is None or not function.uses_state:
            return call_stateless(self.runtime.entry(name), args, kwargs)
        return call_default(self, self.new_session, name, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "program" or name not in self.program.entries:
            raise AttributeError(f"OnnxModel has no attribute '{name}'")
        return lambda *args, **kwargs: self._call(name, args, kwargs)

    def __reduce__(self) -> Any:
        raise CallError(
            f"A model of the onnx backend holds sessions of the runtime and cannot be pickled or copied; load "
            f"{self.program.name} again where it is needed."
        )

    def __repr__(self) -> str:
        return f"<OnnxModel {self.program.name} ({', '.join(self.providers)})>"


def build(
    program: Program,
    params: Mapping[str, npt.NDArray[Any]],
    *,
    entry: Any = None,
    session: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
    recipe: Any = None,
    providers: Sequence[Provider] | None = None,
    threads: int | None = None,
    session_options: Mapping[str, Any] | None = None,
) -> OnnxModel:
    """The model of a program over these parameters.

    Args:
        params: definition path -> array; mapped checkpoints are read where they are, other arrays are written once to
            a temporary file.
        session: `Batch` and `Capacity` of the default session.
        recipe: how the model is loaded again; unused, as models of this backend are not pickled.
        providers, threads, session_options: see `nest.backends.onnx.options.Options`.

    Raises:
        CallError: a provider that cannot be used, an option that there is not, or bf16.
        WeightsError: the temporary file cannot be written.
    """
    if any(getattr(g, "value", None) == "bf16" for g in program.root.generics.values()):
        raise CallError(
            f"{program.name}: the onnx backend does not compute in bf16, for which ONNX Runtime has no kernels on the "
            f"CPU; load it with dtype='f32' or dtype='f16'."
        )
    if any(spec.dtype == "bf16" for spec in states(program).values()):
        raise CallError(
            f"{program.name}: the onnx backend has no caches in bf16, which numpy does not have; take caches='f16'."
        )
    with stretch("place the weights"):
        weights = WeightFiles(parameters(program), params)
    options = Options(
        providers=providers, threads=threads, session_options=session_options, folder=weights.root
    )
    return OnnxModel(Runtime(program, weights, options), entry=entry, session=session or {}, notes=notes)
