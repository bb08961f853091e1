"""Pictures and texts in, how well each goes with each out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._timing import timed
from nest.backends.installed import compiles_shapes
from nest.errors import InputError
from nest.tasks._image_batches import BATCH, ImageEncoder, listed
from nest.tasks.captions import CaptionTokenizer
from nest.tasks.image import ImageSource, is_one
from nest.tasks.pixels import PixelSettings
from nest.tasks.ragged import batches
from nest.tasks.text import checked_texts

__all__ = ["ImageTextMatcher"]

Vectors = NDArray[np.float32]

TEXTS = 32
BUDGET = 2048


class ImageTextMatcher:
    """An image-text pipeline over one model's weights; threads may share it.

    Args:
        model: with the entries `embed_image`, `embed_text` and `match`. settings: of its pictures.
        tokenizer: of its texts.
    """

    def __init__(
        self, model: Any, settings: PixelSettings, tokenizer: CaptionTokenizer, *, plan: str = "exact"
    ) -> None:
        self.encoder = ImageEncoder(model, settings, plan=plan)
        self.model = model
        self.tokenizer = tokenizer

    @timed("match")
    def __call__(
        self,
        images: ImageSource | Sequence[ImageSource],
        texts: str | Iterable[str],
        *,
        batch_size: int = BATCH,
    ) -> Vectors:
        """The probability of each text for each picture: float32 [pictures, texts], or [texts] of one picture.

        A model that was trained to choose among texts (CLIP) gives probabilities that sum to one over the texts; one
        that was trained on pairs (SigLIP) judges each pair by itself.

        Args:
            images: one picture or several, of any sizes; see `nest.tasks.image.load`.
            texts: what may be on them, at least one.
            batch_size: pictures that are computed together.

        Raises:
            InputError: a picture cannot be read, or something is no text.

        Warns:
            TruncatedTextWarning: some texts are longer than the model reads.
        """
        words = self.embed_texts(texts)
        pictures = self.encoder.rows("embed_image", listed(images), batch_size)
        found = self.encoder.run("match", pictures, np.atleast_2d(words))
        return found[0] if is_one(images) else found

    def embed_images(
        self, images: ImageSource | Sequence[ImageSource], *, batch_size: int = BATCH
    ) -> Vectors:
        """Vectors of length one: float32 [pictures, D], or [D] of one picture."""
        found = self.encoder.rows("embed_image", listed(images), batch_size)
        return found[0] if is_one(images) else found

    def embed_texts(self, texts: str | Iterable[str]) -> Vectors:
        """Vectors of length one: float32 [texts, D], or [D] of one text that is in no list."""
        given = checked_texts(texts)
        if not given:
            raise InputError("No text was given: pass one, or a list of at least one.")
        ids = self.tokenizer(given)
        filled = self.tokenizer.pad is not None
        vectors: Vectors | None = None
        few_shapes = compiles_shapes(getattr(self.model, "backend", None))
        for part in batches(
            ids, batch_size=TEXTS, budget=BUDGET, longest=self.tokenizer.max_tokens, few_shapes=few_shapes
        ):
            # Where every text is filled up, the model sees all of it, and takes no lengths.
            inputs = [part.tokens] if filled else [part.tokens, part.lengths]
            made = self.encoder.run("embed_text", *inputs)
            if vectors is None:
                vectors = np.empty((len(ids), made.shape[1]), np.float32)
            vectors[list(part.rows)] = made[: len(part.rows)]
        assert vectors is not None
        return vectors[0] if isinstance(texts, str) else vectors
