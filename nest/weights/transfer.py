"""Bring the bytes of a URL into a file: continued after a break, bounded, compared with the pin before use.

The requests are the Hub client's, so that its proxies, certificates and settings hold. The client itself keeps
nothing of a broken transfer; here the bytes that came stay in the partial file, also when the process dies.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO
from urllib.parse import urlsplit

from nest.errors import DigestError
from nest.registry import FileSpec
from nest.weights.digests import file_sha256
from nest.weights.source import Report, SourceError, without_password

__all__ = ["Arrival", "UnreachableError", "transfer"]

_TRIES = 5
"""Attempts in a row that may bring nothing new."""
_SILENT_TRIES = 2
"""The same for a host that takes the connection and says nothing, as some networks do to hosts that they block."""
_LONGEST_WAIT = 60.0
_RETRIED = (408, 425, 429, 500, 502, 503, 504)
_OF_THE_WAY = (408, 500, 502, 503, 504)
"""Those that say less of the file than of the network and the server."""
_NO_CONNECTION = ("ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol")
_LOST = ("TooManyRedirects", "InvalidURL")
"""A redirect that ends nowhere, which asking again does not change."""


class UnreachableError(SourceError):
    """No connection came about: to the host that was asked, or to one that it sends to."""

    def __init__(self, message: str, *, asked: bool) -> None:
        super().__init__(message)
        self.asked = asked


@dataclass(frozen=True)
class Arrival:
    """What the server said of the file, and the sha256 of what came."""

    sha256: str
    etag: str | None
    commit: str | None


class _CutError(Exception):
    """The body ended early."""


def transfer(
    url: str, part: Path, spec: FileSpec, *, headers: Mapping[str, str] | None = None, report: Report
) -> Arrival:
    """Bring `url` into `part`, after what is there of it already.

    Raises:
        SourceError: the server refuses it, cannot be reached (`UnreachableError`), or keeps breaking off; what came
            stays in `part`. An answer with a status is the cause, for who knows what it means there.
        DigestError: what came is not the pinned file; nothing is left.
        OSError: `part` cannot be written.
    """
    kept = _size(part)
    if spec.size is not None and kept > spec.size:
        part.unlink()
        kept = 0
    report(kept, came=False)
    arrival = _Transfer(url, part, spec, dict(headers or {}), report).run()
    if kept and spec.sha256 is not None and arrival.sha256 != spec.sha256:
        # The bytes of the earlier attempt may have been of something else: once more, from the start.
        report(-_size(part), came=False)
        part.unlink()
        arrival = _Transfer(url, part, spec, dict(headers or {}), report).run()
    if spec.sha256 is not None and arrival.sha256 != spec.sha256:
        part.unlink()
        raise DigestError(
            f"what came from {without_password(url)} is not the pinned '{spec.name}': expected the sha256 "
            f"{spec.sha256}; it has {arrival.sha256}. It was deleted"
        )
    return arrival


class _Transfer:
    def __init__(self, url: str, part: Path, spec: FileSpec, headers: dict[str, str], report: Report) -> None:
        self._url = url
        self._part = part
        self._spec = spec
        # Without compression, so that bytes are counted as they are pinned.
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._report = report

    def run(self) -> Arrival:
        from huggingface_hub.errors import HfHubHTTPError

        fruitless = 0
        started = furthest = _size(self._part)
        while True:
            wait = 0.0
            try:
                return self._attempt()
            except HfHubHTTPError as error:  # an OSError too
                wait = self._wait_after(error, fruitless)
            except (OSError, SourceError, DigestError):
                raise
            except Exception as error:  # of the client's transport, whose types change by version
                self._give_up_if_hopeless(error, fruitless, untried=furthest == started)
            here = _size(self._part)
            fruitless = 0 if here > furthest else fruitless + 1
            furthest = max(furthest, here)
            time.sleep(wait or min(2.0 ** max(fruitless - 1, 0), 8.0))

    def _wait_after(self, error: Any, fruitless: int) -> float:
        """Seconds to wait before asking again, where the status promises that another answer may come."""
        status = error.response.status_code
        wanted = str(error.response.headers.get("Retry-After", ""))
        wait = float(wanted) if wanted.isdigit() else 0.0
        if status not in _RETRIED or fruitless + 1 >= _TRIES or wait > _LONGEST_WAIT:
            later = f"; it asks to come back in {wait:.0f} s" if wait else ""
            raise SourceError(f"status {status}{later}", answered=status not in _OF_THE_WAY) from error
        return wait

    def _give_up_if_hopeless(self, error: Exception, fruitless: int, *, untried: bool) -> None:
        reason = _reason(error)
        names = {kind.__name__ for kind in type(error).__mro__}
        silent = "TimeoutException" in names and fruitless + 1 >= _SILENT_TRIES
        if untried and (silent or names.intersection(_NO_CONNECTION)):
            raise self._unreachable(error, reason) from error
        if {type(error).__name__, type(error.__context__).__name__} & set(_LOST):
            raise SourceError(f"it is redirected to nowhere ({reason})") from error
        if fruitless + 1 >= _TRIES:
            kept = _size(self._part)
            raise SourceError(
                f"the transfer broke off {_TRIES} times in a row ({reason}); {kept} of "
                f"{self._spec.size or 'its'} bytes came, and are kept for the next pull"
            ) from error

    def _unreachable(self, error: Exception, reason: str) -> UnreachableError:
        """Behind a redirect, the host that failed is not the one that was asked."""
        request = getattr(error, "_request", None)
        asked = urlsplit(without_password(self._url))
        failed = urlsplit(without_password(str(request.url) if request is not None else self._url))
        where = f"{asked.scheme}://{asked.netloc}"
        if failed.netloc == asked.netloc:
            return UnreachableError(f"{where} cannot be reached ({reason})", asked=True)
        text = f"{where} sends the file from {failed.netloc}, which cannot be reached ({reason})"
        return UnreachableError(text, asked=False)

    def _attempt(self) -> Arrival:
        from huggingface_hub import constants, get_session, hf_raise_for_status

        offset = _size(self._part)
        if offset and offset == self._spec.size:
            return Arrival(file_sha256(self._part), None, None)
        headers = {**self._headers, **({"Range": f"bytes={offset}-"} if offset else {})}
        timeout = constants.HF_HUB_DOWNLOAD_TIMEOUT
        with get_session().stream(
            "GET", self._url, headers=headers, timeout=timeout, follow_redirects=True
        ) as response:
            if response.status_code == 416 and offset:  # there is less of it than is here
                self._restart(offset)
                raise _CutError("the server has less of the file than came before")
            hf_raise_for_status(response)
            if response.status_code not in (200, 206):
                raise SourceError(f"status {response.status_code}")
            if offset and response.status_code != 206:
                self._restart(offset)
                offset = 0
            self._check_length(response, offset)
            # Not before something comes: an empty repository would puzzle others who use the cache.
            self._part.parent.mkdir(parents=True, exist_ok=True)
            with self._part.open("ab") as file:
                self._receive(response, file, offset)
        first = response.history[0].headers if response.history else response.headers
        etag = first.get("X-Linked-ETag") or first.get("ETag")
        sha256 = file_sha256(self._part)
        return Arrival(
            sha256, etag.removeprefix("W/").strip('"') if etag else None, first.get("X-Repo-Commit")
        )

    def _restart(self, had: int) -> None:
        self._part.unlink(missing_ok=True)
        self._report(-had, came=False)

    def _check_length(self, response: Any, offset: int) -> None:
        if response.headers.get("Content-Encoding", "identity") != "identity":
            return  # though it was asked not to compress: the length is that of other bytes
        stated = response.headers.get("Content-Length", "")
        if stated.isdigit() and self._spec.size is not None and int(stated) + offset != self._spec.size:
            raise self._wrong_size(response, int(stated) + offset)

    def _receive(self, response: Any, file: BinaryIO, at: int) -> None:
        for chunk in response.iter_bytes():
            at += len(chunk)
            if self._spec.size is not None and at > self._spec.size:
                raise self._wrong_size(response, at)
            file.write(chunk)
            self._report(len(chunk))
        file.flush()
        os.fsync(file.fileno())
        if self._spec.size is not None and at < self._spec.size:
            raise _CutError(f"the body ended after {at} of {self._spec.size} bytes")

    def _wrong_size(self, response: Any, size: int) -> DigestError:
        self._part.unlink(missing_ok=True)
        page = response.headers.get("Content-Type", "").startswith("text/html")
        looks = "; it is a web page, such as a proxy's notice" if page else ""
        return DigestError(
            f"what {without_password(self._url)} serves is not the pinned '{self._spec.name}': expected "
            f"{self._spec.size} bytes; it has {size}{looks}. It was not taken"
        )


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def _reason(error: BaseException) -> str:
    """The first line of an error, with its type where it says nothing."""
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text else type(error).__name__
