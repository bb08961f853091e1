"""Where parameters and states lie: on one device, or spread over the devices of a mesh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from nest.backends.jax.axes import parameter_axes, state_axes
from nest.backends.jax.partition import Partition, Rules, partition_spec
from nest.errors import CallError
from nest.ir.inventory import parameters
from nest.ir.program import Program

__all__ = ["Placement", "device_of", "held", "placement"]


@dataclass(frozen=True)
class Placement:
    """Where the arrays of one model lie.

    Attributes:
        device: of all arrays, where there is no mesh; jax's default if None.
        mesh: the mesh that the model was loaded in, or None.
        specs: which axis of each parameter is spread over which axis of the mesh, by definition path; parameters that
            each device has whole are not in it.
    """

    device: Any = None
    mesh: Mesh | None = None
    specs: Mapping[str, PartitionSpec] = field(default_factory=dict)
    _state: Callable[[str, tuple[int, ...]], PartitionSpec] | None = None

    @property
    def everywhere(self) -> Any:
        """The device, or a copy on each device of the mesh."""
        return self.device if self.mesh is None else NamedSharding(self.mesh, partition_spec())

    def parameter(self, path: str) -> Any:
        """The device or the sharding of a parameter."""
        return (
            NamedSharding(self.mesh, self.specs[path])
            if self.mesh and path in self.specs
            else self.everywhere
        )

    def state(self, path: str, shape: tuple[int, ...]) -> Any:
        """The device or the sharding of a state of this shape."""
        if self.mesh is None or self._state is None:
            return self.everywhere
        return NamedSharding(self.mesh, self._state(path, shape))

    def traced(self) -> AbstractContextManager[Any]:
        """In which rules find out what they are traced for: the model's device, which need not be jax's default."""
        return nullcontext() if self.device is None else jax.default_device(self.device)

    def keep(self, path: str, state: Array) -> Array:
        """A state that a compiled entry has written, held to where a rule says that it lies."""
        if self.mesh is None or self._state is None or not any(self._state(path, state.shape)):
            return state
        return held(state, self.state(path, state.shape))


def held(value: Array, where: Any) -> Array:
    """A value of a compiled function, made where it is to lie."""
    constrain: Callable[[Array, Any], Array] = jax.lax.with_sharding_constraint
    return constrain(value, where)


def placement(program: Program, device: Any = None, rules: Rules | None = None) -> Placement:
    """Where a model of this program lies: on `device`, or on the mesh of `jax.set_mesh` by `rules`.

    Args:
        program: whose parameters and states.
        device: a device of jax, None for its default or for a mesh.
        rules: see `Partition`; None for a copy on each device of the mesh.

    Raises:
        CallError: rules without a mesh, a device beside a mesh, or rules that do not fit.
    """
    mesh: Mesh = jax.sharding.get_mesh()
    if mesh.empty:
        if rules is not None:
            raise CallError(
                "sharding= spreads parameters over the axes of a mesh, and there is none here: call nest.load inside "
                "jax.set_mesh(mesh)."
            )
        return Placement(device)
    if device is not None:
        raise CallError(
            f"Inside jax.set_mesh the mesh says where a model lies, and device='{device.platform}' was given too: "
            f"leave device= out, or load outside."
        )
    if rules is None:
        return Placement(mesh=mesh)
    axes, states = parameter_axes(program), state_axes(program)
    partition = Partition(mesh, rules, {**axes, **states}, program.name)
    specs = {path: partition.parameter(path, spec.shape) for path, spec in parameters(program).items()}
    specs = {path: spec for path, spec in specs.items() if any(spec)}
    _refuse_explicit(mesh, specs)
    return Placement(mesh=mesh, specs=specs, _state=partition.state)


def _refuse_explicit(mesh: Mesh, specs: Mapping[str, PartitionSpec]) -> None:
    used = {axis for spec in specs.values() for axes in spec if axes for axis in np.atleast_1d(axes).tolist()}
    kinds = dict(zip(mesh.axis_names, mesh.axis_types, strict=True))
    wrong = sorted(axis for axis in used if kinds[axis] is not AxisType.Auto)
    if wrong:
        raise CallError(
            f"sharding= spreads parameters over '{wrong[0]}', an axis of the type {kinds[wrong[0]].name}, along which "
            f"jax wants every operation's sharding spelled out; nest leaves that to the compiler. Make the mesh with "
            f"jax.make_mesh({mesh.axis_sizes}, {mesh.axis_names}, axis_types=(jax.sharding.AxisType.Auto,) * "
            f"{len(mesh.axis_names)})."
        )


def device_of(name: str | None) -> Any:
    """The first device of a platform, None for None.

    Raises:
        CallError: this jax has no such platform.
    """
    if name is None:
        return None
    try:
        return jax.devices(name)[0]
    except RuntimeError as error:
        found = ", ".join(sorted({d.platform for d in jax.devices()}))
        raise CallError(
            f"jax has no device '{name}' here; it has {found}. ({str(error).partition(chr(10))[0]})"
        ) from None
