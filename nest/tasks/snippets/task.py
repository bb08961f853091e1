"""The task of an entry: the extras it needs, the call in Python, and the commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping

from nest.backends.installed import BACKENDS
from nest.tasks._kinds import KINDS
from nest.tasks.snippets.subject import Subject

__all__ = ["AUDIO", "PICTURE", "commands", "installs", "leaving", "masked", "task_code"]

AUDIO, PICTURE = "talk.mp3", "photo.jpg"
"""The reader's own files."""

QUESTION = "What is the capital of France?"
OPENING = "The printing press changed Europe because"
SENTENCES = ("A cat sleeps in the sun.", "The kitten is dozing.")
CAPTIONS = ("a photo of a cat", "a photo of a dog")


def installs(subject: Subject, backend: str) -> str:
    """The extras of `nest-zoo` that the task needs on a backend: `onnx,audio`."""
    own = KINDS[subject.kind].extras if subject.kind in KINDS else ()
    return ",".join([BACKENDS[backend].extra or "", *own]).strip(",")


def masked(subject: Subject) -> str:
    """A text with one token of the checkpoint's own for a blank."""
    table = subject.entry.manifest.tokenizer
    return f"Paris is the {(table.mask if table else None) or '[MASK]'} of France."


def task_code(subject: Subject) -> str:
    """Python that does the job once and prints what comes; empty for an entry without a task."""
    if subject.kind not in _CALLS:
        return ""
    pipeline = f"nest.pipeline({subject.arguments(backend='torch' if subject.half else None)})"
    lines = _CALLS[subject.kind](subject, pipeline)
    return "\n".join(["import nest", "", *lines])


def commands(subject: Subject) -> list[tuple[str, str]]:
    """(command, what it does), for a terminal."""
    if subject.kind not in _CALLS:
        return []
    name, trust = shlex.quote(subject.name), "" if subject.entry.trusted else " --trust-source"
    options = (" --backend torch" if subject.half else "") + trust
    found = [(f"nest run {name} {_input(subject)}{options}", _RUNS[subject.kind])]
    if subject.entry.samples:
        found.append((f"nest run {name}{options}", "its own sample, beside what is expected"))
    if subject.entry.manifest.chat is not None:
        found.append((f"nest chat {name}{options}", "a conversation"))
    if subject.entry.trusted and subject.entry.manifest.weights is not None:
        found.insert(0, (f"nest pull {name}", "fetch and verify; --offline works then"))
    return found


def leaving(subject: Subject) -> list[tuple[str, str]]:
    """(command, what it writes): the model for those who do not have nest."""
    name, trust = shlex.quote(subject.name), "" if subject.entry.trusted else " --trust-source"
    dtype = " --dtype f32" if subject.half else ""
    folder = f"{subject.entry.name}-onnx"
    runner = ", and run.py, which transcribes" if subject.kind == "transcription" else ""
    return [
        (f"nest export {name} {folder} --format onnx{dtype}{trust}", f"graphs and weights{runner}"),
        (f"nest eject {name} -o model.py{trust}", "one file of PyTorch; --backend nnx for Flax"),
    ]


def _input(subject: Subject) -> str:
    kind = subject.kind
    if kind == "transcription":
        return AUDIO
    if kind == "text-generation":
        return f'"{_prompt(subject)}"'
    if kind == "sentence-embedding":
        return " ".join(f'"{text}"' for text in SENTENCES)
    if kind == "fill-mask":
        return f'"{masked(subject)}"'
    if kind == "image-text-matching":
        return " ".join([*(f'--text "{text}"' for text in CAPTIONS), PICTURE])
    return PICTURE


def _prompt(subject: Subject) -> str:
    return OPENING if subject.entry.manifest.chat is None else QUESTION


def _transcribed(subject: Subject, pipeline: str) -> list[str]:
    return [f'print({pipeline}("{AUDIO}").text)']


def _generated(subject: Subject, pipeline: str) -> list[str]:
    if subject.entry.manifest.chat is None:
        return [f'print({pipeline}("{OPENING}", max_tokens=40).text)']
    return [f"write = {pipeline}", f'print(write.chat("{QUESTION}", max_tokens=64).text)']


def _embedded(subject: Subject, pipeline: str) -> list[str]:
    texts = ", ".join(f'"{text}"' for text in SENTENCES)
    return [
        f"embed = {pipeline}",
        f"vectors = embed([{texts}]){subject.note('embed', B=2)}",
        "print(embed.similarity(vectors).round(2))",
    ]


def _filled(subject: Subject, pipeline: str) -> list[str]:
    return [f'print({pipeline}("{masked(subject)}").text)']


def _classified(subject: Subject, pipeline: str) -> list[str]:
    return [f'for found in {pipeline}("{PICTURE}", top=3):', '    print(f"{found.score:.3f} {found.label}")']


def _pictured(subject: Subject, pipeline: str) -> list[str]:
    return [
        f"embed = {pipeline}",
        f'vectors = embed(["{PICTURE}"]){subject.note("embed_image", B=1)}',
        "print(vectors.shape)",
    ]


def _matched(subject: Subject, pipeline: str) -> list[str]:
    texts = ", ".join(f'"{text}"' for text in CAPTIONS)
    return [
        f"match = {pipeline}",
        f"texts = [{texts}]",
        f'print(match("{PICTURE}", texts))  # a probability of each',
    ]


_CALLS: Mapping[str, Callable[[Subject, str], list[str]]] = {
    "transcription": _transcribed,
    "text-generation": _generated,
    "sentence-embedding": _embedded,
    "fill-mask": _filled,
    "image-classification": _classified,
    "image-embedding": _pictured,
    "image-text-matching": _matched,
}

_RUNS = {
    "transcription": "what a recording says",
    "text-generation": "what comes next",
    "sentence-embedding": "how alike texts are",
    "fill-mask": "what may stand there",
    "image-classification": "what a picture shows",
    "image-embedding": "a picture's vector",
    "image-text-matching": "which text goes with a picture",
}
