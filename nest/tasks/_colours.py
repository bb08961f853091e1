"""Pictures of every mode, and arrays, as three channels of 8 bits."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest.errors import InputError

__all__ = ["as_rgb", "from_array"]

Array = NDArray[Any]


def as_rgb(image: Any, name: str) -> Any:
    """A PIL image of any mode in mode RGB.

    Pillow's own conversion cuts 16-bit levels off at 255; here they are scaled.

    Raises:
        InputError: its levels are floats or wider integers, of which nothing says what white is.
    """
    if image.mode == "RGB":
        return image
    if image.mode.startswith("I;16"):
        pil = need("PIL.Image", extra="vision", purpose="read pictures")
        return pil.fromarray(from_array(np.asarray(image).astype(np.uint16)))
    if image.mode in ("I", "F"):
        levels = np.asarray(image)
        if image.mode == "I" and levels.size and levels.min() >= 0 and levels.max() < 65536:
            pil = need("PIL.Image", extra="vision", purpose="read pictures")
            return pil.fromarray(from_array(levels.astype(np.uint16)))
        raise InputError(
            f"The levels of {name} are {'floats' if image.mode == 'F' else 'wide integers'} "
            f"(mode {image.mode}, {levels.min()} to {levels.max()}), and nothing says which of them is white. Pass an "
            f"array of floats in [0, 1]."
        )
    if image.mode == "P" and isinstance(image.info.get("transparency"), bytes):
        image = image.convert("RGBA")  # the palette's own transparency, which Pillow warns of
    return image.convert("RGB")


def from_array(array: Array) -> NDArray[np.uint8]:
    """An array as uint8 [H, W, 3].

    Args:
        array: [H, W], [H, W, 1], [H, W, 3] or [H, W, 4]; uint8, uint16, bool, or floats in [0, 1].

    Raises:
        InputError: it has another shape, dtype or range.
    """
    if array.ndim == 2:
        array = array[:, :, None]
    if array.ndim != 3 or array.shape[2] not in (1, 3, 4):
        channels_first = array.ndim == 3 and array.shape[0] in (1, 3, 4)
        hint = " Its channels come first: pass array.transpose(1, 2, 0)." if channels_first else ""
        raise InputError(
            f"A picture as an array is [height, width], or has 1, 3 or 4 channels as its third axis; this one has the "
            f"shape {list(array.shape)}.{hint}"
        )
    if 0 in array.shape:
        raise InputError(f"The array given has the shape {list(array.shape)}, and so no pixels.")
    levels = _levels(array[:, :, :3])
    return np.ascontiguousarray(np.broadcast_to(levels, (*levels.shape[:2], 3)))


def _levels(array: Array) -> NDArray[np.uint8]:
    """Levels of 8 bits."""
    if array.dtype == np.uint8:
        return array
    if array.dtype == np.bool_:
        return array.astype(np.uint8) * np.uint8(255)
    if array.dtype == np.uint16:
        return ((array.astype(np.uint32) + 128) // 257).astype(np.uint8)
    if array.dtype.kind != "f":
        raise InputError(
            f"The picture's levels are {array.dtype}; expected uint8, uint16, or floats in [0, 1]. Convert them first, "
            f"for example with .astype('uint8')."
        )
    if not np.isfinite(array).all():
        raise InputError("The picture's levels are not all finite: some are NaN or infinite.")
    low, high = float(array.min()), float(array.max())
    if low < 0 or high > 1:
        raise InputError(
            f"The picture's levels are floats from {low:.4g} to {high:.4g}; expected them in [0, 1]. Levels up to 255 "
            f"are integers: .astype('uint8')."
        )
    return np.asarray(np.rint(array * 255), dtype=np.uint8)
