"""Read pictures from wherever people have them: upright, three channels, 8 bits each."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from nest._optional import need
from nest.errors import InputError
from nest.tasks._colours import as_rgb, from_array

__all__ = ["ImageSource", "Picture", "is_one", "load"]

ImageSource: TypeAlias = Any
"""The path of a file, its bytes, a binary file object, a `PIL.Image.Image`, or an array; see `load`."""

Picture: TypeAlias = Any
"""A `PIL.Image.Image` of mode RGB."""


def load(source: ImageSource) -> Picture:
    """Return the picture `source` as a `PIL.Image.Image` of mode RGB, turned as its camera says it was held.

    Args:
        source: the path of a file, its bytes, a binary file object (read from where it stands), a
            `PIL.Image.Image`, or an array [H, W], [H, W, 1], [H, W, 3] or [H, W, 4]: uint8, uint16, bool, or floats
            in [0, 1]. Files may be whatever the installed Pillow decodes; their content decides, not their name.

    Returns:
        The picture. Grey is the same in each channel; 16-bit levels are rounded to 8 bits; transparency is left out,
        as the reference library does, and what is under it is seen; of an animation the first frame is taken.

    Raises:
        InputError: a missing, unreadable or damaged file, something that is no picture, or an array of another shape,
            dtype or range.
        MissingDependencyError: Pillow is needed and not installed (extra `vision`).
    """
    pil = need("PIL.Image", extra="vision", purpose="read pictures")
    if isinstance(source, pil.Image):
        return _upright(lambda: source, "the picture given")
    if hasattr(source, "__array__") and not isinstance(source, memoryview):
        return pil.fromarray(from_array(_numbers(source)))
    name, content = _content(source)
    if not content:
        raise InputError(f"There is no picture in {name}: it is empty (0 bytes).")
    with warnings.catch_warnings():
        # A far too large picture is refused; what is odd in a file's metadata concerns nobody here.
        warnings.simplefilter("ignore")
        return _upright(lambda: pil.open(io.BytesIO(content)), f"{name} ({len(content)} bytes)")


def is_one(pictures: object) -> bool:
    """Whether this is one picture, not several: a list or tuple of pictures, or an array [N, H, W, C]."""
    return not isinstance(pictures, list | tuple) and getattr(pictures, "ndim", 0) != 4


def _upright(opened: Callable[[], Any], name: str) -> Picture:
    """Decode, turn, and convert."""
    pil = need("PIL.Image", extra="vision", purpose="read pictures")
    operations = need("PIL.ImageOps", extra="vision", purpose="read pictures")
    try:
        image = opened()
        image.load()
        turned = operations.exif_transpose(image)
        if 0 in turned.size:
            raise InputError(f"The picture in {name} has no pixels ({turned.width} by {turned.height}).")
        return as_rgb(turned, name)
    except InputError:
        raise
    except pil.DecompressionBombError as error:
        raise InputError(f"The picture in {name} is too large to be read: {_reason(error)}.") from error
    except pil.UnidentifiedImageError as error:
        raise InputError(
            f"No picture could be read from {name}: it is in no format that Pillow knows. Expected a jpeg, png or webp "
            f"file, or the like."
        ) from error
    except (
        Exception
    ) as error:  # decoders raise what they will on damaged files: OSError, SyntaxError, struct.error
        raise InputError(
            f"The picture in {name} is damaged or cut short: {_reason(error)}. Get the file anew, or save it again "
            f"with a program that opens it."
        ) from error


def _numbers(source: Any) -> NDArray[Any]:
    try:
        return np.asarray(source)
    except (TypeError, ValueError, RuntimeError) as error:  # of a tensor that trains, is sparse or elsewhere
        raise InputError(f"The array given cannot be read as numbers: {_reason(error)}.") from error


def _content(source: Any) -> tuple[str, bytes]:
    """What messages call `source`, and its bytes."""
    if isinstance(source, bytes | bytearray | memoryview):
        return "the bytes given", bytes(source)
    if isinstance(source, str | os.PathLike):
        if not os.fspath(source):
            raise InputError("The path of the picture is empty.")
        return f"'{os.fspath(source)}'", _read(Path(source))
    if not callable(getattr(source, "read", None)):
        raise InputError(
            f"A picture cannot be read from a {type(source).__name__}. Pass the path of a file, its bytes, a binary "
            "file object, a PIL image, or an array [H, W, 3]."
        )
    try:
        content = source.read()
    except (OSError, ValueError) as error:  # closed, or open for writing alone
        raise InputError(
            f"The picture's file object cannot be read ({str(error).rstrip('.')}). Open it with mode 'rb'."
        ) from error
    if isinstance(content, str):
        raise InputError("The picture's file object is open in text mode. Open it with mode 'rb'.")
    return f"the file object {getattr(source, 'name', '')!r}".removesuffix(" ''"), content


def _read(path: Path) -> bytes:
    try:
        if path.is_dir():
            raise InputError(f"'{path}' is a directory. Pass the path of one picture.")
        if path.is_char_device() or path.is_block_device():  # it may have no end
            raise InputError(f"'{path}' is a device. Pass the path of one picture.")
        return path.read_bytes()
    except FileNotFoundError:
        raise InputError(
            f"There is no file '{path}'. Check the path; the working directory is '{Path.cwd()}'."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        shown = str(path).replace("\0", "?")[:200]
        raise InputError(
            f"The picture '{shown}' cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _reason(error: Exception) -> str:
    text = " ".join((str(error) or type(error).__name__).split()).rstrip(".")
    return text[:1].lower() + text[1:]
