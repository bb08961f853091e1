"""`nest lint`: the contract of an entry's folder, for who writes one. Reads files only; runs nothing.

`nest check` asks whether an entry is right; this asks whether it is fit for a zoo that other people rely on:
complete, pinned to the byte, explained, and written like the others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from nest.checking.lint_manifest import manifest_faults
from nest.checking.lint_source import source_faults
from nest.checking.lint_text import text_faults
from nest.checking.readme import README, headings
from nest.checking.report import Report
from nest.errors import ManifestError
from nest.registry import Entry, Manifest, find, locate
from nest.registry.bench import BENCH_FILE
from nest.registry.evaluations import EVAL_FILE
from nest.registry.parity import PARITY_FILE
from nest.registry.tensors import TENSORS_FILE, read_tensors

__all__ = ["SECTIONS", "lint"]

SECTIONS = ("Use", "Architecture", "Numerics", "Provenance")
"""Second-level headings that every README has, in this order; others may stand between."""

_TEXTS = (".toml", ".json", ".md", ".py")


def lint(name: str | os.PathLike[str]) -> Report:
    """Look at the folder of one entry.

    Args:
        name: what `nest.registry.find` takes.

    Raises:
        UnknownEntryError: there is no such entry.
    """
    folder = locate(name).folder
    report = Report(folder.name, folder)
    try:
        entry = find(name)
    except ManifestError as error:
        report.fault("manifest", str(error))
        _lint_texts(folder, report)
        return report
    report.name = entry.name
    _part(report, "files", ((message, None, None) for message in _file_faults(entry)))
    _part(report, "manifest", ((message, folder / "nest.toml", None) for message in manifest_faults(entry)))
    if not entry.manifest.source.path.startswith("@") and entry.source.is_file():
        found = source_faults(entry.source, entry.manifest.source)
        _part(report, "definition", ((message, entry.source, line) for message, line in found))
    if (folder / TENSORS_FILE).is_file():
        _part(report, "tensors", ((message, None, None) for message in _tensor_faults(entry)))
    if (folder / README).is_file():
        _part(report, "readme", ((message, folder / README, None) for message in _readme_faults(folder)))
    _lint_texts(folder, report)
    return report


def _part(report: Report, part: str, faults: Iterator[tuple[str, Path | None, int | None]]) -> None:
    before = len(report.faults)
    for message, file, line in faults:
        report.fault(part, message, file, line)
    if len(report.faults) == before:
        report.ok(part, "as it should be")


def _file_faults(entry: Entry) -> Iterator[str]:
    """What is missing from the folder, and what has no business in it."""
    folder, manifest = entry.directory, entry.manifest
    needed = _needed(manifest)
    yield from (f"'{name}' is missing" for name in needed if not (folder / name).is_file())
    samples = {given for sample in entry.samples for given in (sample.audio, sample.image) if given}
    unpinned = () if manifest.weights else ("bindings.json", TENSORS_FILE)
    known = {*needed, BENCH_FILE, EVAL_FILE, PARITY_FILE, *samples, *unpinned}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if "__pycache__" in path.parts or name in known or (path.is_dir() and _holds(name, known)):
            continue
        yield f"'{name}' is not part of an entry: it is none of {', '.join(sorted(known))}"


def _needed(manifest: Manifest) -> list[str]:
    weights = manifest.weights
    own = [manifest.source.path, *([weights.bindings] if weights else [])]
    listed = [TENSORS_FILE] if weights else []
    return ["nest.toml", README, "samples.json", *listed, *(path for path in own if not path.startswith("@"))]


def _holds(folder: str, known: set[str]) -> bool:
    return any(name.startswith(f"{folder}/") for name in known)


def _tensor_faults(entry: Entry) -> Iterator[str]:
    weights = entry.manifest.weights
    try:
        listed = read_tensors(entry.directory, entry.name)
    except ManifestError as error:
        yield str(error)
        return
    if listed is None or weights is None:
        return  # a missing file is said among the files
    if (listed.repo, listed.revision) != (weights.repo, weights.revision):
        yield (
            f"{TENSORS_FILE} is of {listed.repo} at {listed.revision}; nest.toml pins {weights.repo} at "
            f"{weights.revision}"
        )
    if list(listed.tensors) != sorted(listed.tensors):
        yield f"{TENSORS_FILE}: the tensors are not in alphabetical order, so that a change is hard to see"


def _readme_faults(folder: Path) -> Iterator[str]:
    try:
        text = (folder / README).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return  # said among the files and texts
    found = headings(text)
    if not found or not found[0].startswith("# "):
        yield "it does not begin with a title, '# Name'"
    wanted = [f"## {section}" for section in SECTIONS]
    yield from (f"the section '{section}' is missing" for section in wanted if section not in found)
    present = [heading for heading in found if heading in wanted]
    if present != [section for section in wanted if section in present]:
        yield f"its sections are not in the order {', '.join(SECTIONS)}"


def _lint_texts(folder: Path, report: Report) -> None:
    texts = [path for path in sorted(folder.iterdir()) if path.suffix in _TEXTS and path.is_file()]
    _part(report, "text", ((message, path, line) for path in texts for message, line in text_faults(path)))
