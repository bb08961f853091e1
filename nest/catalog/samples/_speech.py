"""A recording with its transcript, whose words light up while they are said."""

from __future__ import annotations

from nest.catalog.markup import attributes, element
from nest.catalog.samples._compare import beside, line, prose
from nest.catalog.samples._media import Medium
from nest.registry import Sample

__all__ = ["speech"]


def speech(sample: Sample, medium: Medium | None) -> str:
    """The player, the transcript, and the reference's text and times beside it."""
    name = sample.audio or "a recording"
    parts = [_player(name, medium)]
    if sample.words:
        parts.append(_transcript(sample, name))
    parts.append(beside(sample.text, sample.reference_text, shown=bool(sample.words)))
    parts.append(_times(sample))
    return "".join(parts)


def _player(name: str, medium: Medium | None) -> str:
    if medium is None:
        return element(
            "p", f"The recording is {prose(name)}, which does not come with nest.", class_="nest-absent"
        )
    source = attributes(src=medium.address, aria_label=f"Recording {line(name)}")
    return f'<audio controls preload="none"{source}></audio>'


def _transcript(sample: Sample, name: str) -> str:
    words = []
    for word in sample.words or []:
        body = word.text.lstrip()
        space = prose(word.text[: len(word.text) - len(body)])
        sure = None if word.probability is None else f"{word.probability:.2f}"
        marks = attributes(data_start=f"{word.start:g}", data_end=f"{word.end:g}", data_sure=sure)
        words.append(f"{space}<span{marks}>{prose(body)}</span>")
    return element("p", "".join(words).lstrip(), class_="nest-words", data_recording=line(name))


def _times(sample: Sample) -> str:
    """How far the times of words are from the reference's, where both have the same words."""
    ours, theirs = sample.words or [], sample.reference_words or []
    if not theirs or [word.text for word in ours] != [word.text for word in theirs]:
        return ""
    pairs = list(zip(ours, theirs, strict=True))
    worst = max(max(abs(a.start - b.start), abs(a.end - b.end)) for a, b in pairs)
    near = f"at most {worst:.2f} s from" if worst >= 0.005 else "to 10 ms the same as"
    said = f"Times of {len(pairs)} words: {near} the reference implementation’s."
    return element("p", said, class_="nest-differ")
