"""One entry's page, put together from its sections."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from nest.catalog.facts import Facts
from nest.catalog.markup import count, element, escape, file_size
from nest.catalog.readme import Readme, read
from nest.catalog.section import Section
from nest.catalog.sections import SECTIONS
from nest.catalog.words import task_words
from nest.errors import InputError

__all__ = ["page"]


def page(facts: Facts) -> dict[str, bytes | Path]:
    """The files of an entry's folder of the catalog: `index.md`, and what its sections put beside it."""
    readme = read(_readme(facts.entry.directory / "README.md"))
    sections = [make(facts, readme) for make in SECTIONS]
    files: dict[str, bytes | Path] = {}
    for section in sections:
        files.update(section.files)
    return {**files, "index.md": _text(facts, readme, sections).encode()}


def _readme(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"{file} cannot be read: {error.strerror or error}. Every entry has a README."
        ) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not UTF-8 text.") from error


def _text(facts: Facts, readme: Readme, sections: list[Section]) -> str:
    model = facts.entry.manifest.model
    front = [
        "---",
        f"title: {_quoted(escape(model.title))}",
        f"description: {_quoted(escape(model.summary))}",
        "---",
        "",
    ]
    parts = [f"# {readme.title}", _heading(facts), readme.opening]
    for section in sections:
        if section.text.strip():
            parts.append(f"## {section.title} {{ #{section.anchor} }}\n\n{section.text.strip()}")
    parts.append(_scripts(script for section in sections for script in section.scripts))
    return "\n".join(front) + "\n\n".join(part for part in parts if part) + "\n"


def _heading(facts: Facts) -> str:
    """The facts that people choose by, in one line below the name."""
    card = facts.card
    size = ("" if card.size_exact or card.size is None else "about ") + file_size(card.size)
    facts_ = [
        ("name", element("code", escape(facts.name))),
        ("task", element("a", escape(task_words(facts.task)), href=f"../?task={facts.task or ''}")),
        ("family", element("a", escape(card.family), href=f"../?family={card.family}")),
        ("parameters", escape(count(facts.parameter_count))),
        ("download", escape(size)),
        ("licence", escape(card.license)),
    ]
    items = "".join(f"<div>{element('dt', name)}{element('dd', value)}</div>" for name, value in facts_)
    return f'<dl class="nest-facts nest-facts--line">{items}</dl>'


def _scripts(names: Iterable[str]) -> str:
    return "\n".join(f'<script src="../assets/{name}" defer></script>' for name in dict.fromkeys(names))


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
