"""Rules that say which axes of parameters and states are spread over which axes of a mesh."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, cast

from jax.sharding import Mesh, PartitionSpec

from nest._suggest import did_you_mean
from nest.errors import CallError

__all__ = ["MeshAxes", "Partition", "Rules", "partition_spec"]

MeshAxes = str | tuple[str, ...] | None
"""An axis of a mesh, several that are used as one, or none."""
Rules = MeshAxes | Mapping[str, Any] | Sequence[tuple[str, Any]]


class Partition:
    """Which axis lies on which axis of a mesh.

    Args:
        mesh: the mesh.
        rules: one of
            - an axis of the mesh, or several that are used as one: each parameter is spread along the longest of its
              axes that they divide, and a parameter that has none is whole everywhere;
            - a mapping, or pairs as Flax has its logical axis rules, whose keys are
              names of axes (`"Inner": "model"`), which hold wherever an axis is called so, the first rule first, each
              axis of the mesh at most once in a tensor; or
              patterns of definition paths (`"*.out_proj.weight": (None, "model")`), which say all axes of a tensor as
              a `PartitionSpec` does, and go before the names.
        axes: what the axes of each parameter and state are called, by definition path.
        name: of the program, for errors.

    Raises:
        CallError: a key that names nothing, a value that the mesh does not have.
    """

    def __init__(self, mesh: Mesh, rules: Rules, axes: Mapping[str, tuple[str, ...]], name: str) -> None:
        self.mesh = mesh
        self.axes = axes
        self.name = name
        self.longest: MeshAxes = None
        self.by_name: dict[str, MeshAxes] = {}
        self.by_path: dict[str, tuple[MeshAxes, ...]] = {}
        if isinstance(rules, str) or (isinstance(rules, tuple) and all(isinstance(r, str) for r in rules)):
            self.longest = self._known(rules, "sharding=")
        else:
            self._read(dict(cast(Any, rules or {})))

    def parameter(self, path: str, shape: Sequence[int]) -> PartitionSpec:
        """The spec of a parameter.

        Raises:
            CallError: the mesh's axes do not divide the parameter's.
        """
        spec = self._along_longest(shape) if self.longest else self._spec(path)
        for axis, wanted in enumerate(spec):
            if shape[axis] % self._size(wanted):
                raise CallError(
                    f"{self.name}: axis {axis} of '{path}', {self.axes[path][axis]} = {shape[axis]}, cannot be spread "
                    f"over {_text(wanted)} of the mesh, which {self._size(wanted)} does not divide; leave it out of "
                    f"sharding=, or take a mesh of another shape."
                )
        return partition_spec(*spec)

    def state(self, path: str, shape: Sequence[int]) -> PartitionSpec:
        """The spec of a state; an axis that the mesh does not divide stays whole, as its size is a session's."""
        spec = [
            a if size % self._size(a) == 0 else None for a, size in zip(self._spec(path), shape, strict=True)
        ]
        return partition_spec(*spec)

    def _spec(self, path: str) -> list[MeshAxes]:
        for pattern, spec in self.by_path.items():
            if fnmatchcase(path, pattern):
                return list(spec)
        names = self.axes[path]
        found: list[MeshAxes] = [None] * len(names)
        used: set[str] = set()
        for name, wanted in self.by_name.items():
            if name in names and not used & set(_each(wanted)):
                # Of two axes of one name, as of a square matrix, the first.
                found[names.index(name)] = wanted
                used |= set(_each(wanted))
        return found

    def _along_longest(self, shape: Sequence[int]) -> list[MeshAxes]:
        found: list[MeshAxes] = [None] * len(shape)
        fitting = [axis for axis, size in enumerate(shape) if size and size % self._size(self.longest) == 0]
        if fitting:
            found[max(fitting, key=lambda axis: shape[axis])] = self.longest
        return found

    def _read(self, rules: Mapping[str, Any]) -> None:
        names = {name for axes in self.axes.values() for name in axes}
        for key, value in rules.items():
            if key in names:
                self.by_name[key] = self._known(value, key)
                continue
            paths = [path for path in self.axes if fnmatchcase(path, key)]
            if not paths:
                raise CallError(
                    f"sharding= names '{key}', which is no axis of {self.name} and no pattern of its paths; its axes: "
                    f"{', '.join(sorted(n for n in names if n.isidentifier()))}."
                    f"{did_you_mean(key, [*names, *self.axes])}"
                )
            self.by_path[key] = self._of_tensor(key, value, paths)

    def _of_tensor(self, key: str, value: Any, paths: Sequence[str]) -> tuple[MeshAxes, ...]:
        spec = (value,) if isinstance(value, str) or value is None else tuple(value)
        spec = tuple(self._known(axes, key) for axes in spec)
        for path in paths:
            if len(spec) != len(self.axes[path]):
                raise CallError(
                    f"sharding= gives '{key}' {len(spec)} axes, and '{path}' of {self.name} has {len(self.axes[path])} "
                    f"({', '.join(self.axes[path])}): give an axis of the mesh or None for each."
                )
        used = [axis for axes in spec for axis in _each(axes)]
        if len(used) != len(set(used)):
            raise CallError(f"sharding= gives '{key}' an axis of the mesh twice: {spec}.")
        return spec

    def _known(self, value: Any, key: str) -> MeshAxes:
        if value is not None and not isinstance(value, str | tuple):
            value = tuple(value)
        for axis in _each(value):
            if axis not in self.mesh.axis_names:
                raise CallError(
                    f"sharding= gives '{key}' the axis {axis!r}, and the mesh has {', '.join(self.mesh.axis_names)}."
                    if key != "sharding="
                    else f"sharding= names the axis {axis!r}, and the mesh has {', '.join(self.mesh.axis_names)}."
                )
        return cast(MeshAxes, value)

    def _size(self, axes: MeshAxes) -> int:
        return math.prod(self.mesh.shape[axis] for axis in _each(axes))


def partition_spec(*axes: MeshAxes) -> PartitionSpec:
    """The spec of a tensor; none of its axes are spread if none are given."""
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]


def _each(axes: MeshAxes) -> Iterator[str]:
    return iter(() if axes is None else (axes,) if isinstance(axes, str) else axes)


def _text(axes: MeshAxes) -> str:
    return " and ".join(f"'{axis}'" for axis in _each(axes))
