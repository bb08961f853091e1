"""Whole jobs: a recording, a text or a picture in, an answer for a person out."""

from __future__ import annotations

from nest.tasks._pipeline import pipeline
from nest.tasks._streaming import Stream
from nest.tasks._text_rows import Generation
from nest.tasks.classify_image import ImageClassifier, Label
from nest.tasks.embed import Embedder
from nest.tasks.embed_image import ImageEmbedder
from nest.tasks.fill import Choice, Filled, MaskFiller
from nest.tasks.generate import Generator
from nest.tasks.match import ImageTextMatcher
from nest.tasks.text import TruncatedTextWarning
from nest.tasks.transcribe import Segment, Transcriber, Transcript, TranscriptStream
from nest.tasks.words import Word

__all__ = [
    "Choice",
    "Embedder",
    "Filled",
    "Generation",
    "Generator",
    "ImageClassifier",
    "ImageEmbedder",
    "ImageTextMatcher",
    "Label",
    "MaskFiller",
    "Segment",
    "Stream",
    "Transcriber",
    "Transcript",
    "TranscriptStream",
    "TruncatedTextWarning",
    "Word",
    "pipeline",
]
