"""What a model needs: weights, what a plan makes of them, caches, and the most that one call's values take."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from nest.backends._symbols import positive, session_symbols
from nest.backends.installed import backend as known_backend
from nest.errors import CallError
from nest.footprint.activations import Lives, entry_symbols
from nest.ir.dtype import bytes_per_element
from nest.ir.inventory import default_capacity, parameters, states
from nest.ir.parammap import Source, TensorSpec
from nest.ir.plan import Plan
from nest.ir.plan import plan as make_plan
from nest.ir.program import Program
from nest.loading import program_of
from nest.registry import Entry

__all__ = ["Memory", "Model", "memory"]


@dataclass(frozen=True)
class Memory:
    """Bytes that a model needs, by what they are for.

    Attributes:
        weights: of each part of the definition, by its name there.
        dtypes: of the weights, by element type.
        made: what the plan makes of weights, beside them.
        caches: what a session keeps between calls, of each part.
        activations: the most that the values of a call take at one time, by entry.
        session: the entries that use caches.
        unknown: entries with a size that neither batch nor context decides; none of theirs is counted.
        batch: rows.
        context: slots of the caches, and positions of a call where a rule of the definition bounds them; None where
            the model has neither.
        plan: the plan's name.
        backend: whose plan it is.
    """

    weights: Mapping[str, int]
    dtypes: Mapping[str, int]
    made: int
    caches: Mapping[str, int]
    activations: Mapping[str, int]
    session: tuple[str, ...]
    unknown: tuple[str, ...]
    batch: int
    context: int | None
    plan: str
    backend: str

    @property
    def peak(self) -> int:
        """The activations of the largest entry; of those that use caches, where there are any."""
        counted = [n for n in self.session if n in self.activations] or list(self.activations)
        return max((self.activations[n] for n in counted), default=0)

    @property
    def total(self) -> int:
        """Weights, what the plan makes of them, caches, and the peak."""
        return sum(self.weights.values()) + self.made + sum(self.caches.values()) + self.peak


def memory(
    name: str | os.PathLike[str] | Entry,
    *,
    backend: str = "torch",
    plan: str = "exact",
    batch: int = 1,
    context: int | None = None,
    dtype: str | None = None,
    trust_source: bool | None = None,
    **generics: Any,
) -> Memory:
    """How much memory a model needs, without its weights: they need not be here.

    The framework itself, its kernels' working space, and what its allocator keeps are not counted. Weights are counted
    once; a runtime may keep a copy of them in an order of its own.

    Args:
        name: an entry's name, the path of its folder, or an entry.
        backend: `"torch"`, `"jax"`, `"nnx"` or `"onnx"`: what plan `fast` makes of weights differs.
        plan: `"exact"` or `"fast"`.
        batch: rows.
        context: slots of the caches, and positions of a call; what the definition admits if left out.
        dtype: the generic `T`: `"f32"`, `"f16"`, `"bf16"`; the entry's if left out.
        trust_source: as `nest.load` takes it.
        **generics: other values for the definition's generics.

    Raises:
        UnknownEntryError, ManifestError, DefinitionError: the entry or its definition.
        CallError: an unknown backend or plan, or a batch or context that the definition forbids.
    """
    given = generics if dtype is None else {**generics, "T": dtype}
    program = program_of(name, trust_source=trust_source, **given)
    return Model(program, backend, plan).memory(batch, context)


@dataclass
class Model:
    """A program made ready by a plan, asked for several batches and contexts."""

    program: Program
    backend: str = "torch"
    plan: str = "exact"
    _lives: dict[str, Lives] = field(default_factory=dict)

    def __post_init__(self) -> None:
        known_backend(self.backend)
        # What the sessions of the backends ask of a plan.
        own = ("shortlist", "columns") if self.backend == "onnx" else ("columns", "pack")
        self._made: Plan = make_plan(self.program, self.plan, changes=own)
        self._lives = {n: Lives(self._made.program, n) for n in self._made.program.entries}

    def longest(self) -> int | None:
        """The most positions that the definition's rules admit, of caches or of a call; None where none bounds it."""
        found = [default_capacity(self.program)]
        known = {n: v.value for n, v in self.program.root.generics.items() if isinstance(v.value, int)}
        for function in self.program.entries.values():
            for rule in function.signature.rules:
                if rule.op in ("<", "<=") and rule.right.symbols() <= known.keys():
                    found.append(rule.right.evaluate(known) - (rule.op == "<"))
        return min((n for n in found if n is not None), default=None)

    def memory(self, batch: int = 1, context: int | None = None) -> Memory:
        """See `memory`."""
        positive("batch", batch)
        if context is not None:
            positive("context", context)
        length = self.longest() if context is None else context
        self._check(length)
        specs = parameters(self.program)
        weights: dict[str, int] = {}
        dtypes: dict[str, int] = {}
        for path, spec in specs.items():
            size = math.prod(spec.shape) * bytes_per_element(spec.dtype)
            weights[_part(path)] = weights.get(_part(path), 0) + size
            dtypes[spec.dtype] = dtypes.get(spec.dtype, 0) + size
        session = self._session(batch, length)
        activations, unknown = self._activations(batch, length, session)
        return Memory(
            weights=weights,
            dtypes=dtypes,
            made=self._made_of_weights(),
            caches=self._caches(session),
            activations=activations,
            session=tuple(n for n, f in self.program.entries.items() if f.uses_state),
            unknown=unknown,
            batch=batch,
            context=length,
            plan=self.plan,
            backend=self.backend,
        )

    def _check(self, length: int | None) -> None:
        most = self.longest()
        if length is not None and most is not None and length > most:
            raise CallError(
                f"{self.program.name} takes a context of {most} positions at most; {length} was given. "
                f"Ask for {most} or fewer."
            )

    def _session(self, batch: int, length: int | None) -> dict[str, int]:
        given = {"Batch": batch}
        slots = any(
            "Capacity" in d.symbols()
            for s in states(self.program).values()
            for d in s.shape
            if not isinstance(d, int)
        )
        if slots and length is not None:
            given["Capacity"] = length
        return session_symbols(self.program, given)

    def _caches(self, session: Mapping[str, int]) -> dict[str, int]:
        found: dict[str, int] = {}
        for path, spec in states(self.program).items():
            size = math.prod(spec.bound(session)) * bytes_per_element(spec.dtype)
            found[_part(path)] = found.get(_part(path), 0) + size
        return found

    def _activations(
        self, batch: int, length: int | None, session: Mapping[str, int]
    ) -> tuple[dict[str, int], tuple[str, ...]]:
        found: dict[str, int] = {}
        unknown: list[str] = []
        for name, lives in self._lives.items():
            own = entry_symbols(self.program.entries[name], batch, length or 1)
            if own is None:
                unknown.append(name)
            else:
                found[name] = lives.peak({**session, **own})
        return found, tuple(unknown)

    def _made_of_weights(self) -> int:
        if self._made.params is None:
            return 0
        types = {p: TensorSpec(s.shape, s.dtype) for p, s in parameters(self.program).items()}
        specs = self._made.params.infer(types)
        return sum(
            specs[path].nbytes
            for path, expression in self._made.params.expressions.items()
            if not isinstance(expression, Source)
        )


def _part(path: str) -> str:
    """The part of the definition that holds a parameter or state: `decoder_layers` of `decoder_layers.0.self_k`."""
    return path.partition(".")[0]
