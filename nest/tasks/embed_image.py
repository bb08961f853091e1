"""A picture in, a vector of what it shows out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.tasks._image_batches import BATCH, ImageEncoder, listed
from nest.tasks.image import ImageSource, is_one
from nest.tasks.pixels import PixelSettings

__all__ = ["ImageEmbedder"]


class ImageEmbedder:
    """An image-embedding pipeline over one model's weights; threads may share it.

    Args:
        model: whose `embed_image` gives a vector for each picture. settings: of its pictures.
    """

    def __init__(self, model: Any, settings: PixelSettings, *, plan: str = "exact") -> None:
        self.encoder = ImageEncoder(model, settings, plan=plan)
        self.model = model

    @timed("embed")
    def __call__(
        self, images: ImageSource | Sequence[ImageSource], *, batch_size: int = BATCH
    ) -> NDArray[np.float32]:
        """The vector of a picture, float32 [D]; of a list of pictures, [pictures, D].

        Raises:
            InputError: a picture cannot be read.
        """
        found = self.encoder.rows("embed_image", listed(images), batch_size)
        return found[0] if is_one(images) else found

    def similarity(self, first: NDArray[np.float32], second: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each vector of `first` [N, D] with each of `second` [M, D]: float32 [N, M]."""
        return (_unit(first) @ _unit(second).T).astype(np.float32)


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.asarray(vectors, np.float64))
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12))
