"""Weights: the pinned files, where else they can be had, and which tensor each parameter is."""

from __future__ import annotations

from nest.catalog.bindings import every_parameter, rules
from nest.catalog.facts import Facts
from nest.catalog.markup import code, element, escape, file_size, table
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.registry import FileSpec, Mirror, Weights
from nest.registry.tensors import read_tensors

__all__ = ["section"]


def section(facts: Facts, readme: Readme) -> Section:
    """Files with digests, sources, and the bindings."""
    weights = facts.entry.manifest.weights
    if weights is None:
        text = "This entry pins no weights; `nest.load` takes `weights=None` for random ones."
        return Section("Weights", "weights", text)
    text = f"{_pinned(facts, weights)}\n\n{rules(facts)}"
    return Section("Weights", "weights", text, {"bindings.json": every_parameter(facts)}, ("bindings.js",))


def _pinned(facts: Facts, weights: Weights) -> str:
    where = facts.entry.manifest.links.get("huggingface", f"https://huggingface.co/{weights.repo}")
    about = [
        ("Repository", element("a", escape(weights.repo), href=where, rel="noopener")),
        ("Commit", element("code", escape(weights.revision), class_="nest-digest")),
        ("Licence of the weights", escape(facts.entry.manifest.model.license)),
        ("Tensors", _origin(facts)),
    ]
    terms = "".join(f"<div>{element('dt', name)}{element('dd', value)}</div>" for name, value in about)
    rows = [_file(spec) for spec in weights.files]
    text = f'<dl class="nest-facts">{terms}</dl>\n\n{table(("File", "Size", "SHA-256"), rows)}'
    return text + "".join(map(_mirror, weights.mirror))


def _origin(facts: Facts) -> str:
    listed = read_tensors(facts.entry.directory, facts.entry.name)
    if listed is None:
        return "not listed"
    return (
        "read from the checkpoint's header"
        if listed.source == "header"
        else f"derived. {escape(listed.note)}"
    )


def _file(spec: FileSpec) -> tuple[str, str, str]:
    digest = (
        element("span", spec.sha256, class_="nest-digest") if spec.sha256 else "pinned by the commit alone"
    )
    return code(spec.name) + ("" if spec.required else " (optional)"), escape(file_size(spec.size)), digest


def _mirror(mirror: Mirror) -> str:
    rows = [
        (
            code(member.replaces),
            code(member.member),
            code(member.converter) if member.converter else "none needed",
        )
        for member in mirror.files
    ]
    about = (
        f"Where the Hub cannot be reached: {code(mirror.package)} on the Python package index, "
        f"{escape(file_size(mirror.size))}, licence {escape(mirror.license)}; hash-checked, never installed."
    )
    return f"\n<p>{about}</p>\n\n{table(('Stands in for', 'Member', 'Converted by'), rows)}"
