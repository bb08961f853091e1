"""Graphs with their texts in an entry's words: a callee's symbols are replaced by what its caller gives for them."""

from __future__ import annotations

from dataclasses import dataclass

from nest.catalog.diagram.graph import Box, Graph, function_graph
from nest.catalog.diagram.layout import Layout, lay_out, shape_of
from nest.catalog.diagram.wording import Label, Words, spellings
from nest.ir.passes.inline import Scope
from nest.ir.program import Function, Program

__all__ = ["View", "Views"]


@dataclass(eq=False)
class View:
    """A graph as one caller sees it: `types` by wire; `notes`, `lines` and `titles` by box; `insides` by box."""

    graph: Graph
    layout: Layout
    types: list[Label]
    notes: list[Label | None]
    lines: list[list[tuple[str, Label]]]
    titles: list[str]
    insides: dict[int, View]


class Views:
    """Every view that the entries of a program need, each once."""

    def __init__(self, program: Program) -> None:
        self.root = program.root
        self.spellings = spellings(program)
        self.graphs: dict[object, Graph] = {}
        self.views: dict[object, View] = {}

    def of(self, function: Function) -> View:
        """The view of an entry in its own symbols."""
        return self._view(id(function), self._graph(function), Scope((), {}, {}))

    def _graph(self, function: Function) -> Graph:
        if id(function) not in self.graphs:
            self.graphs[id(function)] = function_graph(function)
        return self.graphs[id(function)]

    def _view(self, key: object, graph: Graph, scope: Scope) -> View:
        spelled = tuple(f"{n}={d}" for n, d in [*sorted(scope.dims.items()), *sorted(scope.dtypes.items())])
        known = self.views.get((key, spelled))
        if known is None:
            words = Words(scope, self.spellings, named=graph.function.block is self.root)
            known = self.views[(key, spelled)] = View(
                graph,
                lay_out(shape_of(graph)),
                [words.type(w.type) for w in graph.wires],
                [words.text(b.note) if b.note else None for b in graph.boxes],
                [[(kind, words.text(text)) for kind, text in b.lines] for b in graph.boxes],
                [words.text(b.title).whole if b.title else "" for b in graph.boxes],
                {},
            )
            for index, box in enumerate(graph.boxes):
                if box.inside is not None:
                    known.insides[index] = self._inside(key, index, box, scope)
        return known

    def _inside(self, key: object, index: int, box: Box, scope: Scope) -> View:
        if box.call is not None:
            callee: Function = box.call.attrs["function"]
            inner = scope.inner(box.call.attrs["path"], box.call.attrs["symbols"] | box.call.attrs["dtypes"])
            return self._view(id(callee), self._graph(callee), inner)
        place = (key, index)
        if place not in self.graphs:
            assert box.inside is not None
            self.graphs[place] = box.inside()
        return self._view(place, self.graphs[place], scope)
