"""What tasks are called for people."""

from __future__ import annotations

__all__ = ["ALSO", "TASKS", "task_words"]

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

ALSO = {
    "transcription": "asr transcribe transcription subtitles captions recording video voice whisper",
    "text-generation": "llm language model generation assistant decoder",
    "sentence-embedding": "embedding embeddings similarity search retrieval semantic",
    "fill-mask": "masked language model encoder",
    "image-classification": "image classification vision",
    "image-embedding": "image embedding embeddings vision features",
    "image-text-matching": "zero-shot image text vision embedding search",
}
"""What else people call a task, for the search."""


def task_words(kind: str | None) -> str:
    """`speech to text` for `transcription`; a kind that has no words is said as it is written."""
    return "no task" if kind is None else TASKS.get(kind, kind.replace("-", " "))
