"""What tensors an entry's checkpoint has: from its cached files, from headers on the Hub, else from a list."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote

from nest.checking.headers import UnseenError, remote_tensors
from nest.errors import DigestError, FetchError
from nest.ir.parammap import TensorSpec
from nest.registry import Entry, FileSpec
from nest.registry.tensors import TENSORS_FILE, TensorList, read_tensors
from nest.weights import fetch, open_checkpoint

__all__ = ["Checkpoints", "Tensors", "checkpoint_files"]


@dataclass(frozen=True)
class Tensors:
    """The tensors of a checkpoint. `seen`: they were read from its header. `where`: from what, for a person."""

    specs: Mapping[str, TensorSpec]
    where: str
    seen: bool
    listed: TensorList | None


def checkpoint_files(entry: Entry) -> list[FileSpec]:
    """The files that hold the entry's tensors."""
    weights = entry.manifest.weights
    return [spec for spec in weights.files if spec.name.endswith(".safetensors")] if weights else []


@dataclass
class Checkpoints:
    """Looks at the checkpoints of entries, one after another; a host that cannot be reached is asked once.

    Args:
        offline: ask no network.
        token: for gated repositories of the Hub.
    """

    offline: bool = False
    token: str | None = None
    _unreachable: dict[str, str] = field(default_factory=dict)

    def tensors(self, entry: Entry) -> Tensors:
        """The tensors of the entry's checkpoint, by the best source there is.

        Raises:
            UnseenError: neither the checkpoint nor a list of its tensors is to be had.
            DigestError: a cached file is not the pinned one.
            WeightsError: a file is not on the Hub, or is no safetensors.
            ManifestError: the entry's list of tensors is not valid.
        """
        listed = read_tensors(entry.directory, entry.name)
        files = checkpoint_files(entry)
        cached = self._cached(entry, files)
        if cached is not None:
            return Tensors(cached, f"the cached {_names(files)}", True, listed)
        try:
            return Tensors(self._remote(entry, files), f"the header of {_names(files)}", True, listed)
        except UnseenError as error:
            if listed is None:
                raise UnseenError(f"{error}; and the entry has no {TENSORS_FILE}") from error
            return Tensors(listed.specs, str(error), False, listed)

    def _cached(self, entry: Entry, files: list[FileSpec]) -> Mapping[str, TensorSpec] | None:
        try:
            fetched = fetch(entry, [spec.name for spec in files], local_files_only=True, progress=False)
        except DigestError:
            raise
        except FetchError:
            return None
        return open_checkpoint([fetched.files[spec.name] for spec in files]).specs

    def _remote(self, entry: Entry, files: list[FileSpec]) -> dict[str, TensorSpec]:
        from huggingface_hub import get_token

        weights = entry.manifest.weights
        if self.offline or _offline() or weights is None:
            raise UnseenError("the network was not asked")
        endpoint = (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")
        if endpoint in self._unreachable:
            raise UnseenError(self._unreachable[endpoint])
        token = self.token or get_token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        found: dict[str, TensorSpec] = {}
        for spec in files:
            url = f"{endpoint}/{weights.repo}/resolve/{weights.revision}/{quote(spec.name)}"
            try:
                found.update(remote_tensors(url, spec, headers))
            except UnseenError as error:
                message = f"{endpoint} cannot be reached ({error})" if error.host else f"{url}: {error}"
                if error.host:
                    self._unreachable[endpoint] = message
                raise UnseenError(message, host=error.host) from error
        return found


def _offline() -> bool:
    return os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE")


def _names(files: list[FileSpec]) -> str:
    return " and ".join(spec.name for spec in files) if len(files) < 3 else f"{len(files)} files"
