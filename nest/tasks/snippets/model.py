"""The model itself on a backend, as a user of that framework writes it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from nest.tasks.snippets.encoders import blanks, sentences
from nest.tasks.snippets.frameworks import jax_code, nnx_code, onnx_code, torch_code
from nest.tasks.snippets.job import Job
from nest.tasks.snippets.pictures import classes, matches, vectors
from nest.tasks.snippets.speech import speech
from nest.tasks.snippets.subject import Subject
from nest.tasks.snippets.text import text

__all__ = ["BACKENDS", "model_code"]

_JOBS: Mapping[str, Callable[[Subject], Job]] = {
    "transcription": speech,
    "text-generation": text,
    "sentence-embedding": sentences,
    "fill-mask": blanks,
    "image-classification": classes,
    "image-embedding": vectors,
    "image-text-matching": matches,
}

BACKENDS: Mapping[str, Callable[[Subject, Job], Iterable[str]]] = {
    "torch": torch_code,
    "jax": jax_code,
    "nnx": nnx_code,
    "onnx": onnx_code,
}
"""In the order in which they are shown."""


def model_code(subject: Subject, backend: str) -> str:
    """Python that loads the model, calls its entries with inputs of the task, and does what the framework is for.

    Shapes stand in comments behind what has them, `[1, 1500, 384]`; a letter is a size that the input decides. An
    entry whose task nest does not know has no code.

    Raises:
        ManifestError: the entry lies outside of the zoo: its shapes are known by running its definition.
    """
    make = _JOBS.get(subject.kind)
    lines = "\n".join(BACKENDS[backend](subject, make(subject))) if make else ""
    return re.sub("\n{4,}", "\n\n\n", lines)
