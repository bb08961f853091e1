"""The Hugging Face Hub at the pinned commit, asked with its own client: its tokens, endpoint and settings."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from nest.registry import FileSpec
from nest.weights.digests import Verifier
from nest.weights.hub_cache import RepoCache
from nest.weights.published import PublishedFiles
from nest.weights.source import Kind, Report, SourceError, without_password

if TYPE_CHECKING:
    from nest.weights.transfer import UnreachableError

__all__ = ["Hub", "hub_cache_root", "hub_offline"]

_REMEMBER_SECONDS = 60.0
_UNREACHABLE: dict[str, tuple[float, str]] = {}
"""Endpoint -> (when it was tried, why it cannot be reached): one stall is enough for a process."""


def hub_offline() -> bool:
    """Whether the user has switched the Hub off (`HF_HUB_OFFLINE`)."""
    from huggingface_hub.constants import HF_HUB_OFFLINE

    return HF_HUB_OFFLINE or os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def hub_cache_root() -> Path:
    """The folder of the client's cache."""
    from huggingface_hub.constants import HF_HUB_CACHE

    return Path(HF_HUB_CACHE)


class Hub:
    """One repository at its pinned commit.

    Args:
        repo: such as `"openai/whisper-tiny"`.
        revision: 40 hexadecimal digits.
        cache: where its files are kept.
        verifier: compares them with their pins.
        token: overrides `HF_TOKEN` and the stored login.
    """

    kind: Kind = "hub"

    def __init__(
        self, repo: str, revision: str, cache: RepoCache, verifier: Verifier, *, token: str | None
    ) -> None:
        self.repo = repo
        self.revision = revision
        self._files = PublishedFiles(cache, revision, verifier)
        self._token = token
        self._endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        self._shown = without_password(self._endpoint)

    def __str__(self) -> str:
        return f"{self._shown}/{self.repo} at {self.revision}"

    @property
    def host(self) -> str | None:
        return urlsplit(self._shown).netloc

    def offers(self, name: str) -> bool:
        return True

    def location(self, name: str) -> str:
        return f"{self._shown}/{self._path(name)}"

    def _path(self, name: str) -> str:
        return f"{self.repo}/resolve/{self.revision}/{quote(name)}"

    def local(self, spec: FileSpec) -> Path | None:
        return self._files.local(spec)

    def note(self, spec: FileSpec) -> str | None:
        return None

    def download(self, spec: FileSpec, report: Report) -> Path:
        from nest.weights.transfer import UnreachableError

        self._check_reachable()
        try:
            url = f"{self._endpoint}/{self._path(spec.name)}"
            return self._files.bring(url, spec, report, headers=self._headers)
        except UnreachableError as error:
            self._remember(error)
            raise
        except SourceError as error:
            raise SourceError(self._meaning(spec.name, error), answered=error.answered) from error

    def _headers(self) -> Mapping[str, str]:
        from huggingface_hub import constants, get_token

        # Not built by the client, which asks the Hub a question of its own for them, on a blocked network too.
        token = self._token or (None if constants.HF_HUB_DISABLE_IMPLICIT_TOKEN else get_token())
        return {"User-Agent": "nest", **({"Authorization": f"Bearer {token}"} if token else {})}

    def _check_reachable(self) -> None:
        when, reason = _UNREACHABLE.get(self._endpoint, (0.0, ""))
        if reason and time.monotonic() - when < _REMEMBER_SECONDS:
            raise SourceError(reason)

    def _remember(self, error: UnreachableError) -> None:
        if error.asked:
            _UNREACHABLE[self._endpoint] = (time.monotonic(), str(error))

    def _meaning(self, name: str, error: SourceError) -> str:
        """What a status means on the Hub, which says more of it in headers that its client reads."""
        from huggingface_hub import errors

        answer = error.__cause__
        if isinstance(answer, errors.GatedRepoError):
            return f"{self.repo} is gated: accept its terms at {self._shown}/{self.repo} and set HF_TOKEN"
        if isinstance(answer, errors.RevisionNotFoundError):
            return f"{self.repo} has no commit {self.revision} any more"
        if isinstance(answer, errors.EntryNotFoundError):
            return f"{self.repo} at {self.revision} has no file '{name}'"
        if isinstance(answer, errors.RepositoryNotFoundError):
            return (
                f"{self.repo} is not there, or is private and the token does not admit it "
                f"(status {answer.response.status_code}): check HF_TOKEN"
            )
        status = answer.response.status_code if isinstance(answer, errors.HfHubHTTPError) else None
        if status == 401:
            return "the token is refused (status 401): check HF_TOKEN"
        if status == 429:
            return f"{error}: too many requests; wait, or set HF_TOKEN, which raises the limit"
        return str(error)
