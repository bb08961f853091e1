"""The diagrams of a program's entries, each as a picture, and the data that they all open from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from nest.catalog.diagram.document import document
from nest.catalog.diagram.drawing import Anchor, svg
from nest.catalog.diagram.geometry import drawn
from nest.catalog.diagram.views import View, Views
from nest.ir import Function, Program

__all__ = ["Diagram", "Entry", "diagram"]

ASSETS = Path(__file__).parents[1] / "assets"

MANY = 14
"""Boxes of a picture at first: while there are fewer, methods of the model itself are shown open."""


@dataclass(frozen=True)
class Entry:
    """An entry of the model: `picture` is for the page; `file` stands alone."""

    name: str
    function: Function
    view: View
    picture: str
    file: str


@dataclass(frozen=True)
class Diagram:
    """Entries in the order in which they are shown, and the data of all."""

    entries: tuple[Entry, ...]
    data: bytes


def diagram(program: Program, first: str, anchor: Anchor) -> Diagram:
    """Draw a program's entries, `first` before the others.

    Args:
        anchor: the address of a class, given its name and module; None where it is shown nowhere.
    """
    views = Views(program)
    names = sorted(program.entries, key=lambda name: name != first)
    seen = {name: views.of(program.entries[name]) for name in names}
    opened = {name: _opened(view) for name, view in seen.items()}
    entries = []
    for name, view in seen.items():
        drawing = drawn(view, set(opened[name]))
        function = program.entries[name]
        label = _title(program, name)
        about = f"{name}{function.signature}. {_order(view)}"
        picture = svg(drawing, label, about, anchor)
        entries.append(Entry(name, function, view, picture, svg(drawing, label, about, _nowhere, _style())))
    return Diagram(
        tuple(entries), document({n: (_title(program, n), v, opened[n]) for n, v in seen.items()}, anchor)
    )


def _opened(view: View) -> list[str]:
    """Which boxes are open at first: methods of the model itself, and whatever stands alone."""
    found: list[str] = []
    count = _boxes(view)
    todo = [("", view)]
    while todo:
        path, here = todo.pop(0)
        for index, inside in here.insides.items():
            box = here.graph.boxes[index]
            own = box.call is not None and not box.call.attrs["path"]
            if (own or _boxes(here) == 1) and count + _boxes(inside) <= MANY:
                count += _boxes(inside)
                found.append(f"{path}{index}")
                todo.append((f"{path}{index}.", inside))
    return found


def _title(program: Program, name: str) -> str:
    return f"Diagram of {name} of {program.name}"


def _boxes(view: View) -> int:
    return sum(box.kind != "result" for box in view.graph.boxes)


def _order(view: View) -> str:
    names = [
        box.name + (f" times {box.times}" if box.times > 1 else "")
        for box in view.graph.boxes
        if box.kind != "result"
    ]
    return f"In order: {', '.join(names)}."


def _nowhere(name: str, module: str) -> None:
    """A picture that is a file has no page to point into."""


def _style() -> str:
    """Styles and colours of a picture that stands alone, light or dark as the reader's machine is."""
    page = (ASSETS / "diagram.css").read_text(encoding="utf-8")
    light, dark = (
        page.split(start, 1)[1].split("}", 1)[0]
        for start in ("\n.nest-diagram {", '"slate"] .nest-diagram {')
    )
    shared = (ASSETS / "diagram-picture.css").read_text(encoding="utf-8")
    at_night = f"@media(prefers-color-scheme:dark){{.nest-diagram{{{dark};background:#1e2129}}}}"
    return f".nest-diagram{{{light}}}\n{at_night}\n{shared}"
