"""`nest check`: whether an entry is what it says, as far as can be told without its weights."""

from __future__ import annotations

import os
from pathlib import Path

from nest.checking.bindings import check_bindings
from nest.checking.definition import check_definition
from nest.checking.measured import check_measured
from nest.checking.readme import README, snippet_faults, snippets
from nest.checking.report import Report
from nest.checking.tensors import Checkpoints
from nest.errors import ManifestError
from nest.registry import Entry, find, locate
from nest.registry.samples import shipped

__all__ = ["check"]


def check(
    name: str | os.PathLike[str],
    *,
    trust_source: bool = False,
    require_headers: bool = False,
    write_tensors: bool = False,
    checkpoints: Checkpoints | None = None,
) -> Report:
    """Check one entry: manifest, definition, bindings, samples, measurements and README.

    Args:
        name: what `nest.registry.find` takes.
        trust_source: run the definition of an entry outside the installed zoo. Without it, what needs the
            definition is left out, and the report says so.
        require_headers: a list of tensors in place of the checkpoint's own header is a fault.
        write_tensors: make the entry's `tensors.json` anew from the checkpoint's header.
        checkpoints: shared by the checks of many entries, so that a host that is away is asked once.

    Raises:
        UnknownEntryError: there is no such entry.
    """
    place = locate(name)
    report = Report(place.folder.name, place.folder)
    try:
        entry = find(name)
    except ManifestError as error:
        report.fault("manifest", str(error))
        return report
    report.name = entry.name
    report.ok("manifest", f"{place.folder / 'nest.toml'} and the files it names are valid")
    runs = entry.trusted or trust_source
    if runs:
        program = check_definition(entry, report, trust_source=trust_source)
        if program is not None:
            check_bindings(
                entry,
                program,
                report,
                checkpoints or Checkpoints(),
                require_headers=require_headers,
                write_tensors=write_tensors,
            )
    else:
        report.note("definition", f"not run, and so the bindings were not checked. {entry.refusal}")
    _check_samples(entry, report)
    traced = runs and not any(fault.part == "definition" for fault in report.faults)
    check_measured(entry, report, runs=traced, trust_source=trust_source)
    _check_readme(entry, report)
    return report


def _check_samples(entry: Entry, report: Report) -> None:
    file = entry.directory / "samples.json"
    if not entry.samples:
        report.fault("samples", "no sample: what the model is for, with the reference's output", file)
        return
    before = len(report.faults)
    task = entry.manifest.task
    for sample in entry.samples:
        if task and sample.kind != task.kind:
            report.fault("samples", f"a sample's kind is '{sample.kind}'; task.kind is '{task.kind}'", file)
        for given in (sample.audio, sample.image):
            if given and Path(given).suffix and shipped(entry.directory, given) is None:
                message = f"'{given}' is neither in the entry's folder nor a recording that ships with nest"
                report.fault("samples", message, file)
        if not (sample.measured or sample.referenced or sample.note):
            report.fault("samples", "a sample has neither an output nor a note that says why not", file)
    if len(report.faults) == before:
        measured = sum(sample.measured for sample in entry.samples)
        report.ok("samples", f"{len(entry.samples)}, of which {measured} with a measured output")


def _check_readme(entry: Entry, report: Report) -> None:
    file = entry.directory / README
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        report.fault("readme", f"cannot be read: {getattr(error, 'strerror', None) or error}", file)
        return
    weights = entry.manifest.weights
    accepted = [entry.name, *entry.manifest.model.aliases, *([weights.repo] if weights else [])]
    faults = list(snippet_faults(file, text, accepted))
    for message, line in faults:
        report.fault("readme", message, file, line)
    if not faults:
        count = sum(snippet.language == "python" for snippet in snippets(text))
        report.ok("readme", f"{count} snippet{'s' if count > 1 else ''} of Python")
