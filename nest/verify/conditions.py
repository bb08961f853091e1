"""What numbers depend on beside the code: machine, date, versions."""

from __future__ import annotations

import datetime
import os
import platform
from importlib import metadata
from pathlib import Path

__all__ = ["conditions"]

_PACKAGES = ("nest-zoo", "numpy", "onnxruntime", "torch", "jax", "flax", "transformers")


def conditions() -> dict[str, str | int]:
    """The day, the processor and how many of it, Python, and the versions of the frameworks that are installed."""
    found: dict[str, str | int] = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "processor": _processor(),
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
