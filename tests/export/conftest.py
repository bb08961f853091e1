"""What the tests of exports share: a small Whisper with random weights, and processes that know nothing of nest."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nest.ir.inventory import parameters
from nest.loading import load, program_of
from nest.registry import find

ROOT = Path(__file__).parents[2]


def tiny_generics() -> dict[str, Any]:
    return dict(find("whisper-tiny").manifest.tiny)


@pytest.fixture(scope="session")
def weights() -> dict[str, Any]:
    """Parameters of the small configuration: nothing is zero, and attention is not flat."""
    rng = np.random.default_rng(3)
    return {
        path: (rng.standard_normal(s.shape) * (s.shape[-1] ** -0.5 if len(s.shape) > 1 else 0.5)).astype(
            np.float32
        )
        for path, s in parameters(program_of("whisper-tiny", **tiny_generics())).items()
    }


@pytest.fixture(scope="session")
def tiny(weights: dict[str, Any]) -> Callable[..., Any]:
    """The small model on a backend."""

    def make(backend: str, **options: Any) -> Any:
        return load("whisper-tiny", backend=backend, **{"weights": weights, **tiny_generics(), **options})

    return make


@pytest.fixture
def stranger(tmp_path: Path) -> Callable[..., str]:
    """Run a file in a process that cannot import nest, warnings being errors; gives its standard output."""
    blocked = tmp_path / "no-nest"
    (blocked / "nest").mkdir(parents=True)
    (blocked / "nest" / "__init__.py").write_text("raise ImportError('nest is not to be needed')\n")

    def run(file: Path, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, str(file), *arguments],
            cwd=file.parent,
            env={**os.environ, "PYTHONPATH": str(blocked)},
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
