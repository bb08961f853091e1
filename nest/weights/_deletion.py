"""Deleting from the caches, and from nowhere else."""

from __future__ import annotations

import shutil
from pathlib import Path

from nest.weights.cache import cache_root
from nest.weights.hub import hub_cache_root

__all__ = ["delete", "inside"]


def inside(path: Path) -> bool:
    """Whether `path`, every link of it followed, lies in one of the caches. A link that leads round lies nowhere."""
    try:
        found = path.resolve()
    except (OSError, RuntimeError):
        return False
    return any(found.is_relative_to(root.resolve()) for root in _roots())


def delete(path: Path) -> None:
    """Delete a file or folder of a cache. Where a link on the way leads out of the cache, that link alone goes.

    Raises:
        OSError: it cannot be deleted.
    """
    path = _link_that_leaves(path) or path
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _link_that_leaves(path: Path) -> Path | None:
    """The first link below a cache's root on the way to `path` that leads elsewhere."""
    for root in _roots():
        if path.is_relative_to(root):
            below = path.relative_to(root).parts
            steps = [root.joinpath(*below[: count + 1]) for count in range(len(below))]
            return next((step for step in steps if step.is_symlink() and not inside(step)), None)
    raise PermissionError(0, "it is in neither the Hub client's cache nor nest's", str(path))


def _roots() -> tuple[Path, Path]:
    return cache_root(), hub_cache_root()
