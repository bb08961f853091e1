"""Every sample of an entry, with what measured it or that nothing did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nest.catalog.markup import element
from nest.catalog.samples._compare import beside, prose
from nest.catalog.samples._media import Medium, find_medium
from nest.catalog.samples._pictures import labels, picture, scores
from nest.catalog.samples._speech import speech
from nest.catalog.samples._texts import conversation, masks, matrix
from nest.registry import Entry, Sample

__all__ = ["Shown", "show"]


@dataclass(frozen=True)
class Shown:
    """HTML of samples, files that go beside the page, and whether words have times that a script can follow."""

    html: str
    files: Mapping[str, Path] = field(default_factory=dict)
    timed: bool = False


def show(entry: Entry) -> Shown:
    """The samples of an entry."""
    if not entry.samples:
        return Shown(element("p", "This entry has no sample.", class_="nest-unmeasured"))
    about = [_about(sample) for sample in entry.samples]
    once = about[0] if len(about) > 1 and len(set(about)) == 1 else ""
    files: dict[str, Path] = {}
    figures = []
    for sample, said in zip(entry.samples, about, strict=True):
        medium = find_medium(entry, sample)
        if medium is not None and not medium.shared:
            files[medium.address] = medium.file
        figures.append(_figure(sample, medium, "" if once else said))
    html = element("div", once + "".join(figures), class_="nest-samples")
    return Shown(html, files, any(sample.words for sample in entry.samples))


def _figure(sample: Sample, medium: Medium | None, about: str) -> str:
    title = sample.audio or sample.image
    caption = element("figcaption", prose(title)) if title else ""
    return element("figure", caption + _body(sample, medium) + about, class_="nest-sample")


def _body(sample: Sample, medium: Medium | None) -> str:
    if sample.audio is not None:
        return speech(sample, medium)
    if sample.image is not None:
        shown = picture(sample, medium) + labels(sample) + scores(sample)
        return element("div", shown, class_="nest-pictured") + beside(sample.text, sample.reference_text)
    if sample.kind == "fill-mask":
        return masks(sample)
    if sample.prompt is not None:
        return conversation(sample)
    return matrix(sample) + beside(sample.text, sample.reference_text)


def _about(sample: Sample) -> str:
    """What measured a sample, or why nothing did; as HTML."""
    if not sample.measured:
        return element("p", prose(_unmeasured(sample)), class_="nest-unmeasured")
    if sample.computed is None:
        said = "Measured by this project; when, and on which backend, was not written down."
        facts = ""
    else:
        made = sample.computed
        said = ""
        named = [
            ("Weights", made.weights),
            ("Backend", f"{made.backend}, nest {made.nest}"),
            ("Measured", made.date),
            ("Reference", made.reference or "not measured"),
        ]
        facts = "".join(
            f"<div>{element('dt', name)}{element('dd', prose(value))}</div>" for name, value in named
        )
    note = element("p", prose(sample.note)) if sample.note else ""
    inner = (element("p", said) if said else "") + note + (element("dl", facts) if facts else "")
    return element("div", inner, class_="nest-computed")


def _unmeasured(sample: Sample) -> str:
    """The note where it says so itself; otherwise that nothing was measured, before it."""
    note = (sample.note or "").strip()
    if note.lower().startswith(("not measured", "not run")):
        return note
    return (
        f"Not measured: {note}"
        if note
        else "Not measured: nobody has run this sample with the entry's weights."
    )
