"""What is folded must be alike in all that a picture shows, wiring and what is taken out of the middle included."""

from __future__ import annotations

import pytest

from nest.catalog.diagram.graph import Box, Graph, function_graph
from nest.layers import (
    Block,
    Dim,
    DType,
    Float,
    Linear,
    Static,
    Tensor,
    block_array,
    concat,
    elaborate,
    entry,
    gelu,
)


class Layer(Block):
    """One input or two."""

    D: Dim
    T: DType
    scale: Static[float] = 1.0

    def build(self) -> None:
        self.lin = Linear(self.D, self.D, self.T)

    def forward(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return gelu(self.lin(x)) * self.scale

    def with_start(self, x: Float[Tensor, "B S D"], start: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        return self.lin(x) + start


class Net(Block):
    """Ways to run six layers."""

    D: Dim
    T: DType

    def build(self) -> None:
        self.layers = block_array(6, lambda i: Layer(self.D, self.T))
        self.mixed = block_array(6, lambda i: Layer(self.D, self.T, scale=2.0 if i == 5 else 1.0))

    @entry
    def plain(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        for layer in self.layers:
            x = layer(x)
        return x

    @entry
    def residual(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        for layer in self.layers:
            x = x + layer(x)
        return x

    @entry
    def last_differs(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        for layer in self.mixed:
            x = layer(x)
        return x

    @entry
    def from_the_start(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        start = x
        for layer in self.layers:
            x = layer.with_start(x, start)
        return x

    @entry
    def exchanged(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        start = gelu(x)
        for i, layer in enumerate(self.layers):
            x = layer.with_start(x, start) if i % 2 else layer.with_start(start, x)
        return x

    @entry
    def two_carried(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        y = gelu(x)
        for layer in self.layers:
            x, y = layer(x) + y, gelu(y)
        return x

    @entry
    def from_the_middle(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S 2*D"]:
        middle = x
        for i, layer in enumerate(self.layers):
            x = layer(x)
            middle = x if i == 2 else middle
        return concat([middle, x], axis=2)

    @entry
    def separate(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S 6*D"]:
        return concat([layer(x) for layer in self.layers], axis=2)

    @entry
    def numbered(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        for i, layer in enumerate(self.layers):
            x = layer(x) + float(i)
        return x


PROGRAM = elaborate(Net, D=8, T="f32")


def graph(name: str) -> Graph:
    return function_graph(PROGRAM.entries[name])


def listed(made: Graph) -> list[tuple[str, int]]:
    return [(b.name, b.times) for b in made.boxes if b.kind != "result"]


def opened(box: Box) -> Graph:
    assert box.inside is not None
    return box.inside()


@pytest.mark.parametrize(
    ("name", "boxes"),
    [
        ("plain", [("layers", 6)]),
        ("residual", [("layers", 6)]),
        ("last_differs", [("mixed[0:5]", 5), ("mixed.5", 1)]),
        ("from_the_start", [("layers.0.with_start", 1), ("layers[1:6].with_start", 5)]),
        ("from_the_middle", [("layers[0:3]", 3), ("layers[3:6]", 3), ("concat", 1)]),
        ("separate", [*((f"layers.{i}", 1) for i in range(6)), ("concat", 1)]),
        ("numbered", [x for i in range(6) for x in ((f"layers.{i}", 1), ("add", 1))]),
    ],
)  # fmt: skip
def test_what_is_folded(name: str, boxes: list[tuple[str, int]]) -> None:
    assert listed(graph(name)) == boxes


def test_a_body_of_two_boxes_opens_to_them() -> None:
    (loop, _) = graph("residual").boxes
    assert (loop.kind, loop.note) == ("repeat", None)
    body = opened(loop)
    assert listed(body) == [("layers", 1), ("add", 1)]
    # The loop's input goes to the layer and around it.
    assert sorted(body.wires[0].to) == [(0, 0), (1, 0)]


def test_what_goes_on_to_the_next_run_leaves_the_body_also_where_nobody_takes_the_last() -> None:
    (loop,) = [b for b in graph("two_carried").boxes if b.kind == "repeat"]
    assert (loop.times, loop.outputs) == (6, 2)
    body = opened(loop)
    assert listed(body) == [("layers", 1), ("add", 1), ("gelu", 1)]
    assert [w.box for w in body.wires if any(body.boxes[b].kind == "result" for b, _ in w.to)] == [1, 2]


def test_arguments_in_turn_are_a_pattern_of_two() -> None:
    made = graph("exchanged")
    (loop,) = [b for b in made.boxes if b.kind == "repeat"]
    assert (loop.name, loop.times, loop.note) == ("layers[0:6]", 3, ("2 in turn",))
    assert listed(opened(loop)) == [("layers[0:6:2].with_start", 1), ("layers[1:6:2].with_start", 1)]


def test_a_repeat_stands_where_its_last_run_does() -> None:
    made = graph("from_the_middle")
    first, second, joined = range(3)
    (wire,) = [w for w in made.wires if w.box == first]
    assert sorted(wire.to) == [(second, 0), (joined, 0)]
