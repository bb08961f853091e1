"""Diagrams: true to the program, folded where layers are alike, and laid out so that nothing covers anything."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from nest.catalog.diagram import Diagram, diagram
from nest.catalog.diagram.geometry import Drawn, Rect, drawn
from nest.catalog.diagram.graph import Graph, function_graph
from nest.catalog.diagram.views import View, Views
from nest.ir import Dim, Program
from nest.ir.program import Value
from nest.layers import Block, Int32, State, Tensor, elaborate, entry, while_loop
from nest.layers import any as any_
from nest.loading import program_of
from nest.registry import cards, find

NAMES = sorted(card.name for card in cards()[0])
FOLDER = Path(__file__).parents[1] / "data" / "gemma2" / "gemma2-2b"


def below_three(block: Any, n: Tensor) -> Tensor:
    return any_(n.reshape(1) < 3, 0)


def one_more(block: Any, n: Tensor) -> tuple[Tensor, ...]:
    block.seen.assign(n.reshape(1))
    return (n + 1,)


class Counting(Block):
    """Counts to three, and remembers where it was."""

    def build(self) -> None:
        self.seen = State("1", "i32")

    @entry
    def count(self, n: Int32[Tensor, ""]) -> Int32[Tensor, ""]:
        (n,) = while_loop(self, below_three, one_more, [n], max_trips=100)
        return n


@cache
def program(name: str) -> Program:
    return program_of(find(name))


@cache
def pictures(name: str) -> Diagram:
    return diagram(program(name), find(name).manifest.source.entry, lambda name, module: f"#{name}")


def below(view: View) -> Iterator[View]:
    """A view and all that its boxes open to, each place once."""
    yield view
    for inside in view.insides.values():
        yield from below(inside)


def paths(view: View, start: str = "") -> Iterator[str]:
    """Of every box that opens."""
    for index, inside in view.insides.items():
        yield f"{start}{index}"
        yield from paths(inside, f"{start}{index}.")


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_drawn(name: str) -> None:
    made = pictures(name)
    assert made.entries[0].name == find(name).manifest.source.entry
    assert {e.name for e in made.entries} == set(program(name).entries)
    for shown in made.entries:
        for picture in (shown.picture, shown.file):
            assert ET.fromstring(picture).tag.endswith("svg")
    assert len(made.entries[0].picture) < 16_000
    assert len(made.data) < 120_000
    json.loads(made.data)


@pytest.mark.parametrize("name", NAMES)
def test_nothing_covers_anything(name: str) -> None:
    for shown in pictures(name).entries:
        _no_overlap(drawn(shown.view, set()))
        once = {str(box) for box in shown.view.insides}
        _no_overlap(drawn(shown.view, once))
    first = pictures(name).entries[0].view
    _no_overlap(drawn(first, set(paths(first))))


def _no_overlap(drawing: Drawn) -> None:
    visible = [r for r in [*drawing.boxes, *drawing.types] if r.height]
    for index, a in enumerate(visible):
        assert min(a.x, a.y) >= -0.01
        assert a.x + a.width <= drawing.width + 0.01
        assert a.bottom <= drawing.height + 0.01
        for b in visible[:index]:
            assert a.x >= b.x + b.width or b.x >= a.x + a.width or a.y >= b.bottom or b.y >= a.bottom
    for line in drawing.lines:
        straight = abs(line.x1 - line.x2) < 0.5
        for rect in visible:
            if straight:
                assert not _upright(line.x1, line.y1, line.y2, rect)
            else:
                assert not _upright(line.x1, line.y1, line.turn, rect)
                assert not _upright(line.x2, line.turn, line.y2, rect)
                assert not _level(line.turn, line.x1, line.x2, rect)
    runs = list(_runs(drawing))
    for index, one in enumerate(runs):
        for other in runs[:index]:
            assert one[0] == other[0] or not _on_each_other(one[1:], other[1:])
    for inside in drawing.insides.values():
        _no_overlap(inside)


def _runs(drawing: Drawn) -> Iterator[tuple[int, bool, float, float, float]]:
    """The straight parts of wires: wire, whether it is upright, where across, from, to."""
    for line in drawing.lines:
        if abs(line.x1 - line.x2) < 0.5:
            yield line.wire, True, line.x1, line.y1, line.y2
        else:
            yield line.wire, True, line.x1, line.y1, line.turn
            yield line.wire, True, line.x2, line.turn, line.y2
            yield line.wire, False, line.turn, min(line.x1, line.x2), max(line.x1, line.x2)


def _on_each_other(a: tuple[bool, float, float, float], b: tuple[bool, float, float, float]) -> bool:
    """Whether parts of two wires run along each other, so that nobody could tell which is which."""
    return a[0] == b[0] and abs(a[1] - b[1]) < 2 and max(a[2], b[2]) + 1 < min(a[3], b[3])


def _upright(x: float, y1: float, y2: float, rect: Rect) -> bool:
    """Whether an upright line crosses the inner part of a rectangle."""
    return rect.x + 1 < x < rect.x + rect.width - 1 and max(y1, rect.y + 1) < min(y2, rect.bottom - 1)


def _level(y: float, x1: float, x2: float, rect: Rect) -> bool:
    """Whether a level line crosses it."""
    left, right = sorted((x1, x2))
    return rect.y + 1 < y < rect.bottom - 1 and max(left, rect.x + 1) < min(right, rect.x + rect.width - 1)


@pytest.mark.parametrize("name", NAMES)
def test_wires_of_a_function_are_its_values(name: str) -> None:
    """Each box takes and makes what its node does, type for type; what is not drawn is written into a box."""
    for function in program(name).functions():
        graph = function_graph(function)
        for index, box in enumerate(graph.boxes):
            if box.call is None or box.times > 1:
                continue
            into = {port: w for w in graph.wires for target, port in w.to if target == index}
            for port, position in enumerate(box.arguments):
                value = box.call.inputs[position]
                assert isinstance(value, Value)
                assert str(into[port].type) == str(value.type)
            written = [
                x for i, x in enumerate(box.call.inputs) if isinstance(x, Value) and i not in box.arguments
            ]
            assert len([kind for kind, _ in box.lines if kind != "state"]) == len(written)
            out = sorted((w.port, str(w.type)) for w in graph.wires if w.box == index)
            assert out == [(i, str(v.type)) for i, v in enumerate(box.call.outputs)]


@pytest.mark.parametrize("name", NAMES)
def test_every_call_is_in_the_graph(name: str) -> None:
    """Counted with repeats, a function's graph has the calls of the function, and no others."""
    for function in program(name).functions():
        wanted = Counter((n.op, id(n.attrs["function"])) for n in function.nodes if n.op == "call")
        assert Counter(_calls(function_graph(function), 1)) == wanted


def _calls(graph: Graph, times: int) -> dict[tuple[str, int], int]:
    found: Counter[tuple[str, int]] = Counter()
    for box in graph.boxes:
        if box.call is not None:
            found[("call", id(box.call.attrs["function"]))] += times * box.times
        elif box.kind == "repeat":
            assert box.inside is not None
            found += Counter(_calls(box.inside(), times * box.times))
    return found


@pytest.mark.parametrize("name", ["whisper-tiny", "smollm2-135m-instruct", "modernbert-base", "resnet-18"])
def test_types_inside_of_a_box_are_those_outside(name: str) -> None:
    """In the entry's symbols, what a block is given and gives has one type, whichever signature spells it."""
    for shown in pictures(name).entries:
        for view in below(shown.view):
            for index, inside in view.insides.items():
                box = view.graph.boxes[index]
                into = {
                    port: w for w, wire in enumerate(view.graph.wires) for b, port in wire.to if b == index
                }
                for port, position in enumerate(box.arguments):
                    _same(view.types[into[port]].whole, inside.types[position].whole)
                out = {wire.port: w for w, wire in enumerate(view.graph.wires) if wire.box == index}
                results = [b for b, made in enumerate(inside.graph.boxes) if made.kind == "result"]
                for port, result in enumerate(results):
                    (made,) = [w for w, wire in enumerate(inside.graph.wires) if (result, 0) in wire.to]
                    _same(view.types[out[port]].whole, inside.types[made].whole)


def _same(a: str, b: str) -> None:
    """Whether two types as text are one type."""
    (dtype, dims), (other, others) = (t.rstrip("]").split("[", 1) for t in (a, b))
    assert dtype == other
    assert dims.count(",") == others.count(",")
    for x, y in zip(dims.split(","), others.split(","), strict=True):
        assert x == y or _dim(x).same(_dim(y)), (a, b)


def _dim(text: str) -> Dim:
    names = {n: Dim.symbol(n) for n in re.findall(r"[A-Za-z_]\w*", text)}
    return Dim.of(eval(text, {}, names))  # sizes are Python over names


def test_whisper_is_four_layers_and_four_layers() -> None:
    view = Views(program("whisper-tiny")).of(program("whisper-tiny").entries["encode"])
    assert [(b.name, b.times) for b in view.graph.boxes if b.times > 1] == [("encoder_layers", 4)]
    step = function_graph(program("whisper-tiny").entries["step"])
    (layers,) = [b for b in step.boxes if b.times > 1]
    assert (layers.name, layers.times) == ("decoder_layers.step", 4)
    assert [text for kind, text in layers.lines if kind == "state"] == [
        ("reads cross_k, cross_v",), ("updates self_k, self_v",),
    ]  # fmt: skip


def test_layers_that_alternate_are_folded_in_turn() -> None:
    graph = function_graph(program("modernbert-base").entries["encode"])
    names = [(b.name, b.times, b.note) for b in graph.boxes if b.name.startswith("layers")]
    assert names == [("layers.0", 1, None), ("layers[1:22]", 7, ("3 in turn",))]
    (repeat,) = [b for b in graph.boxes if b.kind == "repeat"]
    assert repeat.inside is not None
    inside = repeat.inside()
    assert [b.name for b in inside.boxes if b.kind == "call"] == [
        "layers[1:22:3]", "layers[2:22:3]", "layers[3:22:3]",
    ]  # fmt: skip
    local = [b.call.attrs["function"].block.statics["local"] for b in inside.boxes if b.call is not None]
    assert local == [True, True, False]


def test_windows_in_every_other_layer() -> None:
    gemma = program_of(find(FOLDER), trust_source=True)
    graph = function_graph(gemma.entries["forward"])
    repeats = [(b.times, b.note) for b in graph.boxes if b.kind == "repeat"]
    assert repeats == [(13, ("2 in turn",))]


@pytest.mark.parametrize("name", ["whisper-tiny", "resnet-50"])
def test_the_data_has_every_function_once(name: str) -> None:
    data = json.loads(pictures(name).data)
    views = {id(v) for e in pictures(name).entries for v in below(e.view)}
    assert len(data["views"]) == len(views)
    assert len(data["graphs"]) <= len(data["views"])
    assert len(data["texts"]) == len({json.dumps(t) for t in data["texts"]})


def test_a_loop_opens_to_its_condition_and_its_body() -> None:
    made = diagram(elaborate(Counting), "count", lambda name, module: None)
    view = made.entries[0].view
    (loop,) = [i for i, b in enumerate(view.graph.boxes) if b.kind == "loop"]
    inside = view.insides[loop]
    assert [(b.name, b.note) for b in inside.graph.boxes if b.kind == "call"] == [
        ("below_three", ("while",)), ("one_more", ("body",)),
    ]  # fmt: skip
    assert [label.whole for label in inside.types] == ["i32[]", "bool[]", "i32[]"]
    assert [b.name for b in inside.insides[1].graph.boxes if b.kind == "write"] == ["assign"]
    _no_overlap(drawn(view, set(paths(view))))


def test_states_constants_and_parameters_are_said() -> None:
    steps = [f for f in program("whisper-tiny").functions() if f.name == "step"]
    graph = function_graph(next(f for f in steps if f.block.name == "DecoderLayer"))
    states = [(b.kind, b.name, b.note) for b in graph.boxes if b.kind in ("read", "write")]
    assert states == [
        ("write", "update", ("self_k", " ", "axis=", "2")), ("write", "update", ("self_v", " ", "axis=", "2")),
        ("read", "read", ("cross_k",)), ("read", "read", ("cross_v",)),
    ]  # fmt: skip
    prefill = Views(program("smollm2-135m-instruct")).of(program("smollm2-135m-instruct").entries["prefill"])
    written = [(kind, label.whole) for lines in prefill.lines for kind, label in lines]
    assert ("param", "token_embedding: T[Vocab, D]") in written
    assert ("constant", "inv_freq = constant: f32[32]") in written
