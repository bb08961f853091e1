"""What tensors an entry's checkpoint has: from its cached files, from headers on the Hub, else from a list."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from nest.checking.headers import UnseenError, remote_tensors
from nest.errors import DigestError, FetchError, WeightsError
from nest.ir.parammap import TensorSpec
from nest.registry import Entry, FileSpec
from nest.registry.tensors import TENSORS_FILE, TensorList, read_tensors
from nest.weights import cache_root, fetch, open_checkpoint
from nest.weights.hub import hub_offline
from nest.weights.site import policy
from nest.weights.source import FOREIGN, Source
from nest.weights.sources import Sources

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
        if any(FOREIGN in note for note in fetched.notes):  # its element types need not be the publisher's
            return None
        return open_checkpoint([fetched.files[spec.name] for spec in files]).specs

    def _remote(self, entry: Entry, files: list[FileSpec]) -> dict[str, TensorSpec]:
        """The headers, from the first server that has them; which may be asked, and in what order, the site says."""
        weights = entry.manifest.weights
        if self.offline or hub_offline() or weights is None:
            raise UnseenError("the network was not asked")
        sources = Sources(weights, policy(), root=cache_root(), token=self.token).allowed
        reasons = []
        for source in sources:
            if source.kind in ("hub", "url"):
                try:
                    return self._from(source, files)
                except UnseenError as error:
                    reasons.append(str(error))
        raise UnseenError("; ".join(reasons) or "the site's configuration allows no server to be asked")

    def _from(self, source: Source, files: list[FileSpec]) -> dict[str, TensorSpec]:
        host = str(source.host)
        if host in self._unreachable:
            raise UnseenError(self._unreachable[host])
        headers = self._token() if source.kind == "hub" else {}
        found: dict[str, TensorSpec] = {}
        for spec in files:
            url = source.location(spec.name)
            try:
                found.update(remote_tensors(url, spec, headers))
            except UnseenError as error:
                message = f"{host} cannot be reached ({error})" if error.host else f"{url}: {error}"
                if error.host:
                    self._unreachable[host] = message
                raise UnseenError(message, host=error.host) from error
            except WeightsError as error:
                if source.kind == "hub":
                    raise
                raise UnseenError(str(error).rstrip(".")) from error  # the mirror's fault, not the entry's
        return found

    def _token(self) -> dict[str, str]:
        from huggingface_hub import get_token

        token = self.token or get_token()
        return {"Authorization": f"Bearer {token}"} if token else {}


def _names(files: list[FileSpec]) -> str:
    return " and ".join(spec.name for spec in files) if len(files) < 3 else f"{len(files)} files"
