"""The backends, and which of them this environment can run; found out without importing any of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from nest._suggest import did_you_mean
from nest.errors import CallError, MissingDependencyError

__all__ = ["BACKENDS", "ORDER", "Backend", "backend", "compiles_shapes", "first_installed"]


@dataclass(frozen=True)
class Backend:
    """What a backend needs, the extra of `nest-zoo` that brings it, and what `nest.load` gives with it."""

    modules: tuple[str, ...]
    extra: str | None
    gives: str

    @property
    def installed(self) -> bool:
        """Whether its framework can be imported here."""
        return all(find_spec(module) is not None for module in self.modules)

    @property
    def remedy(self) -> str:
        """The command that installs it."""
        return f"pip install 'nest-zoo{f'[{self.extra}]' if self.extra else ''}'"

    def check(self, name: str) -> None:
        """Whether its framework can be imported, found out without importing it.

        Raises:
            MissingDependencyError: it is not installed; the message has the command that installs it.
        """
        missing = [module for module in self.modules if find_spec(module) is None]
        if missing:
            raise MissingDependencyError(
                f"The package '{missing[0]}' is needed for the backend '{name}', and it is not installed. Install it "
                f"with: {self.remedy}",
                name=missing[0],
            )


BACKENDS: Mapping[str, Backend] = {
    "torch": Backend(("torch",), "torch", "a torch.nn.Module"),
    "jax": Backend(("jax",), "jax", "jitted functions over a tree of parameters"),
    "nnx": Backend(("jax", "flax"), "jax", "a flax.nnx.Module"),
    "onnx": Backend(("onnxruntime", "onnx_ir"), "onnx", "ONNX graphs and their sessions"),
    "reference": Backend(("numpy",), None, "numpy, slow and plain"),
}

_COMPILED = ("jax", "nnx")

ORDER = ("onnx", "torch", "jax")
"""What a call that names no backend takes the first installed of: the lightest to install comes first."""


def backend(name: str) -> Backend:
    """The backend of that name.

    Raises:
        CallError: there is none.
    """
    if name not in BACKENDS:
        known = ", ".join(BACKENDS)
        raise CallError(f"There is no backend '{name}'; nest has {known}.{did_you_mean(name, BACKENDS)}")
    return BACKENDS[name]


def compiles_shapes(name: str | None) -> bool:
    """Whether a backend compiles each shape of a call anew, so that few different ones are worth some padding."""
    return name in _COMPILED


def first_installed(among: Iterable[str] = ORDER, *, extras: Iterable[str] = ()) -> str:
    """The first backend of `among` that can run here.

    Args:
        among: names of backends, in order of preference.
        extras: what else the caller needs of `nest-zoo`, for the line that installs it.

    Raises:
        MissingDependencyError: none can; the message has the command that installs the first of them.
    """
    names = tuple(among)
    for name in names:
        if BACKENDS[name].installed:
            return name
    wanted = ",".join([BACKENDS[names[0]].extra or names[0], *extras])
    raise MissingDependencyError(
        f"No backend that can run this is installed: nest looks for {', '.join(names)}. Install the lightest with: "
        f"pip install 'nest-zoo[{wanted}]'",
        name=BACKENDS[names[0]].modules[0],
    )
