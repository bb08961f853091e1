"""Whole jobs: a recording, a text or a picture in, an answer for a person out."""

from __future__ import annotations

from nest.tasks._pipeline import pipeline
from nest.tasks.embed import Embedder
from nest.tasks.fill import Choice, Filled, MaskFiller
from nest.tasks.text import TruncatedTextWarning
from nest.tasks.transcribe import Segment, Transcriber, Transcript

__all__ = [
    "Choice",
    "Embedder",
    "Filled",
    "MaskFiller",
    "Segment",
    "Transcriber",
    "Transcript",
    "TruncatedTextWarning",
    "pipeline",
]
