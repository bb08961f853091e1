"""Copies of a zoo's entry for tests to damage, and a hub on the loopback interface that counts requests."""

from __future__ import annotations

import http.server
import json
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from nest.registry import zoo_directory
from nest.registry.tensors import read_tensors

REPO, REVISION = "openai/whisper-tiny", "169d4a4341b33bc18d8881c4b69c2e104e1cc0af"

Change = Callable[[str], str]


class Copy:
    """A copy of whisper-tiny with another name, outside the zoo, with a definition of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        shutil.copytree(
            zoo_directory() / "whisper-tiny", folder, ignore=shutil.ignore_patterns("__pycache__")
        )
        self.edit("nest.toml", 'name = "whisper-tiny"', f'name = "{folder.name}"')
        self.edit("nest.toml", 'aliases = ["tiny"]\n', "")
        for file in ("README.md",):
            text = (folder / file).read_text("utf-8").replace('"whisper-tiny"', f'"{folder.name}"')
            (folder / file).write_text(text, "utf-8")

    def edit(self, file: str, old: str, new: str) -> None:
        """Replace the first `old` in one of its files."""
        text = (self.folder / file).read_text("utf-8")
        if old not in text:
            raise ValueError(f"{file} has no {old!r}")
        (self.folder / file).write_text(text.replace(old, new, 1), "utf-8")

    def edit_json(self, file: str, change: Callable[[Any], None]) -> None:
        """Change the value of one of its JSON files."""
        value = json.loads((self.folder / file).read_text("utf-8"))
        change(value)
        (self.folder / file).write_text(json.dumps(value, indent=2) + "\n", "utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "my-whisper")


@pytest.fixture(autouse=True)
def _alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's caches, settings or network."""
    monkeypatch.setenv("NEST_CACHE", str(tmp_path / "nest-cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub-cache"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("nest.weights.site.machine_file", lambda: tmp_path / "machine.toml")
    monkeypatch.setattr("nest.weights.site.user_file", lambda: tmp_path / "user.toml")
    for name in ("HF_TOKEN", "HF_HUB_OFFLINE", "NEST_ZOO"):
        monkeypatch.delenv(name, raising=False)


def header_of(tensors: dict[str, str]) -> tuple[bytes, int]:
    """The head of a safetensors file with these tensors, and the size that the whole file has."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, text in tensors.items():
        shape = [int(size) for size in re.findall(r"\d+", text.partition("[")[2])]
        start = end
        for size in shape[:1]:
            end += 4 * size
        for size in shape[1:]:
            end = start + (end - start) * size
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [start, end]}
    raw = json.dumps(header).encode()
    return len(raw).to_bytes(8, "little") + raw, 8 + len(raw) + end


class RangeHub:
    """Serves the head of `model.safetensors`, in ranges; the rest of the file is never there to be sent."""

    def __init__(self) -> None:
        listed = read_tensors(zoo_directory() / "whisper-tiny", "whisper-tiny")
        if listed is None:
            raise ValueError("whisper-tiny has no list of tensors")
        self.head, self.size = header_of(dict(listed.tensors))
        self.status = 206
        self.path = f"/{REPO}/resolve/{REVISION}/model.safetensors"
        self.requests: list[str] = []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        wanted = request.headers["Range"]
        self.requests.append(f"{request.path} {wanted} {request.headers.get('Authorization', '')}".strip())
        start, stop = (int(text) for text in wanted.removeprefix("bytes=").split("-"))
        status = self.status if request.path == self.path else 404
        request.send_response(status)
        body = b""
        if status == 206:
            body = self.head[start : stop + 1]
            request.send_header("Content-Range", f"bytes {start}-{start + len(body) - 1}/{self.size}")
            request.send_header("Content-Length", str(len(body)))
        elif (
            status == 200
        ):  # ranges are ignored: the whole file is promised, and breaks off where it is not read
            body = self.head
            request.send_header("Content-Length", str(self.size))
        else:
            request.send_header("Content-Length", "0")
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeHub]:
    """A running hub that `HF_ENDPOINT` names."""
    running = RangeHub()
    thread = threading.Thread(
        target=running.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    monkeypatch.setenv("HF_ENDPOINT", running.endpoint)
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join()
