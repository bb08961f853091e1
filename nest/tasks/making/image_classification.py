"""Classes of pictures."""

from __future__ import annotations

from typing import Any

from nest.tasks._image_settings import labels, pixel_settings
from nest.tasks.classify_image import ImageClassifier

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> ImageClassifier:
    """The classifier of a model, with its classes' names."""
    settings = pixel_settings(model.entry)
    count = int(model.program.root.generics["Classes"])
    return ImageClassifier(model, settings, labels(model.entry, count, **fetch_options), plan=plan)
