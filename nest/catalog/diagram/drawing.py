"""A diagram as SVG that stands still.

`diagram.js` draws the same elements, makes boxes open and close, and gives each a hint: the line of the definition, the
whole type. Here a hint stands only where a label is shortened, since the picture is part of a page.
"""

from __future__ import annotations

from collections.abc import Callable

from nest.catalog.diagram.geometry import Drawn, Line, texts, title
from nest.catalog.markup import attributes, element, escape

__all__ = ["svg"]

MARGIN = 8
Anchor = Callable[[str, str], "str | None"]


def svg(drawing: Drawn, label: str, description: str, anchor: Anchor, style: str = "") -> str:
    """The picture. `anchor` gives the address of a class of a module; `style` goes into a picture that is a file."""
    width, height = _number(drawing.width + 2 * MARGIN), _number(drawing.height + 2 * MARGIN)
    namespace = "http://www.w3.org/2000/svg" if style else None
    inside = element("title", escape(label)) + element("desc", escape(description))
    inside += element("style", style) if style else ""
    inside += element("g", _body(drawing, "", anchor, inner=False), transform=f"translate({MARGIN} {MARGIN})")
    return element(
        "svg",
        inside,
        xmlns=namespace,
        class_="nest-diagram",
        role="group",
        viewBox=f"0 0 {width} {height}",
        width=width,
        height=height,
    )


def _body(drawing: Drawn, path: str, anchor: Anchor, *, inner: bool) -> str:
    view = drawing.view
    parts = [_wire(drawing, number) for number in range(len(view.graph.wires))]
    for rect, wire, label in zip(drawing.types, view.graph.wires, view.types, strict=True):
        shown = label.shown if wire.name is None else f"{wire.name}: {label.shown}"
        whole = element("title", escape(label.whole)) if label.whole != label.shown else ""
        frame = f"<rect{_place(rect.x, rect.y, rect.width, rect.height)} rx='9'/>"
        parts.append(
            element("g", frame + _text(shown, rect.middle, rect.y + 12.5) + whole, class_="nest-type")
        )
    visible = [i for i, b in enumerate(view.graph.boxes) if not (inner and b.kind == "result")]
    parts += [_box(drawing, index, f"{path}{index}", anchor) for index in visible]
    return "".join(parts)


def _wire(drawing: Drawn, number: int) -> str:
    """All ways of one value, and the heads of its arrows."""
    lines = [line for line in drawing.lines if line.wire == number]
    ways = "".join(_way(line) for line in lines)
    if not ways:
        return ""
    heads = "".join(f"M{_number(x.x2)} {_number(x.y2)}l-3.5-6h7z" for x in lines if x.ends)
    path = f"<path class='nest-wire' d='{ways}'/>"
    return path + (f"<path class='nest-head' d='{heads}'/>" if heads else "")


def _way(line: Line) -> str:
    start, end = f"M{_number(line.x1)} {_number(line.y1)}", f"V{_number(line.y2)}"
    across = line.x2 - line.x1
    if abs(across) < 0.5:
        return start + end
    bend = min(6.0, abs(across) / 2, line.turn - line.y1)
    side = bend if across > 0 else -bend
    turn = _number(line.turn)
    return (
        f"{start}V{_number(line.turn - bend)}Q{_number(line.x1)} {turn} {_number(line.x1 + side)} {turn}"
        f"H{_number(line.x2 - side)}Q{_number(line.x2)} {turn} {_number(line.x2)} {_number(line.turn + bend)}{end}"
    )


def _box(drawing: Drawn, index: int, path: str, anchor: Anchor) -> str:
    view, rect = drawing.view, drawing.boxes[index]
    box = view.graph.boxes[index]
    opens, is_open = index in view.insides, index in drawing.insides
    link = anchor(box.class_name, box.class_module or "") if box.class_name else None
    round_ = 10 if box.kind in ("plumbing", "result") else 5
    parts = [f"<rect{_place(0, 0, rect.width, rect.height)} rx='{round_}'/>"]
    if is_open:
        parts.append(_sign("−") + _text(title(box), 30, 18, "nest-name nest-start"))
        at = 30 + len(title(box)) * 7.25 + 10
        parts.append(_linked(_text(box.class_name or "", at, 18, "nest-class nest-start"), link))
        inside = drawing.insides[index]
        moved = f"translate({_number((rect.width - inside.width) / 2)} 28)"
        parts.append(element("g", _body(inside, f"{path}.", anchor, inner=True), transform=moved))
    else:
        parts += [_sign("+")] if opens else []
        parts += _texts(drawing, index, link)
    parts += [_arrow(link, box.class_name or "", rect.width)] if opens and link else []
    kind = f"nest-box nest-box--{box.kind}" + (" nest-box--open" if is_open else "")
    place = f"translate({_number(rect.x)} {_number(rect.y)})"
    return element("g", "".join(parts), class_=kind, transform=place, data_path=path if opens else None)


def _texts(drawing: Drawn, index: int, link: str | None) -> list[str]:
    middle, found, y = drawing.boxes[index].width / 2, [], 19.0
    for style, text in texts(drawing.view, index):
        if style == "small":
            found.append(_text(text, middle, 14))
            continue
        line = _text(text, middle, y, f"nest-{style}")
        found.append(_linked(line, link) if style == "class" else line)
        y += 15 if style == "name" else 14
    return found


def _linked(text: str, link: str | None) -> str:
    return element("a", text, href=link) if link and text else text


def _arrow(link: str, name: str, width: float) -> str:
    """A way to the class that no click on the box takes by accident."""
    ground = f"<rect{_place(width - 27, 2, 24, 24)} rx='4'/>"
    return element(
        "a",
        ground + _text("↗", width - 15, 18.5),
        href=link,
        aria_label=f"Source of {name}",
        class_="nest-to",
    )


def _sign(sign: str) -> str:
    return _text(sign, 15, 18.5, "nest-sign")


def _text(text: str, x: float, y: float, style: str | None = None) -> str:
    return element("text", escape(text), x=_number(x), y=_number(y), class_=style) if text else ""


def _place(x: float, y: float, width: float, height: float) -> str:
    return attributes(x=_number(x), y=_number(y), width=_number(width), height=_number(height))


def _number(value: float) -> str:
    """At most one digit after the point, and none where it is 0."""
    return f"{round(value, 1):g}"
