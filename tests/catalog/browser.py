"""A real browser on the built site, served below a path prefix, with everything that must never happen watched."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from filelock import FileLock

ROOT = Path(__file__).parents[2]
PREFIX = "/some/where"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def need(*, browser: bool) -> None:
    """Skip a test whose tools are not here; where NEST_TEST_BROWSER is set their absence is a failure."""
    missing = [name for name in ("mkdocs", "material", "mkdocstrings") if find_spec(name) is None]
    if browser:
        missing += [name for name in ("playwright", "axe_playwright_python") if find_spec(name) is None]
        missing += [] if CHROMIUM else ["chromium"]
    if missing and os.environ.get("NEST_TEST_BROWSER"):
        pytest.fail(f"NEST_TEST_BROWSER is set, and there is no {', '.join(missing)}")
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")


def build_site(folder: Path, *, docs: bool = True) -> Path:
    """Build the whole site, strictly, from a copy of `docs` in a folder, and return where it is.

    `docs=False` takes the folder's own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    if docs:
        shutil.copytree(ROOT / "docs", folder / "docs", ignore=shutil.ignore_patterns("models"))
    shutil.copy(ROOT / "mkdocs.yml", folder)
    (folder / "nest").symlink_to(ROOT / "nest")
    remake_site(folder)
    return folder / "site"


def remake_site(folder: Path) -> str:
    """Build it again, as it is; what MkDocs says."""
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet"],
        cwd=folder,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def shared_site(base: Path) -> Path:
    """The site, built once for all workers of a test run, which share the folder `base`."""
    with FileLock(base / "site.lock"):
        return base / "site" / "site" if (base / "site").exists() else build_site(base / "site")


class _Handler(http.server.SimpleHTTPRequestHandler):
    """The site below PREFIX, and nothing elsewhere."""

    def translate_path(self, path: str) -> str:
        if not urlsplit(path).path.startswith(f"{PREFIX}/"):
            return os.devnull + "/none"
        return super().translate_path(path.removeprefix(PREFIX))

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def served(site: Path) -> Iterator[str]:
    """Serve a folder on this machine; the address of its root, which ends in a slash."""
    handler = functools.partial(_Handler, directory=str(site))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}{PREFIX}/"
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Watch:
    """What a page did that no page may do."""

    errors: list[str] = field(default_factory=list)
    abroad: list[str] = field(default_factory=list)

    def over(self, page: Any) -> None:
        """Watch a page of playwright, and let no request leave this machine."""
        page.on("console", lambda message: message.type == "error" and self.errors.append(message.text))
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("response", lambda answer: answer.status >= 400 and self.errors.append(answer.url))
        page.route("**/*", self._let)

    def _let(self, route: Any) -> None:
        url = route.request.url
        if urlsplit(url).hostname in ("127.0.0.1", None):
            route.continue_()
        else:
            self.abroad.append(url)
            route.abort()

    def check(self) -> None:
        assert self.abroad == []
        assert self.errors == []
