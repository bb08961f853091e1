"""Texts as HTML, and two texts beside each other with what differs marked."""

from __future__ import annotations

import difflib
import re

from nest.catalog.markup import element, escape

__all__ = ["beside", "differences", "line", "prose", "quoted"]

# Markdown keeps places by some control characters, and none has a look of its own.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def prose(text: str) -> str:
    """`text` as HTML that Markdown leaves as it is: its line breaks are spelled out."""
    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)).replace("\n", "&#10;")


def line(text: str) -> str:
    """`text` in one line without control characters, for attributes."""
    return " ".join(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text).split())


def quoted(text: str) -> str:
    """A text as it was written, lines and all."""
    return element("p", prose(text.strip()), class_="nest-said")


def differences(ours: str, theirs: str) -> tuple[str, str, int]:
    """Both texts as HTML, in which words that the other one lacks are marked, and how many words are.

    In ours they are `<ins>`, in the reference's `<del>`.
    """
    left, right = _words(ours), _words(theirs)
    plain = [word.strip() for word in left], [word.strip() for word in right]
    found = difflib.SequenceMatcher(None, plain[0], plain[1], autojunk=False).get_opcodes()
    changed = sum(max(b - a, d - c) for kind, a, b, c, d in found if kind != "equal")
    first = "".join(_marked("ins", kind, left[a:b]) for kind, a, b, _, _ in found)
    second = "".join(_marked("del", kind, right[c:d]) for kind, _, _, c, d in found)
    return first, second, changed


def _words(text: str) -> list[str]:
    """With the spaces before each."""
    return re.findall(r"\s*\S+|\s+$", text)


def _marked(tag: str, kind: str, words: list[str]) -> str:
    text = "".join(words)
    if kind == "equal" or not text:
        return prose(text)
    body = text.lstrip()
    return prose(text[: len(text) - len(body)]) + element(tag, prose(body))


def beside(ours: str | None, theirs: str | None, *, shown: bool = False) -> str:
    """This project's text beside the reference library's; equal ones stand once, the reference's folded away.

    Args:
        ours: as measured, or None. theirs: likewise.
        shown: whether the page shows `ours` already, so that it need not stand here if they are equal.
    """
    if ours is None and theirs is None:
        return ""
    if ours is None or theirs is None:
        who = "The reference library's" if ours is None else "Ours"
        text = theirs if ours is None else ours
        return "" if shown and theirs is None else _column(who, prose((text or "").strip()))
    if ours == theirs:
        once = "" if shown else quoted(ours)
        folded = "<summary>The reference library gives the same text, word for word</summary>"
        return f'{once}<details class="nest-same">{folded}{quoted(theirs)}</details>'
    first, second, count = differences(ours, theirs)
    said = f"{count} {'word differs' if count == 1 else 'words differ'}" if count else "Only spaces differ"
    note = element("p", f"{said}; they are marked.", class_="nest-differ")
    return f'{note}<div class="nest-beside">{_column("Ours", first)}{_column("The reference library’s", second)}</div>'


def _column(title: str, html: str) -> str:
    head = element("p", escape(title), class_="nest-who")
    return element("div", head + element("p", html, class_="nest-said"), class_="nest-column")
