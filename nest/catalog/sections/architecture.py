"""Architecture: the program as a diagram, its entries, generics and blocks, and the definition's source."""

from __future__ import annotations

import json
import re

from nest.catalog.diagram import Diagram, Entry, diagram
from nest.catalog.facts import Facts
from nest.catalog.markup import code, element, escape, table
from nest.catalog.readme import Readme
from nest.catalog.section import Section
from nest.catalog.source import Shown, Sources
from nest.catalog.symbols import symbols
from nest.ir import inspect_text

__all__ = ["section"]

DATA, SOURCE = "diagram.json", "source.json"
KEY = (
    "A box is something that is done, a label the type of what leaves it. Green boxes are blocks; + shows what is "
    "inside, and × how often a box is done, one after another. A dashed box is a loop over several. Small round ones "
    "only move or convert. Parameters and constants are written into the box that takes them; boxes of states say "
    "read, assign or update."
)


def section(facts: Facts, readme: Readme) -> Section:
    """What the README says, then what the program shows."""
    program = facts.program
    sources = Sources(facts.entry.source, _title(facts), program)
    drawn = diagram(program, facts.entry.manifest.source.entry, sources.anchor)
    rows = table(("Name", "Value", "What it is"), symbols(program), class_="nest-symbols")
    text = [
        readme.section("Architecture"),
        "### Diagram { #diagram }",
        _figure(drawn),
        "### Entries { #entries }",
        _entries(drawn),
        "### Generics and symbols { #generics }",
        rows,
        "### Blocks { #blocks }",
        _folded(
            f"As <code>nest inspect {escape(facts.name)}</code> prints them",
            "blocks",
            f"{_file_link('blocks')}.",
        ),
        "### Source { #source }",
        *(_source(sources, part, shown) for part, shown in sources.parts.items()),
    ]
    files = {DATA: drawn.data, **{_file(entry): entry.file.encode() for entry in drawn.entries}}
    texts = {part: sources.html(shown) for part, shown in sources.parts.items()}
    files[SOURCE] = json.dumps({"blocks": _blocks(facts, sources), **texts}).encode()
    files["blocks.txt"] = inspect_text(program).encode()
    files |= {f"{part}.txt": shown.text.encode() for part, shown in sources.parts.items()}
    return Section("Architecture", "architecture", "\n\n".join(text), files, ("architecture.js",))


def _title(facts: Facts) -> str:
    """The definition's file, with the entry whose folder it is in."""
    return f"zoo/{facts.entry.source.parent.name}/{facts.entry.source.name}"


def _file(entry: Entry) -> str:
    return f"diagram-{entry.name}.svg"


def _figure(drawn: Diagram) -> str:
    """The first entry's picture; the others' are links, which the script turns into a choice."""
    first = drawn.entries[0]
    links = "".join(
        element(
            "a", escape(e.name), href=_file(e), data_entry=e.name, aria_current="true" if e is first else None
        )
        for e in drawn.entries
    )
    buttons = "".join(
        element("button", words, type="button", data_do=does)
        for does, words in (("open", "Open a level"), ("close", "Close all"), ("fill", "Full screen"))
    )
    bar = element("div", links + buttons, class_="nest-diagram-bar", role="group", aria_label="Entry to show")
    box = element(
        "div", first.picture, class_="nest-scroll", tabindex="0", role="region", aria_label="Diagram"
    )
    key = element("p", KEY, class_="nest-diagram-key")
    return element(
        "div",
        f"\n{bar}\n{box}\n{key}\n",
        class_="nest-diagram-box",
        data_diagram=DATA,
        data_search_exclude="",
    )


def _entries(drawn: Diagram) -> str:
    items = []
    for entry in drawn.entries:
        doc = (entry.function.doc or "").strip().split("\n")[0]
        arrow = element("span", "-&gt;")
        signature = element("code", escape(f"{entry.name}{entry.function.signature}").replace("-&gt;", arrow))
        items.append(element("dt", signature) + element("dd", _prose(doc)))
    return element("dl", "".join(items), class_="nest-entries")


def _prose(doc: str) -> str:
    """A line of a docstring, where backquotes are code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", escape(doc))


def _blocks(facts: Facts, sources: Sources) -> str:
    """The text of `nest inspect`, with the names of blocks as links to their classes."""
    links = {
        b.name: link for b in facts.program.root.distinct() if (link := sources.anchor(b.name, b.module))
    }
    names = re.compile(rf"\b({'|'.join(map(re.escape, links))})(?=&lt;)" if links else r"(?!)")
    lines = [
        names.sub(lambda found: element("a", found[1], href=links[found[1]]), line)
        if line.lstrip().startswith(("block ", "sub "))
        else line
        for line in escape(inspect_text(facts.program)).rstrip().split("\n")
    ]
    return element("pre", element("code", "\n".join(lines)), class_="nest-source")


def _source(sources: Sources, part: str, shown: Shown) -> str:
    """A place for a source. What says where it is has the classes, so that a link to one leads here before it comes."""
    classes = ", ".join(
        f"{element('span', escape(name), id=sources.mark(name, shown))} (line {line})"
        for name, line in shown.classes.items()
    )
    return _folded(code(shown.title), part, f"{_file_link(part)}, with the classes {classes}.")


def _file_link(part: str) -> str:
    return element("a", f"{part}.txt", href=f"{part}.txt")


def _folded(summary: str, part: str, about: str) -> str:
    """A place for a long text, which the script fills when it is opened; without the script it is a file beside the
    page. Half of a page would be texts that few come for."""
    label = re.sub("<[^>]+>", "", summary)
    body = element("p", about, class_="nest-elsewhere")
    inside = element("div", body, class_="nest-scroll", tabindex="0", role="region", aria_label=label)
    parts = f"<summary>{summary}</summary>\n{inside}\n"
    return element(
        "details", parts, class_="nest-folded", data_source=SOURCE, data_part=part, data_search_exclude=""
    )
