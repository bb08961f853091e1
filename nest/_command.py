"""The commands `nest` and `nest-zoo`, installed as a module of its own outside the package `nest`.

Other projects also install a package named `nest`, and Python imports the one that it finds first. This module
cannot be hidden or replaced by it, and says so.
"""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path

_MARK = b'\n__distribution__ = "nest-zoo"\n'


def main() -> int:
    """Run the command line if the package `nest` that Python finds is this project's."""
    spec = find_spec("nest")  # finds the package without running it
    if spec is None or not _is_ours(spec):
        sys.stderr.write(f"nest: error: {_explanation(spec)}\n")
        return 1
    try:
        from nest.cli import main as run
    except KeyboardInterrupt:  # while its modules are read; afterwards it answers itself
        return 130
    return run()


def _is_ours(spec: ModuleSpec) -> bool:
    return spec.origin is not None and _MARK in Path(spec.origin).read_bytes()


def _explanation(spec: ModuleSpec | None) -> str:
    if spec is None:
        return "The package 'nest' is not installed, though its command is. Install it with: pip install nest-zoo"
    others = sorted(set(metadata.packages_distributions().get("nest", ())) - {"nest-zoo"})
    owner = f", which {' and '.join(others)} installed" if others else ""
    return (
        f"Another package named 'nest' is in the place of nest-zoo's: Python finds {_place(spec)}{owner}. Install "
        f"nest-zoo in an environment of its own (python -m venv), or take the other's folder off PYTHONPATH."
    )


def _place(spec: ModuleSpec) -> str:
    return spec.origin or next(iter(spec.submodule_search_locations or ()), "one without a file")
