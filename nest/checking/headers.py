"""The header of a safetensors file on a server: two requests for ranges of bytes, however large the file is."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nest.errors import WeightsError
from nest.ir.parammap import TensorSpec
from nest.registry import FileSpec
from nest.weights._header import MAX_HEADER_BYTES, read_header

__all__ = ["UnseenError", "remote_tensors"]

_SECONDS = 10.0
_REFUSALS = {401: "it needs a token", 403: "the token does not admit it", 429: "too many requests"}


class UnseenError(Exception):
    """The header could not be had; the message says why. `host` says that the server cannot be reached at all."""

    def __init__(self, message: str, *, host: bool = False) -> None:
        super().__init__(message)
        self.host = host


def remote_tensors(url: str, spec: FileSpec, headers: Mapping[str, str]) -> dict[str, TensorSpec]:
    """Shape and dtype of each tensor of the safetensors file at `url`.

    Args:
        url: the file at its pinned commit.
        spec: its pins; the size is compared.
        headers: what the server wants to be told, such as a token.

    Raises:
        UnseenError: the server cannot be reached, or does not give the file to this user now.
        WeightsError: there is no such file, or it is not the pinned one, or not safetensors.
    """
    prefix, size = _range(url, headers, 0, 8)
    if spec.size is not None and size != spec.size:
        raise WeightsError(
            f"{url} is not the pinned '{spec.name}': expected {spec.size} bytes; it has {size}."
        )
    length = int.from_bytes(prefix, "little")
    body = b""
    if len(prefix) == 8 and 0 < length <= min(MAX_HEADER_BYTES, size):
        body, _ = _range(url, headers, 8, length)
    extents = read_header(io.BytesIO(prefix + body), Path(spec.name), size)
    return {name: extent.spec for name, extent in extents.items()}


def _range(url: str, headers: Mapping[str, str], start: int, count: int) -> tuple[bytes, int]:
    """`count` bytes from `start`, and the size of the whole file."""
    from huggingface_hub import get_session  # the Hub client's own: its proxies and certificates hold

    wanted = {**headers, "Range": f"bytes={start}-{start + count - 1}", "Accept-Encoding": "identity"}
    try:
        with get_session().stream(
            "GET", url, headers=wanted, timeout=_SECONDS, follow_redirects=True
        ) as response:
            _check_status(url, response.status_code)
            # A server that ignores ranges sends all: what comes before is skipped, the rest is not waited for.
            skip = 0 if response.status_code == 206 else start
            size = _size(url, response)
            found = _read(response, skip + count)[skip:]
    except (UnseenError, WeightsError):
        raise
    except Exception as error:  # of the client's transport, whose types change by version
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UnseenError(reason, host=True) from error
    if len(found) < min(count, size - start):
        raise UnseenError(f"the answer broke off after {len(found)} of {count} bytes")
    return found, size


def _check_status(url: str, status: int) -> None:
    if status in (404, 410):
        raise WeightsError(f"{url} is not there (status {status}).")
    if status not in (200, 206):
        raise UnseenError(f"status {status}" + (f": {_REFUSALS[status]}" if status in _REFUSALS else ""))


def _read(response: Any, count: int) -> bytes:
    found = b""
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) >= count:
            break
    return found[:count]


def _size(url: str, response: Any) -> int:
    """Of `Content-Range: bytes 0-7/151060136`, or of the whole body."""
    stated = response.headers.get("Content-Range" if response.status_code == 206 else "Content-Length", "")
    found = re.search(r"(\d+)$", stated)
    if found is None:
        raise UnseenError(f"{url} does not say how large the file is")
    return int(found[1])
