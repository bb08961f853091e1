"""What is done with a model, in no framework's words: inputs, calls of entries, a decode, something to train."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

__all__ = ["JAX", "NNX", "NUMPY", "TORCH", "Arrays", "Call", "Decode", "Job", "Loss"]


@dataclass(frozen=True)
class Arrays:
    """How a backend's users make arrays. `name` is the module in code."""

    backend: str
    name: str
    imports: tuple[str, ...]
    host: str
    integer: str

    def of(self, array: str) -> str:
        """An array of the framework from a numpy array."""
        return self.host.format(array)

    def ids(self, numbers: str) -> str:
        """Integers from a list."""
        return self.integer.format(numbers)

    def ones(self, *shape: int) -> str:
        """Booleans that are all true."""
        dtype = "torch.bool" if self.name == "torch" else "bool"
        return f"{self.name}.ones(({', '.join(map(str, shape))}), {'dtype=' if self.name == 'torch' else ''}{dtype})"


TORCH = Arrays("torch", "torch", ("import torch",), "torch.from_numpy({})", "torch.tensor({})")
JAX = Arrays("jax", "jnp", ("import jax.numpy as jnp",), "jnp.asarray({})", "jnp.array({}, jnp.int32)")
NNX = replace(JAX, backend="nnx")
NUMPY = Arrays("onnx", "np", ("import numpy as np",), "{}", "np.array({}, np.int32)")


@dataclass(frozen=True)
class Call:
    """An entry that is called: `given` has the argument of each parameter, `sizes` what is known of the shape."""

    result: str
    entry: str
    given: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Decode:
    """How states are used: lines over `session`, and lines over pure functions of `params` and `caches`."""

    session: Sequence[str]
    pure: Sequence[str]
    sizes: str
    """Of a session or its caches, `Batch=1`."""


@dataclass(frozen=True)
class Loss:
    """What is trained on: `logits` is computed from calls, and is compared with `labels`."""

    before: Sequence[str]
    """Made once: the labels, and what else is not the model's."""
    given: Sequence[str]
    """Names that a function of the loss takes beside the model."""
    body: Sequence[str]
    """Lines that end with `logits = ...`."""
    labels: str
    rows: bool = True
    """Whether logits are [N, classes]; else [N, S, classes]."""
    pairs: bool = False
    """Whether each logit is judged by itself, and labels are a probability for each; else labels are classes."""
    model: str = "model"
    """What is trained, where that is more than the model."""
    inner: str = "params"
    """Arguments of a pure loss that it is differentiated by."""


@dataclass(frozen=True)
class Job:
    """All that a snippet shows of a task.

    `fills` are arguments that may be left out of a call, by name, for what wants every one.
    """

    imports: Sequence[str]
    inputs: Callable[[Arrays], list[str]]
    calls: Sequence[Call]
    loss: Callable[[Arrays, Callable[[Call], str]], Loss]
    fills: Callable[[Arrays], Mapping[str, str]] = lambda arrays: {}
    after: Callable[[Arrays], list[str]] = lambda arrays: []
    decode: Callable[[Arrays], Decode | None] = lambda arrays: None
