"""`nest show`: the card of an entry, in the terminal."""

from __future__ import annotations

import argparse
from typing import Any

from nest.cli._definition import signatures
from nest.cli._entry import task_of
from nest.cli._format import columns, file_size, json_text, paragraph, section
from nest.cli._use import usage, usage_facts
from nest.ir import Program
from nest.registry import Entry, FileSpec, Mirror, find
from nest.registry.tensors import read_tensors


def main(args: argparse.Namespace) -> int:
    entry = find(args.name)
    program = _program(entry, trust=args.trust_source)
    print(json_text(_facts(entry, program)) if args.json else _card(entry, program))
    return 0


def _program(entry: Entry, *, trust: bool) -> Program | None:
    """The program, or None where reading it would run a file that nobody has trusted."""
    from nest.loading import program_of

    return program_of(entry, trust_source=trust) if trust or entry.trusted else None


def _card(entry: Entry, program: Program | None) -> str:
    model = entry.manifest.model
    heading = f"{entry.name}: {model.title}\n\n{paragraph(model.summary)}\n"
    entries = _signature_lines(program) if program else paragraph(f"Not read. {entry.refusal}", indent=2)
    parts = [
        section("About", columns(_about(entry), indent=2)),
        section("Entries", entries),
        section("Generics", paragraph(", ".join(f"{n} = {v}" for n, v in entry.generics.items()), indent=2)),
        section("Files", _files(entry)),
        section("Numerics", _numerics(entry)),
        section("Sample", _sample(entry)),
        section("Use", usage(entry)),
    ]
    return heading + "".join(parts).rstrip("\n")


def _about(entry: Entry) -> list[tuple[str, str]]:
    model = entry.manifest.model
    rows = [("task", task_of(entry) or "none"), ("family", model.family), ("licence", model.license)]
    rows += [("tags", ", ".join(model.tags))] if model.tags else []
    rows += [("also", ", ".join(model.aliases))] if model.aliases else []
    rows += list(entry.manifest.links.items())
    return [*rows, ("folder", str(entry.directory))]


def _signature_lines(program: Program) -> str:
    lines = []
    for name, function in program.entries.items():
        lines.append(f"  {name}{function.signature}")
        if function.doc:
            lines.append(paragraph(function.doc.strip().partition("\n")[0], indent=6))
    return "\n".join(lines)


def _files(entry: Entry) -> str:
    weights = entry.manifest.weights
    if weights is None:
        return "  none: nest.toml has no [weights], and nest.load takes weights=None for random ones"
    rows = [(spec.name, file_size(spec.size), _digest(spec)) for spec in weights.files]
    lines = [f"  {weights.repo} at {weights.revision}", columns(rows, indent=4)]
    lines += [_mirror(mirror) for mirror in weights.mirror]
    listed = read_tensors(entry.directory, entry.name)
    if listed is not None:
        origin = "read from its header" if listed.source == "header" else f"derived. {listed.note}"
        lines.append(paragraph(f"tensors of the checkpoint: {origin}", indent=2))
    return "\n".join(lines)


def _digest(spec: FileSpec) -> str:
    digest = f"sha256 {spec.sha256}" if spec.sha256 else "pinned by the commit alone"
    return digest if spec.required else f"{digest} (optional)"


def _mirror(mirror: Mirror) -> str:
    rows = [
        (member.replaces, f"from {member.member}" + (f", by {member.converter}" if member.converter else ""))
        for member in mirror.files
    ]
    heading = f"  or {mirror.package} on the Python package index ({file_size(mirror.size)}, licence {mirror.license})"
    return f"{heading}\n{columns(rows, indent=4)}"


def _numerics(entry: Entry) -> str:
    """What the entry promises of its outputs; a number without what it is measured against says nothing."""
    tolerance = entry.manifest.tolerance
    if not tolerance:
        return ""
    rows = [
        (
            output,
            f"at most {bound.max:.1e}" if bound.max is not None else "",
            f"{bound.relative:.1e} of the largest" if bound.relative is not None else "",
            f"on {bound.input}" if bound.input else "",
        )
        for output, bound in tolerance.items()
    ]
    dtypes = ", ".join(entry.manifest.dtypes)
    kinds = "with the checkpoint's weights, and with any; nest verify measures it"
    return f"{columns(rows, indent=2)}\n  from the f64 oracle and the reference library in {dtypes}: {kinds}"


def _sample(entry: Entry) -> str:
    rows: list[tuple[str, str]] = []
    for sample in entry.samples:
        given = sample.audio or sample.image or sample.prompt or "?"
        rows.append((given, " ".join((sample.text or sample.reference_text or sample.note or "-").split())))
    return columns(rows, indent=2)


def _facts(entry: Entry, program: Program | None) -> dict[str, Any]:
    return {
        **entry.manifest.model_dump(mode="json", exclude_none=True),
        "directory": entry.directory,
        "trusted": entry.trusted,
        "entries": signatures(program) if program else None,
        "samples": [sample.model_dump(mode="json", exclude_none=True) for sample in entry.samples],
        "use": usage_facts(entry),
    }
