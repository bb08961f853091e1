"""Compiled code kept on disk, so that a second process starts without compiling."""

from __future__ import annotations

import hashlib
import os
import platform
import tempfile
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from nest._timing import TRACED
from nest.backends.jax.trace_times import note_compilations
from nest.weights.cache import cache_root

__all__ = ["use_compile_cache"]


def use_compile_cache() -> Path | None:
    """Have jax keep compiled code in nest's cache, unless it was told where to keep it or not to.

    The setting is jax's own and holds for the process. Returns the folder, or None where nothing was set.
    """
    if TRACED:
        note_compilations()
    config: Any = jax.config
    if config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache:
        return None
    folder = cache_root() / "xla" / _machine()
    if not _writable(folder):
        return None
    config.update("jax_compilation_cache_dir", str(folder))
    # A process that has compiled without a cache has decided to go on without one.
    compilation_cache.reset_cache()
    return folder


def _machine() -> str:
    """A name for what compiled code depends on beside what jax puts into its own keys: the CPU's features."""
    features = ""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        features = next((line for line in lines if line.startswith(("flags", "Features"))), "")
    except OSError:
        features = platform.processor()
    digest = hashlib.sha256(features.encode()).hexdigest()[:8]
    return f"jax-{jax.__version__}-{platform.machine()}-{digest}"


def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return os.access(folder, os.W_OK)
    except OSError:
        return False
