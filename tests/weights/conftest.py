"""A hub on the loopback interface, and entries whose pins are made for a test."""

from __future__ import annotations

import hashlib
import http.server
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from nest.registry import Entry, find
from nest.weights import hub as hub_module

REPO = "owner/model"
REVISION = "0123456789abcdef0123456789abcdef01234567"

MakeEntry = Callable[..., Entry]


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class LoopbackHub:
    """Serves files of one repository as the Hub does, or misbehaves as `faults` says for a file."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, str] = {}
        self.requests: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_HEAD(self) -> None:
                hub.answer(self)

            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        self.requests.append(f"{request.command} {request.path}")
        name = request.path.removeprefix(f"/{REPO}/resolve/{REVISION}/")
        fault = self.faults.get(name, "")
        if fault.isdigit() or name not in self.files:
            self._refuse(request, int(fault or 404))
            return
        content = self.files[name]
        request.send_response(200)
        if fault != "no commit":
            request.send_header("X-Repo-Commit", REVISION)
        request.send_header("ETag", f'"{sha256(content)}"')
        request.send_header("Content-Length", str(len(content)))
        request.end_headers()
        if request.command == "GET":
            if fault == "other bytes":
                content = bytes(byte ^ 1 for byte in content)
            if fault == "cut once":
                del self.faults[name]
                content = content[: len(content) // 2]
            request.wfile.write(content)

    def _refuse(self, request: http.server.BaseHTTPRequestHandler, status: int) -> None:
        codes = {403: "GatedRepo", 404: "EntryNotFound", 401: "RepoNotFound", 410: "RevisionNotFound"}
        request.send_response(404 if status == 410 else status)
        if status in codes:
            request.send_header("X-Error-Code", codes[status])
        request.send_header("Content-Length", "0")
        request.end_headers()


@pytest.fixture(autouse=True)
def _isolated(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's caches, tokens or settings, unless its module says that it uses the caches."""
    if getattr(request.module, "USES_THE_REAL_CACHES", False):
        return
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setattr(hub_module, "_PROBED", {})


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackHub]:
    """A running hub that `HF_ENDPOINT` names."""
    loopback = LoopbackHub()
    thread = threading.Thread(
        target=loopback.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", loopback.endpoint)
    yield loopback
    loopback.server.shutdown()
    loopback.server.server_close()
    thread.join()


@pytest.fixture
def make_entry(tmp_path: Path) -> MakeEntry:
    """An entry that pins `files` (name to content; content None pins nothing), with more manifest text."""

    def make(files: Mapping[str, bytes | None], more: str = "") -> Entry:
        folder = tmp_path / "some-model"
        folder.mkdir(exist_ok=True)
        specs = [
            f'{{ name = "{name}" }}'
            if content is None
            else f'{{ name = "{name}", size = {len(content)}, sha256 = "{sha256(content)}" }}'
            for name, content in files.items()
        ]
        (folder / "nest.toml").write_text(
            f'[model]\nname = "some-model"\ntitle = "T"\nsummary = "S"\nlicense = "MIT"\nfamily = "f"\n'
            f'[source]\npath = "model.py"\nroot = "Model"\nentry = "encode"\n'
            f'[weights]\nrepo = "{REPO}"\nrevision = "{REVISION}"\nfiles = [{", ".join(specs)}]\n{more}',
            encoding="utf-8",
        )
        (folder / "bindings.json").write_text("{}", encoding="utf-8")
        return find(folder)

    return make
