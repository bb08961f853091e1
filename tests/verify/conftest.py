"""Settings that the tests of verification share, with the oracle's results kept for the session alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from nest.verify import Setting, setting_of


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the oracle keeps results."""
    return tmp_path_factory.mktemp("oracle")


@pytest.fixture(scope="session")
def tiny(folder: Path) -> Setting:
    """whisper-tiny at its tiny configuration."""
    return setting_of("whisper-tiny", tiny=True, folder=folder)
