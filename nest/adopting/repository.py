"""What there is to adopt: a folder on this machine, or a repository of the Hub at one commit."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from nest.errors import AdoptionError, WeightsError
from nest.ir.parammap import TensorSpec
from nest.registry import FileSpec

__all__ = ["Repository"]

_FILE, _INDEX = "model.safetensors", "model.safetensors.index.json"
_MOST = 64 << 20
"""Bytes of a file of text that is read whole: a large vocabulary takes a fifth of it."""


class Repository:
    """Files by name at one state of theirs. Small ones are read, of weights only the headers.

    Args:
        name: as a person gave it, for messages.
        repo, revision: what pins it, `owner/name` and 40 hexadecimal digits; no revision where nobody has published it.
        names: every file.
        folder: where they lie, if on this machine, and are nowhere published.
        path: brings a file here and says where it is.
        pin: the pins of a file.
        header: the tensors of a file of weights.
    """

    def __init__(
        self,
        name: str,
        *,
        repo: str,
        revision: str | None,
        names: frozenset[str],
        path: Callable[[str], Path],
        pin: Callable[[str], FileSpec],
        header: Callable[[str], Mapping[str, TensorSpec]],
        folder: Path | None = None,
    ) -> None:
        self.name = name
        self.repo = repo
        self.revision = revision
        self.names = names
        self.folder = folder
        self.pin = pin
        self._path = path
        self._header = header
        self._read: dict[str, Any] = {}

    def json(self, name: str) -> Any:
        """The content of a JSON file; None where there is no such file.

        Raises:
            AdoptionError: it is not JSON.
        """
        if name not in self.names:
            return None
        if name not in self._read:
            try:
                self._read[name] = json.loads(self.text(name))
            except (ValueError, RecursionError) as error:
                raise AdoptionError(f"{self.name}: {name} is not valid JSON: {error}.") from error
        return self._read[name]

    def text(self, name: str) -> str:
        """The content of a file of text.

        Raises:
            AdoptionError: it cannot be read, or is no text.
        """
        try:
            path = self._path(name)
            if path.stat().st_size > _MOST:
                raise AdoptionError(
                    f"{self.name}: {name} has more than {_MOST >> 20} MB, which no file of text has."
                )
            return path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise AdoptionError(f"{self.name}: {name} cannot be read: {reason}.") from error

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """`config.json`.

        Raises:
            AdoptionError: there is none, or it holds no object.
        """
        found = self.json("config.json")
        if found is None:
            adapter = " It is an adapter, which changes another model: merge the two first."
            what = adapter if "adapter_config.json" in self.names else ""
            raise AdoptionError(f"{self.name} has no config.json, which says what model it is.{what}")
        if not isinstance(found, dict):
            raise AdoptionError(f"{self.name}: config.json holds no object.")
        return found

    @cached_property
    def weights(self) -> list[str]:
        """The files of weights: one, or the shards that an index names.

        Raises:
            AdoptionError: there are none that nest reads, or the index names one that is absent.
        """
        if _FILE in self.names:
            return [_FILE]
        if _INDEX not in self.names:
            others = sorted(
                name
                for name in self.names
                if name.endswith((".bin", ".pt", ".pth", ".h5", ".msgpack", ".gguf"))
            )
            instead = (
                f" It has {others[0]}, which nest does not read: save the model with safe_serialization."
                if others
                else ""
            )
            raise AdoptionError(f"{self.name} has no {_FILE} and no {_INDEX}.{instead}")
        index = self.json(_INDEX)
        mapped = index.get("weight_map") if isinstance(index, dict) else None
        shards = sorted({*mapped.values()}) if isinstance(mapped, dict) and _all_text(mapped) else []
        if not shards:
            raise AdoptionError(f"{self.name}: {_INDEX} has no 'weight_map' from tensor to file.")
        if absent := [shard for shard in shards if shard not in self.names]:
            raise AdoptionError(f"{self.name}: {_INDEX} names {', '.join(absent)}, which is not there.")
        return shards

    @cached_property
    def tensors(self) -> dict[str, TensorSpec]:
        """Shape and dtype of every tensor, from the headers.

        Raises:
            WeightsError: a file is damaged, or repeats another's tensor.
        """
        found: dict[str, TensorSpec] = {}
        for file in self.weights:
            for tensor, spec in self._header(file).items():
                if tensor in found:
                    raise WeightsError(f"{self.name}: {file} repeats the tensor '{tensor}' of another file.")
                found[tensor] = spec
        return found


def _all_text(mapped: Mapping[str, Any]) -> bool:
    return all(isinstance(name, str) for name in mapped.values())
