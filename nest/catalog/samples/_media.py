"""Recordings and pictures of samples: where a page finds them, and what must be copied there."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from nest.registry import Entry, Sample
from nest.registry.samples import shipped

__all__ = ["Medium", "find_medium", "picture_size", "shared_media"]

SHARED = "media"
"""The folder below the catalog's assets of what many entries show, so that it is there once."""


@dataclass(frozen=True)
class Medium:
    """A file of a sample. `address` is how the entry's page names it; `shared` whether many entries may show it."""

    file: Path
    address: str
    shared: bool


def find_medium(entry: Entry, sample: Sample) -> Medium | None:
    """The file of a sample; None where it has none or it is not here."""
    name = sample.audio or sample.image
    file = shipped(entry.directory, name) if name else None
    if file is None:
        return None
    if file.is_relative_to(entry.directory):
        name = file.relative_to(entry.directory).as_posix()
        return Medium(file, f"{SHARED}/{name.replace('/', '-')}", False)
    return Medium(file, f"../assets/{SHARED}/{file.name}", True)


def shared_media(entries: Iterable[Entry]) -> dict[str, Path]:
    """Files that entries share, by their place below the catalog's assets."""
    found = (find_medium(entry, sample) for entry in entries for sample in entry.samples)
    return {f"{SHARED}/{m.file.name}": m.file for m in found if m is not None and m.shared}


def picture_size(file: Path) -> tuple[int, int] | None:
    """Width and height in pixels, from the head of a PNG or JPEG file; None where it is neither.

    A page that says them keeps the picture's place free while it loads.
    """
    data = file.read_bytes()
    if data[:8] == b"\x89PNG\r\n\x1a\n" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    return _jpeg_size(data) if data[:2] == b"\xff\xd8" else None


def _jpeg_size(data: bytes) -> tuple[int, int] | None:
    """From the frame header, which is behind segments of a length that each says itself (ITU T.81, B.2.2)."""
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return None
