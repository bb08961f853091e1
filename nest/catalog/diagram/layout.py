"""Where boxes and wires go on a grid of rows and lanes, by their connections alone, whatever their sizes.

Rows of boxes and rows of types alternate: row 0 has the arguments' types, row 1 the first boxes, row 2 the types of
what they make. A wire runs down its lane; sideways it runs only between two rows, in a slot that it shares with no
other wire. A wire that passes rows of boxes has a lane there for itself. So nothing can cover anything.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache

from nest.catalog.diagram.graph import Graph

__all__ = ["Layout", "Shape", "lay_out", "shape_of"]

BoxShape = tuple[int, int, bool, bool]
WireShape = tuple["int | None", int, tuple[tuple[int, int], ...]]
Shape = tuple[tuple[BoxShape, ...], tuple[WireShape, ...]]
"""A graph without its names. A box: inputs, outputs, whether inputs may change places, whether it is a result. A
wire: its box or None, its port, and the boxes and ports it goes to."""

COMMUTATIVE = frozenset({"add", "mul", "maximum", "minimum", "equal", "logical_and", "logical_or"})


@dataclass(frozen=True)
class Layout:
    """`boxes` and `types` are cells (row, lane), in the order of boxes and wires; `tracks` the lane in which a wire
    passes the rows below its type, or None; `ports` the place of each input from the left; `slots` the slot of each
    wire in the gaps below rows; `gaps` how many slots each gap has."""

    rows: int
    lanes: int
    boxes: tuple[tuple[int, int], ...]
    types: tuple[tuple[int, int], ...]
    tracks: tuple[int | None, ...]
    ports: tuple[tuple[int, ...], ...]
    slots: tuple[tuple[tuple[int, int], ...], ...]
    gaps: tuple[int, ...]


def shape_of(graph: Graph) -> Shape:
    """What a layout depends on."""
    boxes = tuple(
        (
            len(b.arguments),
            b.outputs if b.kind != "result" else 0,
            b.name in COMMUTATIVE and b.call is None,
            b.kind == "result",
        )
        for b in graph.boxes
    )
    return boxes, tuple((w.box, w.port, tuple(w.to)) for w in graph.wires)


@lru_cache(maxsize=4096)
def lay_out(shape: Shape) -> Layout:
    """The best layout that a local search finds: short wires that seldom cross. The same for the same shape."""
    return _Search(shape).layout()


def _ranks(shape: Shape) -> list[int]:
    """The row of each box: one below what it takes; what takes nothing stands just above its first use."""
    boxes, wires = shape
    rank = [0] * len(boxes)
    into: dict[int, list[int]] = defaultdict(list)
    out: dict[int, list[int]] = defaultdict(list)
    for box, _, to in wires:
        if box is not None:
            for target, _ in to:
                into[target].append(box)
                out[box].append(target)
    # Boxes stand in the order of the program, so that what a box takes is ranked before it.
    for index in range(len(boxes)):
        rank[index] = max((rank[b] + 1 for b in into[index]), default=0)
    for index in reversed(range(len(boxes))):
        if boxes[index][0] == 0 and out[index]:
            rank[index] = max(rank[index], min(rank[b] for b in out[index]) - 1)
    last = max((r for r, b in zip(rank, boxes, strict=True) if not b[3]), default=-1) + 1
    return [max(r, last) if b[3] else r for r, b in zip(rank, boxes, strict=True)]


class _Search:
    """Lanes for boxes and tracks: first what comes to mind, then whatever single moves and exchanges improve."""

    def __init__(self, shape: Shape) -> None:
        self.boxes, self.wires = shape
        self.row = [2 * r + 1 for r in _ranks(shape)]
        self.type_row = [0 if box is None else self.row[box] + 1 for box, _, _ in self.wires]
        self.last = [
            max((self.row[b] for b, _ in to), default=r)
            for (_, _, to), r in zip(self.wires, self.type_row, strict=True)
        ]
        self.tracked = [last > row + 1 for last, row in zip(self.last, self.type_row, strict=True)]
        # Items: boxes, then types of wires, then tracks.
        self.count = len(self.boxes)
        self.size = self.count + 2 * len(self.wires)
        self.spans = [(r, r) for r in self.row]
        self.spans += [(r, r) for r in self.type_row]
        self.spans += [
            (r + 1, last - 1) if tracked else (0, -1)
            for r, last, tracked in zip(self.type_row, self.last, self.tracked, strict=True)
        ]
        self.lane = [0] * self.size
        self.taken: dict[tuple[int, int], int] = {}

    def layout(self) -> Layout:
        self._start()
        self._improve()
        return self._finished()

    def _cells(self, item: int, lane: int) -> list[tuple[int, int]]:
        first, last = self.spans[item]
        return [(row, lane) for row in range(first, last + 1)]

    def _put(self, item: int, lane: int) -> None:
        self.lane[item] = lane
        for cell in self._cells(item, lane):
            self.taken[cell] = item

    def _lift(self, item: int) -> None:
        for cell in self._cells(item, self.lane[item]):
            self.taken.pop(cell, None)

    def _free(self, item: int, wanted: int) -> int:
        """The free lane nearest to the one that is wanted."""
        for distance in range(self.size + 1):
            for lane in (wanted + distance, wanted - distance):
                if lane >= 0 and not any(cell in self.taken for cell in self._cells(item, lane)):
                    return lane
        raise AssertionError("there are more lanes than items")

    def _start(self) -> None:
        for wire, (box, _, _) in enumerate(self.wires):
            if box is None:
                self._put(self.count + wire, self._free(self.count + wire, 0))
        made: dict[int, list[int]] = defaultdict(list)
        into: dict[int, list[int]] = defaultdict(list)
        for wire, (box, _, to) in enumerate(self.wires):
            if box is not None:
                made[box].append(wire)
            for target, _ in to:
                into[target].append(wire)
        far = self._far()
        for box in sorted(range(self.count), key=lambda b: (self.row[b], -far[b], b)):
            lanes = [self.lane[self.count + w] for w in into[box]]
            self._put(box, self._free(box, min(lanes, default=1)))
            for wire in made[box]:
                self._put(self.count + wire, self._free(self.count + wire, self.lane[box]))
        tracks = [w for w, tracked in enumerate(self.tracked) if tracked]
        for wire in sorted(tracks, key=lambda w: self.last[w] - self.type_row[w]):
            item = self.count + len(self.wires) + wire
            self._put(item, self._free(item, self.lane[self.count + wire]))

    def _far(self) -> list[int]:
        """How many boxes may still follow each: what goes on longest stays in its lane, and side branches give way."""
        far = [0] * self.count
        for box, _, to in sorted(self.wires, key=lambda w: -1 if w[0] is None else w[0], reverse=True):
            if box is not None:
                far[box] = max([far[box], *(far[target] + 1 for target, _ in to)])
        return far

    def _improve(self) -> None:
        items = [i for i in range(self.size) if self.spans[i][1] >= self.spans[i][0]]
        best = self._cost()
        for _ in range(8 if len(items) <= 60 else 2):
            before = best
            for item in items:
                best = self._move(item, best)
            if best >= before - 1e-9:
                return

    def _move(self, item: int, best: float) -> float:
        for lane in range(max(self.lane) + 2):
            old = self.lane[item]
            if lane == old:
                continue
            others = {self.taken[cell] for cell in self._cells(item, lane) if cell in self.taken}
            if len(others) > 1:
                continue
            other = next(iter(others), None)
            if other is not None and not self._exchange(item, other, lane, old):
                continue
            if other is None:
                self._lift(item)
                self._put(item, lane)
            cost = self._cost()
            if cost < best - 1e-9:
                best = cost
            elif other is None:
                self._lift(item)
                self._put(item, old)
            else:
                self._exchange(item, other, old, lane)
        return best

    def _exchange(self, item: int, other: int, lane: int, old: int) -> bool:
        self._lift(item)
        self._lift(other)
        if any(cell in self.taken for cell in [*self._cells(item, lane), *self._cells(other, old)]):
            self._put(item, old)
            self._put(other, lane)
            return False
        self._put(item, lane)
        self._put(other, old)
        return True

    def _pieces(self) -> dict[int, list[tuple[int, float, float]]]:
        """By gap: (wire, where it comes from above, where it leaves below), in lanes."""
        pieces: dict[int, list[tuple[int, float, float]]] = defaultdict(list)
        for wire, (box, port, to) in enumerate(self.wires):
            row, at = self.type_row[wire], self.lane[self.count + wire]
            if box is not None:
                outputs = self.boxes[box][1]
                pieces[row - 1].append((wire, self.lane[box] + _offset(port, outputs), at))
            track = self.lane[self.count + len(self.wires) + wire] if self.tracked[wire] else at
            if self.tracked[wire]:
                pieces[row].append((wire, at, track))
            for target, place in to:
                inputs, _, loose, _ = self.boxes[target]
                end = self.lane[target] + (0 if loose else _offset(place, inputs))
                above = self.row[target] - 1
                pieces[above].append((wire, at if above == row else track, end))
        return pieces

    def _cost(self) -> float:
        cost = 0.0
        for pieces in self._pieces().values():
            for index, (wire, a, b) in enumerate(pieces):
                cost += abs(a - b)
                for other, c, d in pieces[:index]:
                    if other != wire:
                        cost += _dislike(a, b, c, d)
        return cost + 0.04 * sum(self.lane[: self.count]) + 0.05 * sum(self.lane[self.count :])

    def _finished(self) -> Layout:
        used = sorted({lane for i, lane in enumerate(self.lane) if self.spans[i][1] >= self.spans[i][0]})
        self.lane = [used.index(lane) if lane in used else 0 for lane in self.lane]
        rows = max([*self.row, *self.type_row, 0]) + 1
        slots: list[list[tuple[int, int]]] = [[] for _ in self.wires]
        gaps = [0] * rows
        for gap, pieces in self._pieces().items():
            for slot, wire in self._slots(pieces):
                slots[wire].append((gap, slot))
                gaps[gap] = max(gaps[gap], slot + 1)
        boxes = tuple((self.row[b], self.lane[b]) for b in range(self.count))
        types = tuple((r, self.lane[self.count + w]) for w, r in enumerate(self.type_row))
        tracks = tuple(
            self.lane[self.count + len(self.wires) + w] if t else None for w, t in enumerate(self.tracked)
        )
        ports = tuple(self._ports(b) for b in range(self.count))
        return Layout(rows, len(used), boxes, types, tracks, ports, tuple(map(tuple, slots)), tuple(gaps))

    def _slots(self, pieces: list[tuple[int, float, float]]) -> list[tuple[int, int]]:
        """A slot for each wire that runs sideways, below those of all that it meets and that come before it."""
        starts: dict[int, int] = {}
        ends: dict[int, set[int]] = defaultdict(set)
        exact: dict[int, tuple[float, set[float]]] = {}
        turns: dict[int, float] = defaultdict(float)
        for wire, a, b in pieces:
            starts[wire] = round(a)
            ends[wire].add(round(b))
            exact.setdefault(wire, (a, set()))[1].add(b)
            turns[wire] += b - a
        sideways = {wire for wire, a, b in pieces if a != b}
        # Of two that run the same way, neither crosses the other if the one that starts further along goes first.
        liked = sorted(sideways, key=lambda w: (turns[w] < 0, -starts[w] if turns[w] >= 0 else starts[w]))
        placed: list[tuple[int, int]] = []
        while liked:
            # Where one leaves a lane and another enters it, the first must be gone before the second comes.
            free = [w for w in liked if not any(starts[o] in ends[w] for o in liked if o != w)]
            # Where that goes round in a circle, let them meet who have ports of their own in the lane.
            near = [w for w in liked if not any(exact[o][0] in exact[w][1] for o in liked if o != w)]
            wire = (free or near or liked)[0]
            liked.remove(wire)
            low, high = min(starts[wire], *ends[wire]), max(starts[wire], *ends[wire])
            above = [
                slot
                for slot, other in placed
                if min(starts[other], *ends[other]) <= high and low <= max(starts[other], *ends[other])
            ]
            placed.append((max(above, default=-1) + 1, wire))
        return placed

    def _ports(self, box: int) -> tuple[int, ...]:
        """The place of each input from the left. Where order means nothing, it is that of the lanes they come from."""
        inputs, _, loose, _ = self.boxes[box]
        if not loose:
            return tuple(range(inputs))
        come: list[tuple[float, int]] = []
        for wire, (_, _, to) in enumerate(self.wires):
            direct = self.type_row[wire] + 1 == self.row[box]
            item = self.count + wire + (0 if direct else len(self.wires))
            come += [(self.lane[item], place) for target, place in to if target == box]
        order = [place for _, place in sorted(come)]
        return tuple(order.index(place) for place in range(inputs))


def _dislike(a: float, b: float, c: float, d: float) -> float:
    """What is wrong with two wires in a gap, from a to b and from c to d."""
    if a != b and c != d and round(a) == round(d) and round(b) == round(c):
        return 2.0  # they change places: whichever turns first, they run on each other somewhere
    return 0.7 if (a - c) * (b - d) < 0 or (a == c and b != d) else 0.0


def _offset(port: int, ports: int) -> float:
    """Where a port is in its lane, from -0.4 to 0.4."""
    return 0.0 if ports < 2 else 0.3 * (2 * port / (ports - 1) - 1)
