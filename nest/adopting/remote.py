"""A repository of the Hub: its commit, its files with their digests, and what is asked of it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nest.adopting.repository import Repository
from nest.checking.headers import UnseenError, remote_tensors
from nest.errors import FetchError
from nest.ir.parammap import TensorSpec
from nest.registry import FileSpec
from nest.weights import cache_root, open_checkpoint
from nest.weights._files import user_path
from nest.weights.digests import Verifier
from nest.weights.hub import Hub, hub_cache_root, hub_offline
from nest.weights.hub_cache import RepoCache
from nest.weights.site import policy
from nest.weights.source import SourceError

__all__ = ["remote_repository"]

_COMMIT = re.compile(r"[0-9a-f]{40}")


def remote_repository(
    repo: str,
    *,
    revision: str | None = None,
    local_files_only: bool = False,
    token: str | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
) -> Repository:
    """`owner/name` of the Hub, at the commit that a revision means now (a branch, a tag; `main` if left out).

    Without the network, what an earlier call brought into the cache is all that there is.

    Raises:
        FetchError: it is not there, or not for this user, or not in the cache where the network is not to be asked.
    """
    cache = hub_cache_root() if cache_dir is None else user_path(cache_dir, "The cache's folder").absolute()
    root = cache_root() if cache_dir is None else cache / "nest"
    if local_files_only or hub_offline():
        commit, names, digests = _cached(cache, repo, revision)
    else:
        commit, names, digests = _asked(repo, revision, token)
    files = RepoCache(cache, repo, commit)
    verifier = Verifier(root)
    hub = Hub(repo, commit, files, verifier, token=token)

    def path(name: str) -> Path:
        try:
            spec = FileSpec(name=name, **digests.get(name, {}))
            return hub.local(spec) or hub.download(spec, lambda count, /, *, came=True: None)
        except SourceError as error:
            raise FetchError(f"'{name}' of {hub} could not be fetched: {error}.") from error

    def pin(name: str) -> FileSpec:
        known = digests.get(name, {})
        if known.get("sha256") is None:
            here = path(name)
            known = {"size": here.stat().st_size, "sha256": verifier.digest(here)}
        return FileSpec(name=name, **known)

    def header(name: str) -> Mapping[str, TensorSpec]:
        if (here := files.find(name)) is not None:
            return open_checkpoint(here).specs
        try:
            return remote_tensors(
                hub.location(name), FileSpec(name=name, **digests.get(name, {})), hub._headers()
            )
        except UnseenError as error:
            raise FetchError(f"The header of '{name}' of {hub} could not be had: {error}.") from error

    return Repository(repo, repo=repo, revision=commit, names=names, path=path, pin=pin, header=header)


_Digests = Mapping[str, dict[str, Any]]


def _asked(repo: str, revision: str | None, token: str | None) -> tuple[str, frozenset[str], _Digests]:
    """The commit and the files, as the Hub tells them."""
    from huggingface_hub import HfApi

    rules = policy()
    if "hub" in rules.forbidden:
        raise FetchError(f"{repo} cannot be adopted from the Hub: the Hub {rules.why_not('hub')}.")
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        api = HfApi(endpoint=endpoint, token=token)
        info = api.model_info(repo, revision=revision, files_metadata=True, timeout=20)
    except Exception as error:  # of the client and its transport, whose types change by version
        raise FetchError(_refusal(repo, revision, error)) from error
    if not info.sha or not _COMMIT.fullmatch(info.sha):
        raise FetchError(f"The Hub does not say at which commit {repo} is: {info.sha!r} came.")
    digests: dict[str, dict[str, Any]] = {}
    for file in info.siblings or []:
        lfs = getattr(file, "lfs", None)
        digests[file.rfilename] = {"size": file.size, "sha256": lfs.sha256 if lfs else None}
    return info.sha, frozenset(digests), digests


def _refusal(repo: str, revision: str | None, error: Exception) -> str:
    from huggingface_hub import errors

    if isinstance(error, errors.GatedRepoError):
        return f"{repo} is gated: accept its terms on its page of the Hub, and set HF_TOKEN."
    if isinstance(error, errors.RevisionNotFoundError):
        return f"{repo} has no revision '{revision}'."
    if isinstance(error, errors.RepositoryNotFoundError):
        return f"{repo} is not on the Hub, or is private and the token does not admit it: check the name and HF_TOKEN."
    if isinstance(error, errors.HFValidationError):
        return f"'{repo}' is neither a folder nor a repository of the Hub (owner/name)."
    reason = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
    return f"The Hub could not be asked about {repo}: {reason}. A folder with its files needs no network."


def _cached(cache: Path, repo: str, revision: str | None) -> tuple[str, frozenset[str], _Digests]:
    """The commit and the files that are in the cache."""
    folder = RepoCache(cache, repo, "").folder
    wanted = revision or "main"
    commit = wanted
    if not _COMMIT.fullmatch(wanted):
        try:
            commit = (folder / "refs" / wanted).read_text("utf-8").strip()
        except (OSError, ValueError):
            commit = ""
    snapshot = folder / "snapshots" / commit
    if not _COMMIT.fullmatch(commit) or not snapshot.is_dir():
        raise FetchError(
            f"{repo} at '{wanted}' is not in the cache ({cache}), and the network is not to be asked (local_files_only "
            f"or --offline, or HF_HUB_OFFLINE is set)."
        )
    names = (path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file())
    return commit, frozenset(names), {}
