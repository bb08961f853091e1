"""Vectors of pictures."""

from __future__ import annotations

from typing import Any

from nest.tasks._image_settings import pixel_settings
from nest.tasks.embed_image import ImageEmbedder

__all__ = ["make"]


def make(model: Any, plan: str, **fetch_options: Any) -> ImageEmbedder:
    """The embedder of a model."""
    return ImageEmbedder(model, pixel_settings(model.entry), plan=plan)
