"""From a picture to what a checkpoint was trained on: resized, cut to its middle, rescaled, normalized."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest._timing import timed

__all__ = ["PixelSettings"]

_FILTERS = {"nearest": "NEAREST", "bilinear": "BILINEAR", "bicubic": "BICUBIC", "lanczos": "LANCZOS"}


@dataclass(frozen=True)
class PixelSettings:
    """How a checkpoint wants its pictures. Sizes are in pixels, (height, width).

    Attributes:
        resize: the shorter side, the longer one in proportion and rounded down; or both sides.
        resample: the filter of Pillow: `"nearest"`, `"bilinear"`, `"bicubic"`, `"lanczos"`.
        crop: the middle that is kept of what was resized; all of it where it is None.
        rescale: what levels from 0 to 255 are multiplied by.
        mean, std: of each channel, taken away and divided by after that.
    """

    resize: int | tuple[int, int]
    resample: str
    crop: tuple[int, int] | None = None
    rescale: float = 1 / 255
    mean: tuple[float, ...] = (0.0, 0.0, 0.0)
    std: tuple[float, ...] = (1.0, 1.0, 1.0)

    @property
    def size(self) -> tuple[int, int] | None:
        """What comes out; None where it depends on the picture."""
        return self.crop or (self.resize if isinstance(self.resize, tuple) else None)

    def to(self, height: int, width: int) -> PixelSettings:
        """The same for a model of another size: what is cut off stays the same part of the picture."""
        if self.size in (None, (height, width)):
            return self
        if self.crop is None or isinstance(self.resize, tuple):
            return replace(self, resize=(height, width), crop=None)
        larger = max(height / self.crop[0], width / self.crop[1])
        return replace(self, resize=round(self.resize * larger), crop=(height, width))

    @timed("pixels")
    def __call__(self, picture: Any) -> NDArray[np.float32]:
        """A `PIL.Image.Image` of mode RGB as float32 [3, height, width].

        The arithmetic is the reference library's, in its order: levels times `rescale` in double precision and rounded
        to f32, then minus the mean and over the deviation, each rounded to f32.
        """
        filters = need("PIL.Image", extra="vision", purpose="resize pictures").Resampling
        height, width = self._resized(picture.height, picture.width)
        resized = picture.resize((width, height), resample=getattr(filters, _FILTERS[self.resample]))
        levels = _middle(np.asarray(resized), self.crop)
        scaled = (levels.astype(np.float64) * self.rescale).astype(np.float32)
        mean, std = np.array(self.mean, np.float32), np.array(self.std, np.float32)
        return np.ascontiguousarray(((scaled - mean) / std).transpose(2, 0, 1), dtype=np.float32)

    def _resized(self, height: int, width: int) -> tuple[int, int]:
        if isinstance(self.resize, tuple):
            return self.resize
        short, long = sorted((height, width))
        longer = int(self.resize * long / short)
        return (longer, self.resize) if width <= height else (self.resize, longer)


def _middle(levels: NDArray[np.uint8], crop: tuple[int, int] | None) -> NDArray[np.uint8]:
    """The middle of [H, W, 3]; black around a picture that is smaller."""
    if crop is None:
        return levels
    height, width = crop
    short = [max(0, want - have) for want, have in zip(crop, levels.shape[:2], strict=True)]
    if any(short):
        # As the reference library: half of what is missing, rounded up, comes before.
        around = [((n + 1) // 2, n // 2) for n in short]
        levels = np.pad(levels, [*around, (0, 0)])
    top, left = (levels.shape[0] - height) // 2, (levels.shape[1] - width) // 2
    return levels[top : top + height, left : left + width]
