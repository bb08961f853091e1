"""A picture with its labels, or with the texts that may go with it."""

from __future__ import annotations

from collections.abc import Sequence

from nest.catalog.markup import attributes, element
from nest.catalog.samples._compare import line, prose
from nest.catalog.samples._media import Medium, picture_size
from nest.registry import Sample

__all__ = ["bars", "labels", "picture", "scores"]


def picture(sample: Sample, medium: Medium | None) -> str:
    """The picture in a place of its own size, or where it is said to be."""
    name = sample.image or "a picture"
    if medium is None:
        return element(
            "p", f"The picture is {prose(name)}, which does not come with nest.", class_="nest-absent"
        )
    width, height = picture_size(medium.file) or (None, None)
    about = sample.about or f"The sample picture {name}"
    given = attributes(src=medium.address, alt=line(about), width=width, height=height)
    return f'<img class="nest-picture" loading="lazy"{given}>'


def labels(sample: Sample) -> str:
    """The classes that were found, beside the reference's scores of the same classes."""
    if not sample.labels and not sample.reference_labels:
        return ""
    other = {label.label: label.score for label in sample.reference_labels or []}
    if not sample.labels:
        return bars([(name, None, score) for name, score in other.items()], "Class")
    return bars([(found.label, found.score, other.get(found.label)) for found in sample.labels], "Class")


def scores(sample: Sample) -> str:
    """Each text with how well it goes with the picture; the texts alone where that was not measured."""
    texts = sample.texts or []
    nothing: list[float | None] = [None] * len(texts)
    ours, theirs = sample.scores or nothing, sample.reference_scores or nothing
    if sample.scores is None and sample.reference_scores is None:
        items = "".join(element("li", prose(text)) for text in texts)
        about = '<p class="nest-who">Texts that it is asked about</p>'
        return element("div", about + element("ul", items)) if texts else ""
    return bars(list(zip(texts, ours, theirs, strict=True)), "Text")


def bars(rows: Sequence[tuple[str, float | None, float | None]], what: str) -> str:
    """A table of probabilities from 0 to 1: a name, ours and the reference's; the first that is here is drawn."""
    titles = ("Ours", "Reference")
    there = [at for at in range(len(titles)) if any(row[1:][at] is not None for row in rows)]
    headings = "".join(
        f'<th scope="col">{prose(title)}</th>' for title in [what, *(titles[at] for at in there)]
    )
    lines = []
    for name, *values in rows:
        cells = "".join(_cell(values[at], drawn=at == there[0]) for at in there)
        lines.append(f'<tr><th scope="row">{prose(name)}</th>{cells}</tr>')
    table = (
        f'<table class="nest-bars"><thead><tr>{headings}</tr></thead><tbody>{"".join(lines)}</tbody></table>'
    )
    return (
        f'<div class="nest-scroll" tabindex="0" role="region" aria-label="{line(what)} scores">{table}</div>'
    )


def _cell(value: float | None, *, drawn: bool) -> str:
    if value is None:
        return "<td>–</td>"
    share = f"--share: {max(0.0, min(value, 1.0)):.1%}"
    bar = f'<span class="nest-share" style="{share}"></span>' if drawn else ""
    return f"<td>{bar}{value:.4f}</td>"
