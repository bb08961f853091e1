"""Whole jobs: a recording, a text or a picture in, an answer for a person out."""

from __future__ import annotations

from nest.tasks._pipeline import pipeline
from nest.tasks.transcribe import Segment, Transcriber, Transcript

__all__ = ["Segment", "Transcriber", "Transcript", "pipeline"]
