"""A folder of recordings with transcripts, in the forms in which people have them."""

from __future__ import annotations

import csv
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from nest.errors import InputError

__all__ = ["AUDIO", "Dataset", "Fault", "Recording", "read_dataset"]

AUDIO = (
    ".wav", ".flac", ".mp3", ".ogg", ".oga", ".opus", ".m4a", ".aac", ".wma", ".aif", ".aiff", ".amr",
    ".mp4", ".m4v", ".mov", ".mkv", ".mka", ".webm",
)  # fmt: skip
"""The endings of recordings; a file of another is none, whatever is in it."""

_TABLES = ("transcripts.tsv", "transcripts.csv", "transcripts.jsonl")
_LIBRISPEECH = ".trans.txt"
_FORMS = (
    "expected clip.txt beside clip.wav, *.trans.txt with lines of ID and text as LibriSpeech has them, or "
    f"{', '.join(_TABLES[:-1])} or {_TABLES[-1]} with 'file' and 'text' in the folder itself"
)


@dataclass(frozen=True)
class Recording:
    """A recording and what is said in it: `name` is its path from the folder on."""

    name: str
    path: Path
    reference: str


@dataclass(frozen=True)
class Fault:
    """What cannot be evaluated, and why."""

    name: str
    why: str


@dataclass(frozen=True)
class Dataset:
    """The recordings of a folder by name, and what is wrong with the rest of it."""

    folder: Path
    recordings: tuple[Recording, ...]
    faults: tuple[Fault, ...] = ()


def read_dataset(folder: str | Path) -> Dataset:
    """Find the recordings below `folder` and their transcripts.

    A transcript is the file `clip.txt` beside `clip.wav`; a line `ID text` of a `*.trans.txt` beside `ID.flac`, as in
    LibriSpeech; or a row of the folder's own `transcripts.tsv` or `transcripts.csv`, whose first line names the columns
    `file` and `text`, or of `transcripts.jsonl`, an object with these keys a line. Texts are UTF-8.

    Raises:
        InputError: there is no such folder, no recording in it, or no transcript at all.
    """
    root = Path(folder).expanduser()
    if not root.is_dir():
        raise InputError(
            f"'{folder}' is {'no directory' if root.exists() else 'not there'}: give a folder of recordings "
            "with transcripts."
        )
    files = list(_files(root))
    audio = [path for path in files if path.suffix.lower() in AUDIO]
    if not audio:
        raise InputError(f"There is no recording in '{folder}': expected files such as .wav, .flac or .mp3.")
    return _Reading(root, files, audio).dataset()


def _files(root: Path) -> Iterator[Path]:
    for directory, folders, names in os.walk(root):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(directory, name) for name in sorted(names) if not name.startswith("."))


class _Reading:
    """The transcripts of a folder, gathered by recording."""

    def __init__(self, root: Path, files: Sequence[Path], audio: Sequence[Path]) -> None:
        self.root, self.files, self.audio = root, files, audio
        self.texts: dict[Path, list[tuple[Path, str]]] = defaultdict(list)
        self.faults: list[Fault] = []
        self.by_stem: dict[Path, list[Path]] = defaultdict(list)
        for path in audio:
            self.by_stem[path.with_suffix("")].append(path)

    def dataset(self) -> Dataset:
        """Read all transcripts, then say of each recording which one it has."""
        for path in self.files:
            if path.parent == self.root and path.name in _TABLES:
                self._table(path)
            elif path.name.endswith(_LIBRISPEECH):
                self._lines(path)
            elif path.suffix == ".txt" and path.with_suffix("") in self.by_stem:
                self._beside(path)
        if not self.texts and not self.faults:
            count = "1 recording" if len(self.audio) == 1 else f"{len(self.audio)} recordings"
            raise InputError(f"'{self.root}' has {count} and no transcript: {_FORMS}.")
        found = [self._recording(path) for path in self.audio]
        recordings = tuple(one for one in found if isinstance(one, Recording))
        missing = [one for one in found if isinstance(one, Fault)]
        return Dataset(self.root, recordings, (*self.faults, *missing))

    def _recording(self, path: Path) -> Recording | Fault:
        given = self.texts.get(path, [])
        if not given:
            return Fault(self._name(path), "has no transcript")
        if len(given) > 1:
            where = " and ".join(sorted(self._name(source) for source, _ in given))
            return Fault(self._name(path), f"has {len(given)} transcripts, in {where}: keep one")
        source, text = given[0]
        if not text:
            return Fault(self._name(path), f"has an empty transcript in {self._name(source)}")
        return Recording(self._name(path), path, text)

    def _beside(self, path: Path) -> None:
        text = self._text(path)
        for recording in self.by_stem[path.with_suffix("")] if text is not None else ():
            self._add(recording, path, text or "")

    def _lines(self, path: Path) -> None:
        """LibriSpeech's: `1272-128104-0000 MISTER QUILTER IS ...`."""
        for line in (self._text(path) or "").splitlines():
            name, _, text = line.strip().partition(" ")
            if not name:
                continue
            recordings = self.by_stem.get(path.parent / name, [])
            if not recordings:
                self.faults.append(
                    Fault(self._name(path), f"names '{name}', and no recording beside it is called so")
                )
            for recording in recordings:
                self._add(recording, path, text)

    def _table(self, path: Path) -> None:
        text = self._text(path)
        if text is None:
            return
        rows = _json_rows(text) if path.suffix == ".jsonl" else _rows(text, path.suffix)
        for number, row in rows:
            place = f"{self._name(path)}:{number}"
            file, said = (row.get("file"), row.get("text")) if isinstance(row, dict) else (None, None)
            if not isinstance(file, str) or not isinstance(said, str):
                self.faults.append(Fault(place, "expected 'file' and 'text', both texts"))
            elif (recording := self.root / file) not in self.audio:
                self.faults.append(Fault(place, f"names '{file}', which is no recording of the folder"))
            else:
                self._add(recording, path, said)

    def _add(self, recording: Path, source: Path, text: str) -> None:
        self.texts[recording].append((source, " ".join(text.split())))

    def _text(self, path: Path) -> str | None:
        """What a file holds, or None where it cannot be read, which is a fault."""
        try:
            return path.read_text(encoding="utf-8-sig")
        except OSError as error:
            why = f"cannot be read: {error.strerror or error}"
        except UnicodeDecodeError:
            why = "is no UTF-8 text"
        self.faults.append(Fault(self._name(path), why))
        return None

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _rows(text: str, suffix: str) -> Iterator[tuple[int, object]]:
    """The rows of a table, with the numbers of their lines. Quotes of a TSV are part of the text."""
    lines = text.splitlines()
    if suffix == ".tsv":
        names = lines[0].split("\t") if lines else []
        for number, line in enumerate(lines[1:], 2):
            if line.strip():
                yield number, dict(zip(names, line.split("\t"), strict=False))
        return
    table = csv.DictReader(lines)
    for row in table:
        yield table.line_num, row


def _json_rows(text: str) -> Iterator[tuple[int, object]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except ValueError:
                yield number, None
