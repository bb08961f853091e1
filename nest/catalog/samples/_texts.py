"""Prompts with what came of them, masks with what may stand there, and how alike texts are."""

from __future__ import annotations

from collections.abc import Sequence

from nest.catalog.markup import element, escape
from nest.catalog.samples._compare import beside, prose
from nest.catalog.samples._pictures import bars
from nest.registry import Sample

__all__ = ["conversation", "masks", "matrix"]


def conversation(sample: Sample) -> str:
    """A prompt and the answer, as turns of a chat or as a text that goes on."""
    asked = "You" if sample.chat else "A text to go on with"
    parts = [_turn(asked, element("p", prose(sample.prompt or ""), class_="nest-said"), "user")]
    answer = beside(sample.text, sample.reference_text)
    if sample.finish == "length" and sample.max_tokens:
        answer += element("p", f"Cut after {sample.max_tokens} tokens.", class_="nest-differ")
    if answer:
        who = "The model" if sample.text is not None else "The model, as the reference library runs it"
        parts.append(_turn(who, answer, "model"))
    return "".join(parts)


def _turn(who: str, html: str, kind: str) -> str:
    return element(
        "div", element("p", escape(who), class_="nest-who") + html, class_=f"nest-turn nest-turn--{kind}"
    )


def masks(sample: Sample) -> str:
    """The text with its masks, and what may stand in each one's place."""
    parts = [element("p", prose(sample.prompt or ""), class_="nest-said nest-prompt")]
    ours, theirs = sample.masks or [], sample.reference_masks or []
    for place in range(max(len(ours), len(theirs))):
        found = {c.token: c.probability for c in ours[place]} if place < len(ours) else {}
        other = {c.token: c.probability for c in theirs[place]} if place < len(theirs) else {}
        parts.append(
            bars([(t, found.get(t), other.get(t)) for t in [*found, *(other if not found else [])]], "Token")
        )
    if not ours and not theirs:
        parts.append(beside(sample.text, sample.reference_text))
    return "".join(parts)


def matrix(sample: Sample) -> str:
    """The texts, numbered, and a table of the cosine of each to each, shaded by its value."""
    texts = sample.texts or []
    found = sample.matrix or sample.reference_matrix
    if not found:
        items = "".join(element("li", prose(text)) for text in texts)
        return element("ol", items, class_="nest-texts")
    whose = "Cosine of each text to each" + ("" if sample.matrix else ", as the reference library gives it")
    heads = "".join(f'<th scope="col">{number}</th>' for number in range(1, len(texts) + 1))
    rows = "".join(
        _row(number, text, row) for number, (text, row) in enumerate(zip(texts, found, strict=True), 1)
    )
    inner = (
        f'<table class="nest-matrix"><caption>{whose}</caption>'
        f'<thead><tr><th scope="col">Text</th>{heads}</tr></thead><tbody>{rows}</tbody></table>'
    )
    box = f'<div class="nest-scroll" tabindex="0" role="region" aria-label="How alike the texts are">{inner}</div>'
    return box + _distance(sample)


def _row(number: int, text: str, row: Sequence[float]) -> str:
    cells = "".join(f'<td style="--share: {max(0.0, min(x, 1.0)):.0%}">{_number(x)}</td>' for x in row)
    return f'<tr><th scope="row"><span class="nest-number">{number}</span> {prose(text)}</th>{cells}</tr>'


def _number(value: float) -> str:
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def _distance(sample: Sample) -> str:
    if not sample.matrix or not sample.reference_matrix:
        return ""
    pairs = zip(sample.matrix, sample.reference_matrix, strict=True)
    worst = max(abs(a - b) for ours, theirs in pairs for a, b in zip(ours, theirs, strict=True))
    said = f"differ by at most {worst:.1e} from" if worst else "agree to six digits with"
    return element("p", f"All numbers {said} the reference library’s.", class_="nest-differ")
