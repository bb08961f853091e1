"""The page of a new entry, with prompts for what only a person knows; `nest lint` lists those that are left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nest.adopting.draft import Draft

__all__ = ["page", "sample"]

_PIPELINES = {
    "transcription": 'transcribe = nest.pipeline("{name}")\nprint(transcribe("talk.mp3").text)',
    "text-generation": 'generate = nest.pipeline("{name}")\nprint(generate("Once upon a time"))',
    "sentence-embedding": 'embed = nest.pipeline("{name}")\nprint(embed(["A cat sleeps.", "The kitten dozes."]).shape)',
    "fill-mask": 'fill = nest.pipeline("{name}")\nprint(fill("Paris is the [MASK] of France."))',
    "image-classification": 'classify = nest.pipeline("{name}")\nprint(classify("cat.jpg"))',
    "image-embedding": 'embed = nest.pipeline("{name}")\nprint(embed(["cat.jpg"]).shape)',
    "image-text-matching": 'match = nest.pipeline("{name}")\nprint(match("cat.jpg", ["a cat", "a dog"]))',
}


def page(draft: Draft) -> str:
    """The text of `README.md`."""
    model, generics = draft.manifest["model"], draft.manifest["generics"]
    sizes = ", ".join(
        f"{key} = {value}" for key, value in generics.items() if type(value) is int and key != "Batch"
    )
    parts = [
        f"# {model['title']}",
        "TODO: what it is for, in which languages or of which pictures, what it is good at and what not.",
        f"## Use\n\n```python\nimport nest\n\n{_use(draft)}\n```",
        "TODO: what a reader of this page would try first, with what comes out.",
        f"## Architecture\n\nThe definition is that of the family {model['family']}, with {sizes}.",
        "TODO: what differs from the family's other models, and what surprises.",
        f"## Numerics\n\nTODO: what `nest verify {model['name']}` measured.",
        f"## Provenance\n\n{_provenance(draft)}",
        "TODO: who trained it, on what, from which model, described where.",
    ]
    return "\n\n".join(parts) + "\n"


def _use(draft: Draft) -> str:
    kind = draft.manifest.get("task", {}).get("kind")
    if kind in _PIPELINES:
        return _PIPELINES[kind].format(name=draft.name)
    weights = "" if draft.manifest.get("weights") else ", weights=None"
    return f'model = nest.load("{draft.name}"{weights})\nprint(model)'


def _provenance(draft: Draft) -> str:
    weights = draft.manifest.get("weights")
    if weights is None:
        return "There are no weights yet."
    if "directory" in weights:
        return "Weights and configuration are those of a folder of one machine, pinned by size and SHA-256."
    return (
        f"Weights and configuration are those of `{weights['repo']}` on the Hugging Face Hub at commit\n"
        f"{weights['revision']}, pinned by size and SHA-256; licence {draft.manifest['model']['license']}."
    )


def sample(draft: Draft) -> dict[str, Any]:
    """The content of `samples.json`."""
    kind = draft.manifest.get("task", {}).get("kind") or "none"
    return {
        "kind": kind,
        "note": "TODO: an input, what came out, and what the reference library gave for it.",
    }
