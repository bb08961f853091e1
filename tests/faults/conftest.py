"""`nest pull` under a fault, and the pull after it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from nest.registry import Entry
from nest.weights import hub as hub_module

from ..cli.conftest import Command, Outcome
from ..weights.conftest import (
    LoopbackHub,
    MakeEntry,
    _isolated,
    command,
    hub,
    make_entry,
    no_waiting,
)
from ..weights.loopback import REPO, REVISION, sha256
from . import report

__all__ = ["Bench", "_isolated", "bench", "command", "hub", "make_entry", "no_waiting"]

CONTENT = bytes(range(256)) * 4096
NAME = "model.safetensors"


def pytest_sessionfinish() -> None:
    if report.WRITING:
        report.write_page()


@dataclass
class Bench:
    """An entry with one file of a mebibyte, a hub that has it, and an empty cache."""

    hub: LoopbackHub
    entry: Entry
    cache: Path
    run: Command
    names: dict[str, str] = field(default_factory=dict)

    def pull(self, *options: str) -> Outcome:
        """`nest pull`, as by a process that has not asked the hub before."""
        hub_module._UNREACHABLE.clear()
        self.hub.seen.clear()
        self.hub.requests.clear()
        return self.run("pull", str(self.entry.directory), *options)

    @property
    def file(self) -> Path:
        """Where the file is, once it is there."""
        return self.cache / "models--owner--model" / "snapshots" / REVISION / NAME

    @property
    def partial(self) -> Path:
        return self.cache / "models--owner--model" / "blobs" / f"{sha256(CONTENT)}.incomplete"

    def left(self) -> str:
        """What lies in the cache, in words."""
        return describe(self.cache)

    def row(self, fault: str, outcome: Outcome, left: str, *, following: str | None = None) -> None:
        """End the fault, pull again (unless that was done), and compare the row with the page."""
        if outcome.code == 1:
            assert outcome.err.count("nest: error: ") == 1
            assert outcome.out == ""
        if following is None:
            self.hub.faults.clear()
            again = self.pull()
            assert (again.code, self.file.read_bytes() == CONTENT) == (0, True), again.err
            assert describe(self.cache) == "the file"
            following = self.following()
        seen = report.plain(without_notice(outcome.err), self.names)
        report.check(report.Row(fault, outcome.code, seen, left, following))

    def following(self) -> str:
        """What the last pull had to ask for."""
        if not self.hub.seen:
            return "finds it, asks nothing"
        start = self.hub.seen[-1].get("range")
        return f"continues ({start})" if start else "fetches it"


def without_notice(err: str) -> str:
    return "".join(f"{line}\n" for line in err.splitlines() if not line.startswith("Fetching "))


def describe(cache: Path) -> str:
    """The files of a cache in words; asserts that what has the file's name is the file."""
    words = []
    for path in sorted(cache.glob("models--*/**/*")):
        if path.is_dir() or (path.parent.name == "blobs" and not path.name.endswith(".incomplete")):
            continue
        if path.name == NAME:
            assert path.read_bytes() == CONTENT, "something else is found as the file"
            words.append("the file")
        else:
            assert path.name == f"{sha256(CONTENT)}.incomplete"
            words.append(f"the {path.stat().st_size} bytes that came, as `blobs/….incomplete`")
    return ", ".join(words) or "nothing"


@pytest.fixture
def bench(
    hub: LoopbackHub,
    make_entry: MakeEntry,
    command: Command,
    tmp_path: Path,
    no_waiting: list[float],
    monkeypatch: pytest.MonkeyPatch,
) -> Bench:
    hub.files[NAME] = CONTENT
    cache = tmp_path / "hub-cache"
    names = {
        hub.endpoint: "https://huggingface.co",
        str(cache): "CACHE",
        REVISION: "COMMIT",
        REPO: "owner/model",
        os.fspath(tmp_path): "~",
    }
    return Bench(hub, make_entry({NAME: CONTENT}), cache, command, names)
