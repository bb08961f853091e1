"""Coordinates in pixels of a view whose open boxes show their inside. `diagram.js` computes the same by the same rule.

Rows are as high as the highest of their cells, lanes as wide as the widest; a cell lies in the middle of both. Text is
monospaced, so that its width is known without a browser.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from nest.catalog.diagram.graph import Box
from nest.catalog.diagram.views import View

__all__ = ["Drawn", "Line", "Rect", "drawn", "texts"]

CHAR, SMALL = 7.25, 6.35
"""Widths of a character of 12 and of 10.5 pixels."""
LANE, ROW_TO_TYPE, ROW_TO_BOX, SLOT = 18.0, 10.0, 17.0, 7.0
TYPE_HEIGHT, TRACK, HEAD, PAD = 18.0, 12.0, 28.0, 14.0


@dataclass
class Rect:
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


@dataclass(frozen=True)
class Line:
    """A way down from one point to another, sideways at `turn`; `ends` where an arrow is due."""

    wire: int
    x1: float
    y1: float
    x2: float
    y2: float
    turn: float
    ends: bool = False


@dataclass
class Drawn:
    """A view with coordinates from its own upper left corner. `insides` are relative to their boxes."""

    view: View
    width: float = 0.0
    height: float = 0.0
    boxes: list[Rect] = field(default_factory=list)
    types: list[Rect] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    insides: dict[int, Drawn] = field(default_factory=dict)


def texts(view: View, index: int) -> list[tuple[str, str]]:
    """The lines of a closed box: (style, text). The first is its name."""
    box = view.graph.boxes[index]
    note = view.notes[index]
    if box.kind == "plumbing":
        return [("small", box.name + (f" {note.shown}" if note else ""))]
    if box.kind == "result":
        return [("small", "result")]
    found = [("name", title(box))]
    if box.class_name:
        found.append(("class", box.class_name))
    if note:
        found.append(("note", note.shown))
    return found + [(kind, label.shown) for kind, label in view.lines[index]]


def title(box: Box) -> str:
    """The name of a box, and how often it is done."""
    return box.name + (f" × {box.times}" if box.times > 1 else "")


def drawn(view: View, opened: Set[str], path: str = "", *, inner: bool = False) -> Drawn:
    """Lay a view out in pixels. `opened` are paths of boxes, such as `3.0`: box 0 inside of box 3."""
    made = Drawn(view)
    sizes = [_size(made, index, opened, path, inner) for index in range(len(view.graph.boxes))]
    names = [w.name for w in view.graph.wires]
    widths = [
        len(t.shown if n is None else f"{n}: {t.shown}") * SMALL + 14
        for n, t in zip(names, view.types, strict=True)
    ]
    layout = view.layout
    heights, lanes = [0.0] * layout.rows, [TRACK] * layout.lanes
    for (row, lane), (width, height) in zip(layout.boxes, sizes, strict=True):
        heights[row], lanes[lane] = max(heights[row], height), max(lanes[lane], width)
    for (row, lane), width in zip(layout.types, widths, strict=True):
        heights[row], lanes[lane] = max(heights[row], TYPE_HEIGHT), max(lanes[lane], width)
    left, top = _sums(lanes, [LANE] * len(lanes)), _sums(heights, _gaps(layout.gaps))
    made.width = left[-1] - LANE if lanes else 0.0
    made.height = top[-2] + heights[-1] if heights else 0.0
    for (row, lane), (width, height) in zip(layout.boxes, sizes, strict=True):
        x, y = left[lane] + (lanes[lane] - width) / 2, top[row] + (heights[row] - height) / 2
        made.boxes.append(Rect(x, y, width, height))
    for (row, lane), width in zip(layout.types, widths, strict=True):
        made.types.append(Rect(left[lane] + (lanes[lane] - width) / 2, top[row], width, TYPE_HEIGHT))
    tracks = [None if t is None else left[t] + lanes[t] / 2 for t in layout.tracks]
    _wire(made, tracks, [t + h for t, h in zip(top, heights, strict=False)], top)
    return made


def _size(made: Drawn, index: int, opened: Set[str], path: str, inner: bool) -> tuple[float, float]:
    box, here = made.view.graph.boxes[index], f"{path}{index}"
    lines = texts(made.view, index)
    if box.kind == "result" and inner:
        return 12.0, 0.0
    if box.kind in ("plumbing", "result"):
        return len(lines[0][1]) * SMALL + 20, 20.0
    if here in opened and index in made.view.insides:
        inside = drawn(made.view.insides[index], opened, f"{here}.", inner=True)
        made.insides[index] = inside
        head = len(lines[0][1]) * CHAR + len(box.class_name or "") * SMALL + 76
        return max(inside.width + 2 * PAD, head), HEAD + inside.height
    sign = 34 if index in made.view.insides else 0
    width = max(len(text) * (CHAR if style == "name" else SMALL) for style, text in lines)
    return width + 24 + sign, 12 + 16 + 14 * (len(lines) - 1)


def _sums(sizes: list[float], gaps: list[float]) -> list[float]:
    """Where each begins, and where the last ends."""
    found = [0.0]
    for size, gap in zip(sizes, gaps, strict=True):
        found.append(found[-1] + size + gap)
    return found


def _gaps(slots: tuple[int, ...]) -> list[float]:
    return [(ROW_TO_TYPE if row % 2 else ROW_TO_BOX) + SLOT * count for row, count in enumerate(slots)]


def _spread(rect: Rect, port: int, ports: int) -> float:
    step = min(22.0, (rect.width - 20) / (ports - 1)) if ports > 1 else 0.0
    return rect.middle + (port - (ports - 1) / 2) * step


def _shift(made: Drawn, index: int) -> float:
    """How far the inside of an open box lies to the right of its left side."""
    return (made.boxes[index].width - made.insides[index].width) / 2


def _into(made: Drawn, index: int, place: int) -> float:
    """Where input number `place` of a box is: above the argument that it is, where the box is open."""
    box = made.view.graph.boxes[index]
    if index in made.insides:
        types = made.insides[index].types
        return made.boxes[index].x + _shift(made, index) + types[box.arguments[place]].middle
    return _spread(made.boxes[index], made.view.layout.ports[index][place], len(box.arguments))


def _out_of(made: Drawn, index: int, port: int) -> float:
    box = made.view.graph.boxes[index]
    if index in made.insides:
        inside = made.insides[index]
        results = [
            r for r, b in zip(inside.boxes, inside.view.graph.boxes, strict=True) if b.kind == "result"
        ]
        return made.boxes[index].x + _shift(made, index) + results[port].middle
    return _spread(made.boxes[index], port, box.outputs)


def _wire(made: Drawn, tracks: list[float | None], bottoms: list[float], tops: list[float]) -> None:
    layout = made.view.layout
    for number, wire in enumerate(made.view.graph.wires):
        label, row, slots = made.types[number], layout.types[number][0], dict(layout.slots[number])

        def line(x1: float, y1: float, x2: float, y2: float, gap: int, ends: bool = False) -> None:
            turn = bottoms[gap] + 6 + SLOT * slots.get(gap, 0)  # noqa: B023 - called within this turn of the loop
            made.lines.append(Line(number, x1, y1, x2, y2, turn, ends))  # noqa: B023

        if wire.box is not None:
            line(
                _out_of(made, wire.box, wire.port),
                made.boxes[wire.box].bottom,
                label.middle,
                label.y,
                row - 1,
            )
        track = tracks[number]
        last = max((layout.boxes[box][0] for box, _ in wire.to), default=row)
        if track is not None:
            line(label.middle, label.bottom, track, tops[row + 1], row)
            line(track, tops[row + 1], track, bottoms[last - 1], row + 1)
        for box, place in wire.to:
            above = layout.boxes[box][0] - 1
            near = above == row or track is None
            x, y = (label.middle, label.bottom) if near else (track or 0.0, bottoms[above])
            line(x, y, _into(made, box, place), made.boxes[box].y, above, True)
