"""Small pieces of Markdown and HTML that the pages share."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence

__all__ = [
    "attributes",
    "code",
    "count",
    "element",
    "escape",
    "fence",
    "file_size",
    "in_markdown",
    "table",
    "tabs",
]

_UNITS = ("B", "kB", "MB", "GB", "TB")


def escape(text: object) -> str:
    """Text as HTML shows it, in elements and in quoted attributes."""
    return html.escape(str(text), quote=True)


def in_markdown(text: object) -> str:
    """Text within a line of Markdown: one line, of which nothing is a mark, HTML or an attribute list."""
    line = " ".join(str(text).split())
    return re.sub(r"[\\`*_{}\[\]!#|:=&<>\"']", lambda mark: f"&#{ord(mark.group())};", line)


def attributes(**values: object) -> str:
    """` name="value"` for each that is not None; `class_` is `class`, `data_x` is `data-x`."""
    named = ((name.rstrip("_").replace("_", "-"), value) for name, value in values.items())
    return "".join(f' {name}="{escape(value)}"' for name, value in named if value is not None)


def element(tag: str, content: str, **values: object) -> str:
    """An HTML element around content that is HTML already."""
    return f"<{tag}{attributes(**values)}>{content}</{tag}>"


def code(text: object) -> str:
    """`text` in the font of code."""
    return element("code", escape(text))


def fence(text: str, language: str = "") -> str:
    """A fenced block of code, whatever backquotes it holds."""
    marks = "```"
    while marks in text:
        marks += "`"
    return f"{marks}{language}\n{text.rstrip()}\n{marks}\n"


def table(
    head: Sequence[str], rows: Iterable[Sequence[str]], *, label: str | None = None, **values: object
) -> str:
    """An HTML table in a box that scrolls by itself, so that a narrow page does not; cells are HTML already.

    `label` names the box for screen readers: the headings if left out.
    """
    headings = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>" for row in rows)
    inner = f"<table{attributes(**values)}><thead><tr>{headings}</tr></thead><tbody>{body}</tbody></table>"
    name = attributes(aria_label=label or ", ".join(head))
    return f'<div class="nest-scroll" tabindex="0" role="region"{name}>{inner}</div>\n'


def tabs(panels: Iterable[tuple[str, str]]) -> str:
    """Content tabs, as pymdownx.tabbed reads them; without it they are headings with indented text."""
    parts = []
    for title, text in panels:
        body = "\n".join(f"    {line}".rstrip() for line in text.strip().splitlines())
        parts.append(f'=== "{title}"\n\n{body}\n')
    return "\n".join(parts)


def file_size(size: int | None) -> str:
    """`151 MB`, in powers of ten and three digits; `unknown` for None."""
    if size is None:
        return "unknown"
    value, unit = float(size), 0
    while value >= 999.5 and unit + 1 < len(_UNITS):
        value, unit = value / 1000, unit + 1
    return f"{value:.3g} {_UNITS[unit]}"


def count(number: int) -> str:
    """`37.8 M`, as sizes of models are said."""
    for scale, unit in ((10**9, "B"), (10**6, "M"), (10**3, "k")):
        if number >= scale:
            return f"{number / scale:.3g} {unit}"
    return str(number)
