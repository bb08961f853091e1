"""No test sees the user's caches, tokens or settings, and none asks a network."""

from __future__ import annotations

from pathlib import Path

import pytest

from ..cli.conftest import Command, command
from ..weights.conftest import LoopbackHub, hub

__all__ = ["Command", "LoopbackHub", "command", "hub"]


@pytest.fixture(autouse=True)
def _isolated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "NEST_CONFIG", "NEST_LOCK", "NEST_ZOO"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr("nest.weights.hub._UNREACHABLE", {})
