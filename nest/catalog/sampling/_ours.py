"""Make the outputs of an entry's samples: each input through its pipeline, and the reference library's beside."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nest
from nest.errors import InputError
from nest.registry import Entry, Sample
from nest.registry.samples import shipped
from nest.tasks import pipeline
from nest.weights.fetch import fetch

__all__ = ["answer", "measure", "write"]

MOST_TOKENS = 64
"""Where a text is cut if its sample does not say."""

WIDTH = 116

References = Callable[[Sample], dict[str, Any]]


def measure(
    entry: Entry,
    *,
    backend: str | None = None,
    references: References | None = None,
    library: str | None = None,
    local_files_only: bool = False,
) -> list[Sample]:
    """The entry's samples with the outputs that its weights give here; what is not an output stays.

    Args:
        entry: whose samples.
        backend: what computes; chosen as `nest.pipeline` does if left out.
        references: gives the reference library's outputs of a sample, by field. Without it those that are in the
            samples are left out, since they may be of other weights.
        library: its name and version.
        local_files_only: never ask the network.

    Raises:
        InputError: the entry has no sample, or one without its file.
        FetchError, WeightsError: the weights cannot be had.
    """
    if not entry.samples:
        raise InputError(
            f"'{entry.name}' has no sample: write an input into {entry.directory / 'samples.json'}."
        )
    origin = weights_note(entry, local_files_only=local_files_only)
    task = pipeline(str(entry.directory), backend=backend, local_files_only=local_files_only)
    stamp: dict[str, Any] = {
        "date": datetime.now(UTC).date().isoformat(),
        "backend": task.model.backend,
        "nest": nest.__version__,
        "weights": origin,
    }
    if references is not None:
        stamp["reference"] = library
    made = []
    for sample in entry.samples:
        kept = {n: v for n, v in sample.model_dump().items() if not _is_output(n)}
        found = answer(task, entry, sample) | (references(sample) if references else {})
        made.append(Sample.model_validate({**kept, **found, "computed": stamp}))
    return made


def weights_note(entry: Entry, *, local_files_only: bool = False) -> str:
    """Where the bytes of the entry's weights came from, and whether they are the publisher's own."""
    got = fetch(entry, local_files_only=local_files_only)
    if got.notes:
        return " ".join(note.partition(": ")[2] or note for note in got.notes)
    return f"the publisher's bytes, by digest, from {', '.join(dict.fromkeys(got.origins.values()))}"


def answer(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    """What a pipeline makes of a sample, by the sample's fields.

    Raises:
        InputError: the sample lacks its input, or is of a kind that has no output here.
    """
    if sample.kind not in _ANSWERS:
        raise InputError(
            f"A sample of kind '{sample.kind}' cannot be measured: its output is no text, label or table. Measured are "
            f"{', '.join(_ANSWERS)}."
        )
    return _ANSWERS[sample.kind](task, entry, sample)


def _transcription(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    made = task(_file(entry, sample.audio), word_timestamps=bool(task.rules.alignment_heads))
    words = [word for segment in made.segments for word in segment.words]
    timed = [{n: v if n == "text" else round(v, 3) for n, v in asdict(word).items()} for word in words]
    return {"text": made.text} | ({"words": timed} if timed else {})


def _generation(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    prompt, most = _given(entry, sample.prompt, "prompt"), sample.max_tokens or MOST_TOKENS
    made = task.chat(prompt, max_tokens=most) if sample.chat else task(prompt, max_tokens=most)
    return {"text": made.text, "max_tokens": most, "finish": made.finish}


def _embedding(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    cosines = task.similarity(_given(entry, sample.texts, "texts"))
    return {"matrix": [[round(float(x), 6) for x in row] for row in cosines]}


def _masks(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    made = task(_given(entry, sample.prompt, "prompt"))
    masks = [
        [{"token": c.token, "probability": round(c.probability, 6)} for c in mask] for mask in made.masks
    ]
    return {"text": made.text, "masks": masks}


def _labels(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    found = task(_file(entry, sample.image))
    return {"labels": [{"label": f.label, "score": round(f.score, 6)} for f in found]}


def _scores(task: Any, entry: Entry, sample: Sample) -> dict[str, Any]:
    found = task(_file(entry, sample.image), _given(entry, sample.texts, "texts"))
    return {"scores": [round(float(x), 6) for x in found]}


_ANSWERS: dict[str, Callable[[Any, Entry, Sample], dict[str, Any]]] = {
    "transcription": _transcription,
    "text-generation": _generation,
    "sentence-embedding": _embedding,
    "fill-mask": _masks,
    "image-classification": _labels,
    "image-text-matching": _scores,
}


def _is_output(name: str) -> bool:
    outputs = ("text", "words", "matrix", "labels", "scores", "masks")
    return name in ("computed", "finish") or name.removeprefix("reference_") in outputs


def _file(entry: Entry, name: str | None) -> Path:
    given: str = _given(entry, name, "audio or image")
    found = shipped(entry.directory, given)
    if found is None:
        raise InputError(
            f"The sample '{given}' of '{entry.name}' is neither in its folder nor shipped with nest."
        )
    return found


def _given(entry: Entry, value: Any, key: str) -> Any:
    if value is None:
        raise InputError(
            f"A sample of '{entry.name}' has no {key}: {entry.directory / 'samples.json'} must say."
        )
    return value


def write(entry: Entry, samples: list[Sample]) -> Path:
    """Put samples into the entry's `samples.json`: written beside it, then renamed."""
    file = entry.directory / "samples.json"
    facts = [sample.model_dump(mode="json", exclude_none=True, exclude_defaults=True) for sample in samples]
    handle, temporary = tempfile.mkstemp(dir=file.parent, prefix=".samples.", suffix=".part")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(_json(facts[0] if len(facts) == 1 else facts) + "\n")
        Path(temporary).chmod(0o644)
        Path(temporary).replace(file)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return file


def _json(value: Any, indent: int = 0) -> str:
    """JSON for people: a part that fits stands on its line."""
    short = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list | dict) or (len(short) + indent <= WIDTH and not _is_sample(value)):
        return short
    pad = " " * (indent + 2)
    if isinstance(value, dict):
        rows = [f"{json.dumps(name)}: {_json(part, indent + 2)}" for name, part in value.items()]
        opening, closing = "{", "}"
    else:
        rows = [_json(part, indent + 2) for part in value]
        opening, closing = "[", "]"
    return f"{opening}\n{pad}" + f",\n{pad}".join(rows) + f"\n{' ' * indent}{closing}"


def _is_sample(value: Any) -> bool:
    return isinstance(value, dict) and "kind" in value
