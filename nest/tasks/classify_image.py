"""A picture in, the classes that it most likely shows out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.errors import InputError
from nest.tasks._image_batches import BATCH, ImageEncoder, listed
from nest.tasks.image import ImageSource, is_one
from nest.tasks.pixels import PixelSettings

__all__ = ["ImageClassifier", "Label"]


@dataclass(frozen=True)
class Label:
    """A class that a picture may show: its name, its probability, and its place among the model's classes."""

    label: str
    score: float
    index: int


class ImageClassifier:
    """An image-classification pipeline over one model's weights; threads may share it.

    Args:
        model: whose `forward` gives logits. settings: of its pictures. labels: the classes' names, in order.
    """

    def __init__(
        self, model: Any, settings: PixelSettings, labels: Sequence[str], *, plan: str = "exact"
    ) -> None:
        self.encoder = ImageEncoder(model, settings, plan=plan)
        self.model = model
        self.labels = list(labels)

    @timed("classify")
    def __call__(
        self, images: ImageSource | Sequence[ImageSource], *, top: int = 5, batch_size: int = BATCH
    ) -> list[Label] | list[list[Label]]:
        """The `top` likeliest classes of a picture, the likeliest first; of a list of pictures, a list of these.

        Args:
            images: one picture or several, of any sizes; see `nest.tasks.image.load`.
            top: how many classes; all of them where there are fewer.
            batch_size: pictures that are computed together.

        Raises:
            InputError: a picture cannot be read.
        """
        if top < 1:
            raise InputError(f"top is at least 1; came {top}.")
        found = [self._best(row, top) for row in self.logits(images, batch_size=batch_size)]
        return found[0] if is_one(images) else found

    def logits(
        self, images: ImageSource | Sequence[ImageSource], *, batch_size: int = BATCH
    ) -> NDArray[np.float32]:
        """Logits of every class: float32 [pictures, classes]."""
        return self.encoder.rows("forward", listed(images), batch_size)

    def _best(self, logits: NDArray[np.float32], top: int) -> list[Label]:
        likely = np.exp(logits.astype(np.float64) - logits.max())
        likely /= likely.sum()
        order = np.argsort(-likely, kind="stable")[:top]
        return [Label(self.labels[i], float(likely[i]), int(i)) for i in order]
