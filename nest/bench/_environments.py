"""Virtual environments in which peers are installed: frameworks of other versions need not share one."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from nest.bench.peers import PEERS
from nest.errors import InputError

__all__ = ["check_environments", "python_of", "python_with"]


def python_of(environment: Path) -> Path:
    """The Python of a virtual environment."""
    windows = environment / "Scripts" / "python.exe"
    return windows if windows.is_file() else environment / "bin" / "python"


def check_environments(environments: Sequence[Path]) -> None:
    """Whether each has a Python.

    Raises:
        InputError: one has none; names it.
    """
    for environment in environments:
        if not python_of(environment).exists():
            raise InputError(
                f"{environment} is no virtual environment: it has no {python_of(environment).name} of its own. "
                f"--peers-from takes a folder that 'python -m venv FOLDER' made, with the peers installed in it."
            )


def python_with(peer: str, environments: Sequence[Path]) -> Path | None:
    """The Python of the first environment that has a peer; None where no one has, or there are none."""
    pythons = [python_of(environment) for environment in environments]
    return next((python for python in pythons if PEERS[peer].module in _installed(python)), None)


@cache
def _installed(python: Path) -> frozenset[str]:
    """Which peers' modules a Python would find."""
    modules = sorted({peer.module for peer in PEERS.values()})
    asked = f"import importlib.util as u; print(*(n for n in {modules!r} if u.find_spec(n)))"
    answer = subprocess.run([str(python), "-c", asked], capture_output=True, text=True, check=False)
    return frozenset(answer.stdout.split())
