"""What is installed on this machine, which devices it offers, and what of it is known not to go together."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from importlib import import_module, metadata
from typing import Any

from nest._env import overlapping

__all__ = ["clashes", "devices", "packages"]

_PACKAGES = (
    "numpy", "pydantic", "huggingface_hub", "filelock", "torch", "jax", "jaxlib", "flax", "onnx-ir", "onnx",
    "soundfile", "soxr", "av", "tokenizers", "transformers", "ml_dtypes",
)  # fmt: skip
_ONNX_RUNTIMES = (
    "onnxruntime", "onnxruntime-gpu", "onnxruntime-directml", "onnxruntime-openvino", "onnxruntime-rocm",
    "onnxruntime-qnn", "onnxruntime-training",
)  # fmt: skip
"""Distributions that all install the package `onnxruntime`."""


def packages() -> dict[str, str]:
    """Version of each package that nest can use, `-` where it is not installed."""
    found = {name: _version(name) or "-" for name in _PACKAGES}
    runtimes = {name: version for name in _ONNX_RUNTIMES if (version := _version(name))}
    return found | (runtimes or {"onnxruntime": "-"})


def devices() -> dict[str, Any]:
    """What each installed framework can compute on; an error's text where it does not even start."""
    return {name: _asked(ask) for name, ask in _DEVICES.items() if _version(name) or _any_runtime(name)}


def clashes() -> list[str]:
    """What is wrong with this environment, a sentence each that says what to do."""
    found = [_runtimes_clash(), _jax_clash(), _foreign_nest(), _idle_gpu()]
    return [clash for clash in found if clash is not None]


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _any_runtime(name: str) -> bool:
    return name == "onnxruntime" and any(map(_version, _ONNX_RUNTIMES))


def _asked(ask: Callable[[], list[str]]) -> list[str] | str:
    try:
        return ask()
    except Exception as error:  # whatever a broken installation raises is the answer
        return f"does not start: {type(error).__name__}: {error}"


def _torch_devices() -> list[str]:
    torch = import_module("torch")
    found = [f"cpu ({torch.get_num_threads()} threads)"]
    found += [f"cuda:{i} ({torch.cuda.get_device_name(i)})" for i in range(torch.cuda.device_count())]
    return found + (["mps"] if torch.backends.mps.is_available() else [])


def _jax_devices() -> list[str]:
    return [f"{device.platform}:{device.id}" for device in import_module("jax").devices()]


def _onnx_providers() -> list[str]:
    return list(import_module("onnxruntime").get_available_providers())


_DEVICES: Mapping[str, Callable[[], list[str]]] = {
    "torch": _torch_devices,
    "jax": _jax_devices,
    "onnxruntime": _onnx_providers,
}


def _runtimes_clash() -> str | None:
    runtimes = [name for name in _ONNX_RUNTIMES if _version(name)]
    if len(runtimes) < 2:
        return None
    return (
        f"{' and '.join(runtimes)} are all installed, and put their files into one package 'onnxruntime', so that "
        f"files of one have replaced the others'. Uninstall all of them (pip uninstall {' '.join(runtimes)}), then "
        f"install the one you need."
    )


def _jax_clash() -> str | None:
    jax, jaxlib = _version("jax"), _version("jaxlib")
    if jax is None or (jaxlib is not None and _release(jaxlib)[:2] == _release(jax)[:2]):
        return None
    beside = f"jaxlib {jaxlib}" if jaxlib else "no jaxlib"
    return f"jax {jax} is installed with {beside}. Install both of one version: pip install -U jax jaxlib"


def _release(version: str) -> list[str]:
    return version.split(".")


def _foreign_nest() -> str | None:
    others = overlapping()
    if not others:
        return None
    return (
        f"{' and '.join(others)} also installs a package named 'nest' here, and one has replaced files of the other. "
        f"Install nest-zoo in an environment of its own (python -m venv)."
    )


def _idle_gpu() -> str | None:
    if shutil.which("nvidia-smi") is None or _version("torch") is None:
        return None
    if _asked(lambda: [str(import_module("torch").cuda.is_available())]) == ["True"]:
        return None
    return (
        f"This machine has an NVIDIA driver, and torch {_version('torch')} sees no GPU: it may be built for the CPU, "
        f"or for a newer driver."
    )
