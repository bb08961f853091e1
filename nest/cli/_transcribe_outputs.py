"""The files that `nest transcribe` writes: which there are, and how they come to be."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nest.cli._transcribe_values import FORMATS
from nest.errors import CallError, ConfigError, InputError
from nest.tasks.subtitles import WRITERS, Lines
from nest.tasks.transcript import Transcript
from nest.weights._files import atomic, user_path

__all__ = ["Outputs", "formats_of", "identities", "planned"]


@dataclass(frozen=True)
class Outputs:
    """The files of one recording, by their formats; none where its text goes to standard output."""

    paths: dict[str, Path]

    def done(self) -> bool:
        """Whether all are there. None is there in part: see `write`."""
        return bool(self.paths) and not self.missing().paths

    def missing(self) -> Outputs:
        """Those that are not there yet."""
        return Outputs({format: path for format, path in self.paths.items() if not path.exists()})

    def refuse_recordings(self, recordings: Collection[tuple[int, int]]) -> None:
        """Raise where one is a recording itself; `recordings` are their `identities`.

        Raises:
            InputError: it is.
        """
        for path in self.paths.values():
            if not identities([path]).isdisjoint(recordings):
                raise InputError(
                    f"'{path}' is a recording, and a transcript would be written in its place: choose another "
                    "--output-dir or --output-format."
                )

    def refuse_existing(self) -> None:
        """Raise where one is there.

        Raises:
            InputError: it is.
        """
        there = [str(path) for path in self.paths.values() if path.exists()]
        if there:
            are, them = ("is", "it") if len(there) == 1 else ("are", "them")
            raise InputError(
                f"{', '.join(there)} {are} there already: --skip-existing leaves {them}, "
                f"--overwrite writes {them} anew."
            )

    def write(self, transcript: Transcript, lines: Lines, **about: Any) -> None:
        """Write all, each whole or not at all.

        Raises:
            InputError: one cannot be written.
        """
        for format, path in self.paths.items():
            facts = about if format == "json" else {}
            text = WRITERS[format](transcript, lines, **facts)
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                with atomic(path) as file:
                    file.write(text.encode())
            except OSError as error:
                raise InputError(f"'{path}' cannot be written: {error.strerror or error}.") from error


def identities(paths: Iterable[str | Path]) -> set[tuple[int, int]]:
    """Device and inode of each file that is there: the same whatever name or link leads to it."""
    found = set()
    for path in paths:
        try:
            facts = Path(path).stat()
        except (OSError, ValueError):  # ValueError: a null byte
            continue
        found.add((facts.st_dev, facts.st_ino))
    return found


def formats_of(directory: str | None, wanted: tuple[str, ...] | None) -> tuple[str, ...]:
    """The formats that are asked for; all where only a directory is named, none where neither is."""
    if wanted is not None:
        return wanted
    return () if directory is None else FORMATS


def planned(inputs: Sequence[str], directory: str | None, formats: Sequence[str]) -> list[Outputs]:
    """The files of each input: named as it is, with the format's own ending.

    Raises:
        CallError: two inputs have the same, or the directory cannot be one.
    """
    folder = _folder(directory or ".")
    stems = ["stdin" if given == "-" else Path(given).stem for given in inputs]
    if formats:
        _refuse_equal(inputs, stems)
    return [Outputs({format: folder / f"{stem}.{format}" for format in formats}) for stem in stems]


def _folder(given: str) -> Path:
    """The directory of that name, which may not be there yet."""
    try:
        folder = user_path(given, "--output-dir")
        there = next((path for path in (folder, *folder.parents) if path.exists()), None)
        if there is None or there.is_dir():
            return folder
    except ConfigError as error:  # no such home
        raise CallError(str(error)) from error
    except OSError as error:  # a name that is too long
        raise CallError(f"--output-dir is '{given}': {error.strerror or error}.") from error
    of = "" if there == folder else f", of which '{there}'"
    raise CallError(f"--output-dir is '{folder}'{of or ', which'} is no directory.")


def _refuse_equal(inputs: Sequence[str], stems: Sequence[str]) -> None:
    same: dict[str, list[str]] = defaultdict(list)
    for given, stem in zip(inputs, stems, strict=True):
        same[stem].append(given)
    for stem, several in same.items():
        if len(several) > 1:
            raise CallError(
                f"{' and '.join(several)} would all be written as '{stem}': transcribe them one at a time, with an "
                "--output-dir for each."
            )
