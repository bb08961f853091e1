"""A hub on the loopback interface, and entries whose pins are made for a test."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from nest.registry import Entry, find

from ..cli.conftest import Command, command
from .loopback import REPO, REVISION, LoopbackHub, sha256

__all__ = ["REPO", "REVISION", "Command", "LoopbackHub", "MakeEntry", "command", "sha256"]

MakeEntry = Callable[..., Entry]


@pytest.fixture(autouse=True)
def _isolated(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's caches, tokens or settings, unless its module says that it uses the caches."""
    if getattr(request.module, "USES_THE_REAL_CACHES", False):
        return
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_ENDPOINT", "NEST_CONFIG", "NEST_LOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", os.devnull)
    monkeypatch.setattr("nest.weights.hub._UNREACHABLE", {})
    # The paths, and not the function that gives them: whoever has imported it holds it already.
    machine = tmp_path / "machine" / "config.toml"
    monkeypatch.setattr("nest.weights.site._OTHER_MACHINE_FILE", machine)
    monkeypatch.setattr("nest.weights.site._MACHINE_FILES", {})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A running hub that `HF_ENDPOINT` names."""
    loopback = LoopbackHub()
    loopback.start()
    monkeypatch.setenv("HF_ENDPOINT", loopback.endpoint)
    yield loopback
    loopback.stop()


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    """A folder for everything: `cache_dir`."""
    return tmp_path / "hub"


@pytest.fixture
def no_waiting(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Waits between attempts are written down and not waited."""
    waits: list[float] = []
    monkeypatch.setattr("nest.weights.transfer.time.sleep", waits.append)
    return waits


@pytest.fixture
def make_entry(tmp_path: Path) -> MakeEntry:
    """An entry that pins `files` (name to content; content None pins nothing), with more manifest text."""

    def make(files: Mapping[str, bytes | None], more: str = "", license_: str = "MIT") -> Entry:
        folder = tmp_path / "some-model"
        folder.mkdir(exist_ok=True)
        specs = [
            f'{{ name = "{name}" }}'
            if content is None
            else f'{{ name = "{name}", size = {len(content)}, sha256 = "{sha256(content)}" }}'
            for name, content in files.items()
        ]
        (folder / "nest.toml").write_text(
            f'[model]\nname = "some-model"\ntitle = "T"\nsummary = "S"\nlicense = "{license_}"\nfamily = "f"\n'
            f'[source]\npath = "model.py"\nroot = "Model"\nentry = "encode"\n'
            f'[weights]\nrepo = "{REPO}"\nrevision = "{REVISION}"\nfiles = [{", ".join(specs)}]\n{more}',
            encoding="utf-8",
        )
        (folder / "bindings.json").write_text("{}", encoding="utf-8")
        return find(folder)

    return make
