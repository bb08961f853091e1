"""The data of a page's diagrams: what `diagram.js` reads when somebody opens a box."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from nest.catalog.diagram.graph import Graph
from nest.catalog.diagram.layout import Layout
from nest.catalog.diagram.views import View
from nest.catalog.diagram.wording import Label

__all__ = ["document"]


def document(
    entries: Mapping[str, tuple[str, View, list[str]]], anchor: Callable[[str, str], str | None]
) -> bytes:
    """Entries with a label, their view and what is open at first, as JSON.

    `graphs` hold what does not depend on the caller, `views` the texts, as numbers of `texts`, and the views that boxes
    open to. A text is a string, or a pair of what is shown and the whole.
    """
    writer = _Writer(anchor)
    listed = [
        {"name": name, "label": label, "view": writer.view(view), "open": opened}
        for name, (label, view, opened) in entries.items()
    ]
    data = {"entries": listed, "graphs": writer.graphs, "views": writer.views, "texts": writer.texts}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).encode()


class _Writer:
    def __init__(self, anchor: Callable[[str, str], str | None]) -> None:
        self.anchor = anchor
        self.graphs: list[dict[str, Any]] = []
        self.views: list[dict[str, Any] | None] = []
        self.texts: list[str | list[str]] = []
        self._graphs: dict[int, int] = {}
        self._views: dict[int, int] = {}
        self._texts: dict[Label, int] = {}

    def view(self, view: View) -> int:
        if id(view) not in self._views:
            number = self._views[id(view)] = len(self.views)
            self.views.append(None)
            self.views[number] = {
                "graph": self._graph(view.graph, view.layout),
                "types": [self._text(t) for t in view.types],
                "notes": [None if n is None else self._text(n) for n in view.notes],
                "lines": [[[kind, self._text(t)] for kind, t in lines] for lines in view.lines],
                "titles": [self._text(Label(t, t)) if t else None for t in view.titles],
                "insides": {str(box): self.view(inside) for box, inside in view.insides.items()},
            }
        return self._views[id(view)]

    def _text(self, label: Label) -> int:
        if label not in self._texts:
            self._texts[label] = len(self.texts)
            self.texts.append(label.whole if label.shown == label.whole else [label.shown, label.whole])
        return self._texts[label]

    def _graph(self, graph: Graph, layout: Layout) -> int:
        if id(graph) not in self._graphs:
            self._graphs[id(graph)] = len(self.graphs)
            boxes = [
                {
                    "kind": b.kind,
                    "name": b.name,
                    "class": b.class_name,
                    "link": self.anchor(b.class_name, b.class_module or "") if b.class_name else None,
                    "times": b.times if b.times > 1 else None,
                    "args": b.arguments,
                    "outs": b.outputs,
                    "cell": cell,
                    "ports": ports,
                }
                for b, cell, ports in zip(graph.boxes, layout.boxes, layout.ports, strict=True)
            ]
            wires = [
                {
                    "name": w.name,
                    "box": w.box,
                    "port": w.port,
                    "to": w.to,
                    "cell": cell,
                    "track": t,
                    "slots": dict(s),
                }
                for w, cell, t, s in zip(graph.wires, layout.types, layout.tracks, layout.slots, strict=True)
            ]
            self.graphs.append(
                {"rows": layout.rows, "lanes": layout.lanes, "gaps": layout.gaps,
                 "boxes": [_given(b) for b in boxes], "wires": [_given(w) for w in wires]}
            )  # fmt: skip
        return self._graphs[id(graph)]


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
