"""The kinds of task, as `task.kind` of `nest.toml` names them, and what each needs, known without importing it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, cast

from nest._suggest import did_you_mean
from nest.errors import CallError, ManifestError
from nest.registry import Entry

__all__ = ["KINDS", "Kind", "Maker", "kind_of"]


class Maker(Protocol):
    """Puts the pipeline of a loaded model together; what it is given else is for `nest.weights.fetch`."""

    def __call__(self, model: Any, plan: str, **fetch_options: Any) -> Any: ...


@dataclass(frozen=True)
class Kind:
    """A kind of task: the module of `nest.tasks.making` that makes its pipeline, and the extras of `nest-zoo`."""

    name: str
    module: str
    extras: tuple[str, ...]

    @property
    def make(self) -> Maker:
        """Its maker, imported now."""
        return cast(Maker, import_module(f"nest.tasks.making.{self.module}").make)


def _table(*kinds: Kind) -> Mapping[str, Kind]:
    return {kind.name: kind for kind in kinds}


KINDS = _table(
    Kind("transcription", "transcription", ("audio",)),
    Kind("sentence-embedding", "sentence_embedding", ("text",)),
    Kind("fill-mask", "fill_mask", ("text",)),
    Kind("text-generation", "text_generation", ("text",)),
    Kind("image-classification", "image_classification", ("vision",)),
    Kind("image-embedding", "image_embedding", ("vision",)),
    Kind("image-text-matching", "image_text_matching", ("vision",)),
)


def kind_of(entry: Entry, wanted: str | None = None) -> Kind:
    """What an entry does, or the one of its kinds that is wanted.

    Raises:
        ManifestError: the entry has no task, or one that has no pipeline.
        CallError: it has others than the one that is wanted.
    """
    task = entry.manifest.task
    own = [task.kind, *task.also] if task else []
    if wanted is not None and wanted not in own:
        raise CallError(
            f"'{entry.name}' has no task '{wanted}'; it has {', '.join(own) or 'none'}.{did_you_mean(wanted, own)}"
        )
    name = wanted or (own[0] if own else None)
    if name is None or name not in KINDS:
        found = f"task.kind is '{name}'" if name else "it has no [task] table"
        raise ManifestError(
            f"{entry.directory / 'nest.toml'}: {found}, so there is no pipeline for '{entry.name}'; expected "
            f"one of: {', '.join(KINDS)}. nest.load gives the model itself."
        )
    return KINDS[name]
