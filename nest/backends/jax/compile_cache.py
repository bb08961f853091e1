"""Compiled code kept on disk, so that a second process starts without compiling."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
from jax.experimental.compilation_cache import compilation_cache

from nest._timing import TRACED
from nest.backends.jax.trace_times import note_compilations
from nest.weights.cache import cache_root

__all__ = ["everything_kept", "use_compile_cache"]

_STAGE = ".stage-"
_ABANDONED = 24 * 60 * 60.0
"""Seconds after which nobody is believed to write into a stage any more."""


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
    # XLA's own caches are told the folder's path, which becomes part of each key: a cache that was moved, as from an
    # image's build, would be found by nobody.
    config.update("jax_persistent_cache_enable_xla_caches", "none")
    # A process that has compiled without a cache has decided to go on without one.
    compilation_cache.reset_cache()
    return folder


@contextlib.contextmanager
def everything_kept() -> Iterator[None]:
    """Meanwhile, keep all that jax compiles, however quickly, and each file whole or not at all.

    jax keeps what took a second or more, and writes files in place: one that is cut off stays, and is compiled
    again with a warning by every process. So it writes beside the cache, where it finds links to what is kept, and
    what is new is moved when all is done. Where the cache cannot be written, or is the user's own, only the second
    is skipped.
    """
    config: Any = jax.config
    least = config.jax_persistent_cache_min_compile_time_secs
    folder = use_compile_cache() or _own()
    config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    try:
        if folder is None:
            yield
        else:
            with _stage(folder) as stage:
                _point_to(stage)
                yield
    finally:
        config.update("jax_persistent_cache_min_compile_time_secs", least)
        if folder is not None:
            _point_to(folder)


def _own() -> Path | None:
    """nest's folder where a load has set it before."""
    config: Any = jax.config
    folder = cache_root() / "xla" / _machine()
    return folder if config.jax_compilation_cache_dir == str(folder) and _writable(folder) else None


def _point_to(folder: Path) -> None:
    config: Any = jax.config
    config.update("jax_compilation_cache_dir", str(folder))
    compilation_cache.reset_cache()


@contextlib.contextmanager
def _stage(folder: Path) -> Iterator[Path]:
    """A folder beside another with links to its files; what is new in it is moved there at the end."""
    for left in folder.parent.glob(f"{_STAGE}*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _ABANDONED:
                shutil.rmtree(left, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(prefix=_STAGE, dir=folder.parent))
    try:
        shutil.copytree(folder, stage, copy_function=_link, dirs_exist_ok=True)
        yield stage
        for path in [path for path in stage.rglob("*") if path.is_file()]:
            target = folder / path.relative_to(stage)
            if not target.exists():
                target.parent.mkdir(parents=True, exist_ok=True)
                path.replace(target)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _link(source: str, target: str) -> None:
    """A second name of a file, or a copy where the file system has none; a file that has just gone is left out."""
    with contextlib.suppress(FileNotFoundError):
        try:
            os.link(source, target)
        except FileNotFoundError:
            raise
        except OSError:
            shutil.copyfile(source, target)


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
