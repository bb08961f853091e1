"""Decode by libsndfile: wav, flac, ogg and what else is plain."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from importlib.util import find_spec
from typing import Any

from nest._optional import need
from nest.errors import InputError
from nest.tasks._audio_files import EncodedFile
from nest.tasks._audio_readers import Frames, warn_damaged
from nest.tasks._samples import MAX_CHANNELS, narrowed, refuse_infinite

__all__ = ["NotDecodedError", "SoundFileReader"]

BLOCK = 1 << 14
"""Frames that are read at once: where a file is damaged, the whole blocks before are used."""


class NotDecodedError(InputError):
    """libsndfile does not know the form of a file."""


class SoundFileReader:
    """The frames of one file; see `Reader`."""

    def __init__(self, encoded: EncodedFile, closing: ExitStack) -> None:
        self._library: Any = need("soundfile", extra="audio", purpose="read audio files")
        self._encoded = encoded
        self.name = encoded.name
        file = closing.enter_context(self._open())
        self.rate = int(file.samplerate)
        self.channels = int(file.channels)
        self._frames = int(file.frames)
        self._missing = _missing_bytes(file.extra_info)
        self.seconds: float | None = self._frames / self.rate if self.rate else None
        if self._frames == 0:
            raise InputError(
                f"There is no audio in {self.name}: its header is valid and it holds no samples."
            )
        if file.channels > MAX_CHANNELS:
            raise InputError(
                f"{self.name} has {file.channels} channels; at most {MAX_CHANNELS} are expected."
            )

    def _open(self) -> Any:
        encoded = self._encoded
        target: Any = encoded.file
        if encoded.path is not None:
            # A name as the system has it: the library would encode text more strictly than the system wrote it.
            target = os.fsencode(encoded.path) if os.name == "posix" else str(encoded.path)
        else:
            encoded.file.seek(0)
        try:
            return self._library.SoundFile(target)
        except (self._library.SoundFileError, TypeError) as error:  # TypeError: it takes *.raw for headerless
            raise NotDecodedError(
                f"No audio could be decoded from {self.name} ({encoded.size} bytes): {_reason(error)}."
            ) from error

    def blocks(self, first: int) -> Iterator[Frames]:
        """See `Reader.blocks`; warns where the file is damaged or ends before what its header says."""
        at, failure = 0, ""
        with self._open() as file:
            at = file.seek(min(first, self._frames)) if first else 0
            wide = (
                file.subtype == "DOUBLE"
            )  # read as they are, to tell what is too large from what is infinite
            while not failure:
                try:
                    frames = file.read(BLOCK, dtype="float64" if wide else "float32", always_2d=True)
                except self._library.SoundFileError as error:
                    failure = _reason(error)
                    break
                if not len(frames):
                    break
                refuse_infinite(frames, self.name, at)
                yield narrowed(frames, self.name, at) if wide else frames
                at += len(frames)
        if failure and find_spec("av") is not None:  # which gives all that is whole, and goes on after damage
            yield from self._by_libav(at)
        else:
            self._judge(at, failure)

    def _by_libav(self, first: int) -> Iterator[Frames]:
        from nest.tasks._libav import LibavReader

        with ExitStack() as closing:
            yield from LibavReader(self._encoded, closing).blocks(first)

    def _judge(self, count: int, failure: str) -> None:
        what = ""
        if failure or count < self._frames:
            what = f"its header says {self._frames / self.rate:.1f} s, and {failure or 'it ends before'}"
        elif self._missing:
            what = f"{self._missing} bytes of the samples that its header says are not there"
        if what and count == 0:
            raise InputError(f"No audio could be decoded from {self.name}: {what}.")
        if what:
            warn_damaged(
                f"{self.name} is damaged: {what}. The {count / self.rate:.1f} s up to there are used."
            )


def _missing_bytes(log: str) -> int:
    """How many bytes a wav file lacks, by the library's log of its header."""
    found = re.search(r"^data : (\d+) \(should be (\d+)\)", log or "", re.MULTILINE)
    if not found:
        return 0
    said, there = map(int, found.groups())
    # A writer to a pipe cannot know the length: it says nothing, or the largest number.
    return said - there if there < said < 0x7FFFFFFF else 0


def _reason(error: Exception) -> str:
    text = str(getattr(error, "error_string", "") or error).strip().rstrip(".")
    return text[:1].lower() + text[1:]
