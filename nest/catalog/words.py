"""What tasks are called for people."""

from __future__ import annotations

__all__ = ["TASKS", "task_words"]

TASKS = {
    "transcription": "speech to text",
    "text-generation": "text and chat",
    "sentence-embedding": "sentences to vectors",
    "fill-mask": "fill in a word",
    "image-classification": "pictures to labels",
    "image-embedding": "pictures to vectors",
    "image-text-matching": "pictures and texts",
}
"""In the order in which the catalog shows them."""


def task_words(kind: str | None) -> str:
    """`speech to text` for `transcription`; a kind that has no words is said as it is written."""
    return "no task" if kind is None else TASKS.get(kind, kind.replace("-", " "))
