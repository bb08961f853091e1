"""A hub on the loopback interface that serves as the Hub does, and misbehaves where a test says so."""

from __future__ import annotations

import hashlib
import http.server
import re
import threading
from dataclasses import dataclass, field

REPO = "owner/model"
REVISION = "0123456789abcdef0123456789abcdef01234567"

ERROR_CODES = {401: "RepoNotFound", 403: "GatedRepo", 404: "EntryNotFound", 410: "RevisionNotFound"}
"""What the Hub says beside a status; 410 stands for the 404 of a commit that is not there."""


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def git_sha1(content: bytes) -> str:
    """The Hub's name of a small file: what git names it."""
    return hashlib.sha1(f"blob {len(content)}\0".encode() + content).hexdigest()


@dataclass
class Fault:
    """What is wrong with the answers for a file, the next `times` times.

    Args:
        status: refuse with this status.
        headers: more headers of the answer; None takes one away.
        share: close the connection after this share of the file.
        stall: after that share, say nothing more, and keep the connection.
        content: bytes in place of the file's.
        location: send the client there.
    """

    status: int = 200
    headers: dict[str, str | None] = field(default_factory=dict)
    share: float | None = None
    stall: bool = False
    content: bytes | None = None
    location: str | None = None
    times: float = float("inf")


class LoopbackHub:
    """Serves `files` of one repository; `faults` by file; `requests` in the order that they came."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.faults: dict[str, Fault] = {}
        self.requests: list[str] = []
        self.seen: list[dict[str, str]] = []
        self.ranges = True
        self.small: set[str] = set()
        self._closing = threading.Event()
        self._lock = threading.Lock()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"

    def start(self) -> None:
        threading.Thread(
            target=self.server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        ).start()

    def stop(self) -> None:
        self._closing.set()
        self.server.shutdown()
        self.server.server_close()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        hub = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                hub.answer(self)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        with self._lock:
            self.requests.append(request.path)
            self.seen.append({name.lower(): value for name, value in request.headers.items()})
            name = request.path.rpartition(f"/{REVISION}/")[2]
            fault = self.faults.get(name, Fault())
            fault.times -= 1
            if fault.times < 0:
                fault = Fault()
        if fault.location is not None:
            self._head(request, 302, {"Location": fault.location, "Content-Length": "0"}, fault)
        elif fault.status != 200 or name not in self.files:
            self._refuse(request, 404 if fault.status == 200 else fault.status, fault)
        else:
            self._serve(request, name, fault)

    def _refuse(self, request: http.server.BaseHTTPRequestHandler, status: int, fault: Fault) -> None:
        code = {"X-Error-Code": ERROR_CODES[status]} if status in ERROR_CODES else {}
        self._head(request, 404 if status == 410 else status, {**code, "Content-Length": "0"}, fault)

    def _serve(self, request: http.server.BaseHTTPRequestHandler, name: str, fault: Fault) -> None:
        content = self.files[name] if fault.content is None else fault.content
        etag = git_sha1(self.files[name]) if name in self.small else sha256(self.files[name])
        headers = {"X-Repo-Commit": REVISION, "ETag": f'"{etag}"'}
        start, status = 0, 200
        wanted = re.fullmatch(r"bytes=(\d+)-", request.headers.get("Range", ""))
        if wanted and self.ranges:
            start, status = int(wanted[1]), 206
            if start >= len(content):
                self._head(request, 416, {"Content-Length": "0"}, fault)
                return
            headers["Content-Range"] = f"bytes {start}-{len(content) - 1}/{len(content)}"
        self._head(request, status, {**headers, "Content-Length": str(len(content) - start)}, fault)
        stop = len(content) if fault.share is None else int(len(content) * fault.share)
        try:
            request.wfile.write(content[start:stop])
            request.wfile.flush()
            if fault.stall:
                self._closing.wait(30)
        except ConnectionError:
            pass
        request.close_connection = True

    def _head(
        self,
        request: http.server.BaseHTTPRequestHandler,
        status: int,
        headers: dict[str, str],
        fault: Fault,
    ) -> None:
        request.send_response(status)
        for name, value in {**headers, **fault.headers}.items():
            if value is not None:
                request.send_header(name, value)
        request.end_headers()
