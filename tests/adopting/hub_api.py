"""A loopback hub that also says, as the Hub's interface does, at which commit a repository is and what it holds."""

from __future__ import annotations

import http.server
import json
from urllib.parse import urlsplit

from ..weights.loopback import REPO, REVISION, LoopbackHub, sha256


class HubWithApi(LoopbackHub):
    """Serves files, and `/api/models/OWNER/NAME[/revision/NAME]`, with digests of `.safetensors` files."""

    def answer(self, request: http.server.BaseHTTPRequestHandler) -> None:
        path = urlsplit(request.path).path
        if not path.startswith("/api/models/"):
            super().answer(request)
            return
        self.requests.append(request.path)
        wanted = path.removeprefix("/api/models/").partition("/revision/")
        if wanted[0] != REPO or wanted[2] not in ("", "main", "tuned", REVISION):
            code = "RevisionNotFound" if wanted[0] == REPO else "RepoNotFound"
            self._json(request, 404, {"error": "not there"}, code)
            return
        files = [self._file(name) for name in sorted(self.files)]
        self._json(
            request, 200, {"id": REPO, "sha": REVISION, "siblings": files, "tags": [], "private": False}
        )

    def _file(self, name: str) -> dict[str, object]:
        content = self.files[name]
        large = {"sha256": sha256(content), "size": len(content), "pointerSize": 134}
        return {
            "rfilename": name,
            "size": len(content),
            **({"lfs": large} if name.endswith(".safetensors") else {}),
        }

    def _json(
        self,
        request: http.server.BaseHTTPRequestHandler,
        status: int,
        content: object,
        code: str | None = None,
    ) -> None:
        body = json.dumps(content).encode()
        request.send_response(status)
        request.send_header("Content-Type", "application/json")
        request.send_header("Content-Length", str(len(body)))
        if code is not None:
            request.send_header("X-Error-Code", code)
        request.end_headers()
        request.wfile.write(body)
