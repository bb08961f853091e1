"""`nest show`: the card of an entry, in the terminal."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._definition import signatures
from nest.cli._entry import task_of
from nest.cli._format import columns, file_size, json_text, paragraph, section
from nest.errors import ManifestError
from nest.ir import Program
from nest.registry import Entry, FileSpec, Mirror, Weights, find


def main(args: argparse.Namespace) -> int:
    entry = find(args.name)
    program = _program(entry, trust=args.trust_source)
    print(json_text(_facts(entry, program)) if args.json else _card(entry, program))
    return 0


def _program(entry: Entry, *, trust: bool) -> Program | None:
    """The program, or None where reading it would run a file that nobody has trusted."""
    from nest.loading import program_of

    try:
        entry.definition(trust_source=trust or None)
    except ManifestError:
        return None
    return program_of(entry, trust_source=trust or None)


def _card(entry: Entry, program: Program | None) -> str:
    model = entry.manifest.model
    heading = f"{entry.name}: {model.title}\n\n{paragraph(model.summary)}\n"
    entries = _signature_lines(program) if program else _UNTRUSTED
    parts = [
        section("About", columns(_about(entry), indent=2)),
        section("Entries", entries),
        section("Generics", paragraph(", ".join(f"{n} = {v}" for n, v in entry.generics.items()), indent=2)),
        section("Files", _files(entry.manifest.weights)),
        section("Sample", _sample(entry)),
        section("Use", _use(entry)),
    ]
    return heading + "".join(parts).rstrip("\n")


def _about(entry: Entry) -> list[tuple[str, str]]:
    model = entry.manifest.model
    rows = [("task", task_of(entry) or "none"), ("family", model.family), ("licence", model.license)]
    rows += [("tags", ", ".join(model.tags))] if model.tags else []
    rows += list(entry.manifest.links.items())
    return [*rows, ("folder", str(entry.directory))]


_UNTRUSTED = paragraph(
    "Not read: that would run the definition's Python, and this entry is not of the zoo. --trust-source allows it.",
    indent=2,
)


def _signature_lines(program: Program) -> str:
    return "\n".join(f"  {name}{signature}" for name, signature in signatures(program).items())


def _files(weights: Weights | None) -> str:
    if weights is None:
        return ""
    rows = [(spec.name, file_size(spec.size), _digest(spec)) for spec in weights.files]
    lines = [f"  {weights.repo} at {weights.revision}", columns(rows, indent=4)]
    lines += [_mirror(mirror) for mirror in weights.mirror]
    return "\n".join(lines)


def _digest(spec: FileSpec) -> str:
    digest = f"sha256 {spec.sha256}" if spec.sha256 else "no digest pinned"
    return digest if spec.required else f"{digest} (optional)"


def _mirror(mirror: Mirror) -> str:
    rows = [
        (member.replaces, f"from {member.member}" + (f", by {member.converter}" if member.converter else ""))
        for member in mirror.files
    ]
    heading = f"  or {mirror.package} on the Python package index ({file_size(mirror.size)}, licence {mirror.license})"
    return f"{heading}\n{columns(rows, indent=4)}"


def _sample(entry: Entry) -> str:
    rows: list[tuple[str, str]] = []
    for sample in entry.samples:
        given = sample.audio or sample.image or sample.prompt or "?"
        rows.append((given, sample.text or sample.reference_text or sample.note or "-"))
    return columns(rows, indent=2)


def _use(entry: Entry) -> str:
    lines = ["import nest"]
    command = []
    if task_of(entry) == "transcription":
        command = [f"nest run {entry.name} talk.mp3", ""]
        lines.append(f'print(nest.pipeline("{entry.name}")("talk.mp3").text)')
    lines.append(f'model = nest.load("{entry.name}", backend="torch")')
    return "\n".join(f"  {line}".rstrip() for line in [*command, *lines])


def _facts(entry: Entry, program: Program | None) -> dict[str, Any]:
    return {
        **entry.manifest.model_dump(mode="json", exclude_none=True),
        "directory": entry.directory,
        "entries": signatures(program) if program else None,
        "samples": [sample.model_dump(mode="json", exclude_none=True) for sample in entry.samples],
    }
