"""The real weights of whisper-tiny.en: fetched once into the user's caches, whichever source has them."""

from __future__ import annotations

import math
import socket
import subprocess

import pytest

from nest.registry import find
from nest.weights import fetch, open_checkpoint
from nest.weights.digests import file_sha256

USES_THE_REAL_CACHES = True


def test_the_files_are_the_publishers_own() -> None:
    entry = find("whisper-tiny.en")
    fetched = fetch(entry)
    assert fetched.notes == []
    pins = {spec.name: spec.sha256 for spec in entry.manifest.weights.files if spec.required}  # type: ignore[union-attr]
    assert {name: file_sha256(path) for name, path in fetched.files.items()} == pins
    checkpoint = open_checkpoint(fetched.files["model.safetensors"])
    assert len(checkpoint) == 167
    assert sum(math.prod(view.shape) for view in checkpoint.values()) == 37_760_256


def test_a_second_fetch_opens_no_connection_and_runs_no_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = find("whisper-tiny.en")
    first = fetch(entry)
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("it opened a connection"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("it looked up a name"))
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("it ran a program"))
    assert fetch(entry) == first
