"""Packages that are not there, and packages that are there and broken."""

from __future__ import annotations

from pathlib import Path

import pytest

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
