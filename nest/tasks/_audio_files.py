"""Open what holds an encoded recording: a path, bytes, a file object, standard input."""

from __future__ import annotations

import codecs
import io
import os
import shutil
import tempfile
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Protocol

from nest.errors import InputError

__all__ = ["BinaryFile", "EncodedFile", "open_encoded"]

IN_MEMORY = 64 * 2**20
"""Bytes of a pipe that are held in memory; what is longer goes to a temporary file."""


class BinaryFile(Protocol):
    """An object with a `read` that returns bytes."""

    def read(self) -> bytes: ...


@dataclass(frozen=True)
class EncodedFile:
    """An encoded recording.

    Attributes:
        name: what messages call it.
        file: its content, to be read and sought in; positioned at the beginning.
        path: where it lies, if it is a file with a name.
        size: bytes.
        start: its first bytes, up to 512.
    """

    name: str
    file: IO[bytes]
    path: Path | None
    size: int
    start: bytes


def open_encoded(source: Any, closing: ExitStack) -> EncodedFile:
    """Return the encoded recording `source`: a path, bytes, or a binary file object, read from where it stands.

    Args:
        source: see above. What cannot seek, such as a pipe, is copied.
        closing: closes what is opened here.

    Raises:
        InputError: a missing or unreadable file, a directory or device, an empty file, text, or no source at all.
    """
    name, file, path = _opened(source, closing)
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    start = file.read(512)
    file.seek(0)
    if size == 0:
        raise InputError(f"There is no audio in {name}: it is empty (0 bytes).")
    if _is_text(start):  # a decoder would look for frames in it, or open what a playlist names
        raise InputError(
            f"No audio could be decoded from {name} ({size} bytes): it holds text. Expected a wav, flac, mp3, ogg, "
            "m4a, mp4, mkv or webm file."
        )
    return EncodedFile(name, file, path, size, start)


def _opened(source: Any, closing: ExitStack) -> tuple[str, IO[bytes], Path | None]:
    if isinstance(source, str | os.PathLike):
        if not os.fspath(source):
            raise InputError("The path of the audio file is empty.")
        file, path = _open_path(Path(source), closing)
        return f"'{os.fspath(source)}'", file, path
    if isinstance(source, bytes | bytearray | memoryview):
        return "the bytes given", io.BytesIO(source), None
    if not callable(getattr(source, "read", None)):
        raise InputError(
            f"Audio cannot be read from a {type(source).__name__}. Pass the path of a file, its bytes, a "
            "binary file object, or a numpy array of samples."
        )
    if isinstance(source, io.TextIOBase):
        raise InputError("The audio file object is open in text mode. Open it with mode 'rb'.")
    name = getattr(source, "name", "")
    shown = "standard input" if name == "<stdin>" else f"the file object {name!r}".removesuffix(" ''")
    return shown, _copied(source, closing), None


def _open_path(path: Path, closing: ExitStack) -> tuple[IO[bytes], Path | None]:
    try:
        if path.is_dir():
            raise InputError(f"'{path}' is a directory. Pass the path of one audio file.")
        if path.is_char_device() or path.is_block_device():  # it may have no end
            raise InputError(f"'{path}' is a device. Pass the path of one audio file.")
        file = closing.enter_context(path.open("rb"))
        return (file, path) if path.is_file() else (_copied(file, closing), None)
    except FileNotFoundError:
        raise InputError(
            f"There is no file '{path}'. Check the path; the working directory is '{Path.cwd()}'."
        ) from None
    except (OSError, ValueError) as error:  # ValueError: a null byte
        name = str(path).replace("\0", "?")
        shown = name if len(name) <= 200 else f"{name[:197]}..."
        raise InputError(
            f"The audio file '{shown}' cannot be read: {getattr(error, 'strerror', None) or error}."
        ) from error


def _copied(source: Any, closing: ExitStack) -> IO[bytes]:
    """What is left of a file object, in one that can seek: decoders do, and pipes cannot."""
    copy = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - `closing` closes it
    closing.callback(copy.close)
    try:
        shutil.copyfileobj(source, copy)
    except TypeError:  # of a `read` without a size, or one that gives text
        content = source.read()
        if isinstance(content, str):
            raise InputError("The audio file object is open in text mode. Open it with mode 'rb'.") from None
        copy.write(content)
    return copy


def _is_text(start: bytes) -> bool:
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(start)  # the last character may be cut
    except UnicodeDecodeError:
        return False
    return all(c.isprintable() or c.isspace() for c in text)
