"""Whether contenders can be measured here: that their frameworks are installed, and compute on the device named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from importlib.util import find_spec

from nest.backends.installed import BACKENDS
from nest.bench._contenders import LIBRARY
from nest.bench._lane import Lane
from nest.errors import CallError, MissingDependencyError

__all__ = ["check_device", "check_frameworks", "elsewhere", "library_installed"]


def check_frameworks(backends: Iterable[str]) -> None:
    """Whether what these backends need can be imported.

    Raises:
        MissingDependencyError: one is not installed; the message has the command that installs it.
    """
    for name in backends:
        if name != LIBRARY:
            BACKENDS[name].check(name)
        elif not library_installed():
            raise MissingDependencyError(
                "The reference library needs the packages 'transformers' and 'torch', which are not both installed. "
                "Install them, or leave it out with --no-library.",
                name=LIBRARY,
            )


def library_installed() -> bool:
    """Whether the reference library can be imported."""
    return all(find_spec(module) is not None for module in (LIBRARY, "torch"))


def elsewhere(backends: Iterable[str], device: str, start: Callable[..., Lane] = Lane) -> dict[str, str]:
    """Which contenders would be measured on another device than the one named, and why in words.

    Args:
        start: makes the process that answers: a framework that is asked for its GPU takes memory of it until the end
            of the process.
    """
    if device == "cpu":
        return {}  # a lane for the processor shows its frameworks no other device
    lane = start(1, pinned=False)
    try:
        answers = {name: lane.ask("device", backend=name, device=device) for name in dict.fromkeys(backends)}
    finally:
        lane.end()
    return {name: str(answer["error"]) for name, answer in answers.items() if "error" in answer}


def check_device(backend: str, device: str) -> None:
    """Whether a backend computes on a device in this process; imports its framework.

    Raises:
        CallError: it would be measured somewhere else.
    """
    if device == "cuda":
        {"jax": _jax, "nnx": _jax, "onnx": _onnx}.get(backend, _torch)(backend)


def _torch(backend: str) -> None:
    torch = import_module("torch")
    if not torch.cuda.is_available():
        raise CallError(
            f"{backend} cannot be measured on cuda: torch {torch.__version__} finds no CUDA device here."
        )


def _jax(backend: str) -> None:
    jax = import_module("jax")
    try:
        found = jax.devices("cuda")
    except RuntimeError:  # jax's word for a platform that it does not have
        found = []
    default = jax.devices()[0]
    if default not in found:
        raise CallError(
            f"{backend} cannot be measured on cuda: jax {jax.__version__} computes on {default.platform} here. It "
            f"needs a CUDA device, jax[cuda12] or jax[cuda13], and no JAX_PLATFORMS that says otherwise."
        )


def _onnx(backend: str) -> None:
    runtime = import_module("onnxruntime")
    have = runtime.get_available_providers()
    if "CUDAExecutionProvider" not in have:
        raise CallError(
            f"{backend} cannot be measured on cuda: onnxruntime {runtime.__version__} has no CUDAExecutionProvider, "
            f"but {', '.join(have)}. It comes with onnxruntime-gpu, which is installed in place of onnxruntime."
        )
