"""Packages that are not there, and packages that are there and broken."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from nest._optional import need
from nest.errors import MissingDependencyError


def told(module: str) -> str:
    with pytest.raises(MissingDependencyError) as caught:
        need(module, extra="audio", purpose="read audio files")
    return str(caught.value)


@pytest.fixture(autouse=True)
def _packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "needs_another.py").write_text("import nonesuch_package\n")
    (tmp_path / "lacks_a_library.py").write_text("raise ImportError('libx.so: no such file')\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.parametrize("module", ["nonesuch_package", "needs_another"])
def test_a_package_that_is_not_installed(module: str) -> None:
    assert told(module) == (
        "The package 'nonesuch_package' is needed to read audio files, and it is not installed. Install it with: "
        "pip install 'nest-zoo[audio]'"
    )


def test_a_package_that_is_broken() -> None:
    assert told("lacks_a_library") == (
        "The package 'lacks_a_library' is needed to read audio files; it is installed, and cannot be imported: "
        "libx.so: no such file. Install it anew: pip install --force-reinstall 'nest-zoo[audio]'"
    )


PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def needed_by(name: str, extra: str) -> Iterator[Requirement]:
    """What a distribution needs for an extra, or, for the empty one, of itself."""
    if name == "nest-zoo":
        lines = PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    else:
        try:
            lines = requires(name) or []
        except PackageNotFoundError:  # what another machine needs
            lines = []
    for line in lines:
        needed = Requirement(line)
        if needed.marker is None or needed.marker.evaluate({"extra": extra}):
            yield needed


def closure(extra: str) -> set[str]:
    """Every distribution that nest-zoo needs with an extra, as those say that are installed."""
    seen: set[tuple[str, str]] = set()
    left = [("nest-zoo", ""), ("nest-zoo", extra)]
    while left:
        if (place := left.pop()) not in seen:
            seen.add(place)
            for needed in needed_by(*place):
                left += [(canonicalize_name(needed.name), given) for given in ("", *needed.extras)]
    return {name for name, _ in seen}


def test_what_transcribes_brings_no_framework() -> None:
    """The extra brings all that is imported for it, and none of the large packages."""
    found = closure("transcribe")
    assert {"onnxruntime", "onnx-ir", "soundfile", "soxr", "tokenizers", "av", "huggingface-hub"} <= found
    assert found.isdisjoint({"torch", "torchaudio", "jax", "jaxlib", "flax", "transformers", "silero-vad"})
    assert {"torch", "safetensors", "sympy"} <= closure("torch")
