"""The commands `nest` and `nest-zoo`, installed as a module of its own outside the package `nest`.

Other projects also install a package named `nest`, and the first one on `sys.path` is the one that Python
imports. This module cannot be hidden by it, and says so.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path


def main() -> int:
    """Run the command line if the package `nest` that Python finds is this project's."""
    spec = find_spec("nest")  # finds the package without running it
    if spec is None or not _is_ours(spec):
        sys.stderr.write(f"nest: error: {_explanation(spec)}\n")
        return 1
    from nest.cli import main as run

    return run()


def _is_ours(spec: ModuleSpec) -> bool:
    return any(Path(folder, "_command.py").is_file() for folder in spec.submodule_search_locations or ())


def _explanation(spec: ModuleSpec | None) -> str:
    if spec is None:
        return "The package 'nest' is not installed, though its command is. Install it with: pip install nest-zoo"
    return (
        f"Another package named 'nest' hides the one of nest-zoo: Python finds {_place(spec)} first. Take its "
        f"folder off PYTHONPATH, or install nest-zoo in an environment of its own (python -m venv)."
    )


def _place(spec: ModuleSpec) -> str:
    folders = list(spec.submodule_search_locations or ())
    return spec.origin or (folders[0] if folders else "one")
