"""The Hugging Face Hub through its own client: its cache, its tokens, its endpoint settings."""

from __future__ import annotations

import errno
import os
import time
from pathlib import Path
from typing import Any

from nest.errors import FetchError

__all__ = ["Hub", "SourceError"]

_PROBE_SECONDS = 10.0
_REMEMBER_SECONDS = 60.0
_UNWRITABLE = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR}

_PROBED: dict[str, tuple[float, str | None]] = {}
"""Endpoint -> (when it was tried, why it is unreachable or None): one stall is enough for a process."""


class SourceError(Exception):
    """A source cannot give a file; the message says why, and another source may be tried."""


class Hub:
    """One repository at its pinned commit.

    Args:
        repo: such as `"openai/whisper-tiny"`.
        revision: 40 hexadecimal digits.
        token: overrides `HF_TOKEN` and the stored login.
        cache_dir: overrides the client's own cache folder.
    """

    def __init__(self, repo: str, revision: str, *, token: str | None, cache_dir: Path | None) -> None:
        self.repo = repo
        self.revision = revision
        self._token = token
        self._cache_dir = cache_dir
        self._endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"

    def __str__(self) -> str:
        return f"{self._endpoint}/{self.repo} at {self.revision}"

    @staticmethod
    def offline() -> bool:
        """Whether the user has switched the Hub off (`HF_HUB_OFFLINE`)."""
        from huggingface_hub.constants import HF_HUB_OFFLINE

        return HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")

    @property
    def cache(self) -> Path:
        """The folder of the client's cache."""
        from huggingface_hub.constants import HF_HUB_CACHE

        return self._cache_dir or Path(HF_HUB_CACHE)

    def cached(self, name: str) -> Path | None:
        """The file in the cache, if it is there; asks no network."""
        # The documented layout, read here: importing the client costs more than a warm load may.
        folder = self.cache / f"models--{self.repo.replace('/', '--')}"
        path = folder / "snapshots" / self.revision / name
        try:
            return path if path.is_file() else None
        except PermissionError:
            return None

    def download(self, name: str, *, replace: bool, progress: bool) -> Path:
        """Fetch the file into the cache.

        Args:
            name: the file.
            replace: fetch it even where the cache has it.
            progress: let the client show its bar.

        Raises:
            SourceError: the Hub is unreachable, or refuses the file.
            FetchError: the cache cannot be written.
        """
        from huggingface_hub import hf_hub_download

        self._probe(name)
        try:
            with _Bars(progress):
                path = hf_hub_download(
                    self.repo,
                    name,
                    revision=self.revision,
                    cache_dir=self.cache,
                    token=self._token,
                    endpoint=self._endpoint,
                    force_download=replace,
                    library_name="nest",
                )
        except Exception as error:  # of any type: the client's transport, and its errors, change by version
            raise self._refused(name, error) from error
        return Path(path)

    def _probe(self, name: str) -> None:
        """One quick request before the client's patient ones, which take half a minute to give up."""
        from huggingface_hub import get_hf_file_metadata, hf_hub_url

        when, reason = _PROBED.get(self._endpoint, (-_REMEMBER_SECONDS, None))
        if time.monotonic() - when > _REMEMBER_SECONDS:
            url = hf_hub_url(self.repo, name, revision=self.revision, endpoint=self._endpoint)
            reason = None
            try:
                get_hf_file_metadata(url, token=self._token, timeout=_PROBE_SECONDS)
            except Exception as error:
                # An answer of any status is an answer; the download reports it.
                reason = None if getattr(error, "response", None) is not None else _reason(error)
            _PROBED[self._endpoint] = (time.monotonic(), reason)
        if reason is not None:
            raise SourceError(f"{self._endpoint} cannot be reached ({reason})")

    def _refused(self, name: str, error: Exception) -> Exception:
        if isinstance(error, OSError) and error.errno in _UNWRITABLE:
            return FetchError(
                f"The cache {self.cache} cannot be written: {error.strerror}"
                f"{f' ({error.filename})' if error.filename else ''}. Make room or give permission there, or "
                f"set HF_HOME (or cache_dir=) to a folder that can be written."
            )
        return SourceError(self._meaning(name, error))

    def _meaning(self, name: str, error: Exception) -> str:
        from huggingface_hub import errors

        # The client wraps what went wrong in an error about its cache, where it looked next.
        if isinstance(error, errors.LocalEntryNotFoundError | ValueError) and isinstance(
            error.__cause__, Exception
        ):
            error = error.__cause__
        status = getattr(getattr(error, "response", None), "status_code", None)
        if isinstance(error, errors.GatedRepoError):
            return f"{self.repo} is gated: accept its terms at {self._endpoint}/{self.repo} and set HF_TOKEN"
        if isinstance(error, errors.RevisionNotFoundError):
            return f"{self.repo} has no commit {self.revision} any more"
        if isinstance(error, errors.EntryNotFoundError) and status is not None:
            return f"{self.repo} at {self.revision} has no file '{name}'"
        if isinstance(error, errors.RepositoryNotFoundError):
            return (
                f"{self.repo} is not there, or is private and the token does not admit it (status {status}): "
                f"check HF_TOKEN"
            )
        return f"status {status}: {_reason(error)}" if status is not None else _reason(error)


class _Bars:
    """The client's progress bars, off where the caller wants none; restored after."""

    def __init__(self, wanted: bool) -> None:
        self._wanted = wanted

    def __enter__(self) -> None:
        from huggingface_hub.utils.tqdm import are_progress_bars_disabled, disable_progress_bars

        self._change = not self._wanted and not are_progress_bars_disabled()
        if self._change:
            disable_progress_bars()

    def __exit__(self, *_: Any) -> None:
        from huggingface_hub.utils.tqdm import enable_progress_bars

        if self._change:
            enable_progress_bars()


def _reason(error: BaseException) -> str:
    """The first line of an error, with its type where it says nothing."""
    text = str(error).strip().splitlines()
    return text[0] if text else type(error).__name__
