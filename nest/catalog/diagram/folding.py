"""The nodes of a function with alike iterations over a block array folded, also where kinds of layers alternate.

Backends fold a loop whole or leave it unrolled, since they print code. A picture may fold what they cannot: a run
in the middle, or every third layer another kind. What it folds must be alike in every respect that is shown: the
same functions of equal blocks, the same attributes, the same wiring.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import LoopMark, Node, Operand, Path, Value

__all__ = ["Item", "Repeat", "fold", "relative"]


@dataclass(frozen=True)
class Repeat:
    """`count` runs of `body`, the nodes of the first, over elements `start` and so on of the array at `path`.

    A run takes `period` elements. `left` are pairs: a value of the body that goes on to the next run or leaves the
    loop, and the last run's. `carries` are pairs: what the first run takes, and the value of the body that the next
    run takes in its place.
    """

    path: Path
    start: int
    period: int
    count: int
    depth: int
    body: tuple[Node, ...]
    left: tuple[tuple[Value, Value], ...]
    carries: tuple[tuple[Value, Value], ...]


Item = Node | Repeat


def fold(nodes: Sequence[Node], results: Sequence[Value], depth: int = 0) -> list[Item]:
    """The items of a body: its nodes without reads of parameters, iterations at loop level `depth` folded."""
    nodes = [node for node in nodes if node.op != "param"]
    items: list[Item] = []
    for span in _spans(nodes, depth):
        if len(span[0].loops) <= depth:
            items += span
            continue
        inside = {id(node) for node in span}
        used = {id(v) for v in results}
        used |= {id(x) for n in nodes if id(n) not in inside for x in n.inputs if isinstance(x, Value)}
        items += _runs(span, depth, used)
    return items


def relative(path: Path, mark: LoopMark | None, start: int) -> tuple[Any, ...]:
    """A path with the loop's element as its distance from `start`, so that it reads alike in every run."""
    if mark is None:
        return path
    at = len(mark.path)
    if len(path) > at and path[:at] == mark.path and path[at] == mark.index:
        return (*path[:at], ("element", mark.index - start), *path[at + 1 :])
    return path


def _spans(nodes: list[Node], depth: int) -> Iterator[list[Node]]:
    """Nodes that follow each other in one loop, or outside of any."""
    span: list[Node] = []
    for node in nodes:
        if span and _loop(span[-1], depth) != _loop(node, depth):
            yield span
            span = []
        span.append(node)
    if span:
        yield span


def _loop(node: Node, depth: int) -> int | None:
    return node.loops[depth].loop if len(node.loops) > depth else None


def _runs(span: list[Node], depth: int, used: set[int]) -> list[Item]:
    """Iterations as repeats where that saves most, else as they are."""
    groups: dict[int, list[Node]] = {}
    for node in span:
        groups.setdefault(node.loops[depth].index, []).append(node)
    iterations = list(groups.values())
    if [n for g in iterations for n in g] != span or any(
        n.loops[depth].index != i + span[0].loops[depth].index for i, g in enumerate(iterations) for n in g
    ):
        return list(span)
    items: list[Item] = []
    position = 0
    while position < len(iterations):
        found = _best(iterations, position, depth, used)
        if found is None:
            items += iterations[position]
            position += 1
        else:
            items.append(found)
            position += found.period * found.count
    return items


def _best(iterations: list[list[Node]], position: int, depth: int, used: set[int]) -> Repeat | None:
    """The repeat from `position` that leaves out most iterations; the shortest period among equals."""
    left = len(iterations) - position
    best: Repeat | None = None
    for period in range(1, left // 2 + 1):
        if best is not None and best.period * best.count == left:
            break
        runs = [
            [n for g in iterations[at : at + period] for n in g]
            for at in range(position, len(iterations) - period + 1, period)
        ]
        found = _repeat(runs, depth, position, period, _used_after(iterations, position, used))
        if found is not None and (best is None or _saved(found) > _saved(best)):
            best = found
    return best


def _saved(repeat: Repeat) -> int:
    return repeat.period * (repeat.count - 1)


def _used_after(iterations: list[list[Node]], position: int, used: set[int]) -> list[set[int]]:
    """What each iteration and all after it take, and what is taken outside of the loop."""
    after = [set(used)]
    for group in reversed(iterations):
        after.append(after[-1] | {id(x) for n in group for x in n.inputs if isinstance(x, Value)})
    return after[::-1]


def _repeat(
    runs: list[list[Node]], depth: int, position: int, period: int, after: list[set[int]]
) -> Repeat | None:
    """As many of the first runs as are alike, two or more."""
    wiring = _Wiring(runs[0], depth)
    count = 1
    while count < len(runs) and wiring.admits(runs[count - 1], runs[count]):
        count += 1
    taken_later: set[int] = set()
    while count > 1:
        kept = [id(v) for run in runs[: count - 1] for n in run for v in n.outputs]
        taken_later = after[position + period * count]
        if not any(i in taken_later for i in kept):
            break
        count -= 1
    if count < 2:
        return None
    mark = runs[0][0].loops[depth]
    carries = tuple((x, runs[0][p].outputs[o]) for x, (p, o) in wiring.carries(runs[1], runs[0]))
    going = {id(v) for _, v in carries}
    pairs = [
        (v, w)
        for a, b in zip(runs[0], runs[count - 1], strict=True)
        for v, w in zip(a.outputs, b.outputs, strict=True)
    ]
    left = tuple((v, w) for v, w in pairs if id(v) in going or id(w) in taken_later)
    return Repeat(mark.path, mark.index, period, count, depth, tuple(runs[0]), left, carries)


class _Wiring:
    """Whether one run takes from the run before it, from itself and from outside what the first ones do."""

    def __init__(self, first: list[Node], depth: int) -> None:
        self.first = first
        self.depth = depth
        self.second: list[tuple[Any, ...]] | None = None

    def admits(self, before: list[Node], run: list[Node]) -> bool:
        start = run[0].loops[self.depth].index
        if len(run) != len(self.first) or not all(
            self._alike(a, b, start) for a, b in zip(self.first, run, strict=True)
        ):
            return False
        taken = [self._sources(node, before, run) for node in run]
        if self.second is not None:
            return taken == self.second
        own = [self._sources(node, [], self.first) for node in self.first]
        if not self._agree(own, taken):
            return False
        self.second = taken
        return True

    def carries(self, second: list[Node], first: list[Node]) -> list[tuple[Value, tuple[int, int]]]:
        """What the first run takes from outside where the second takes a value of the first."""
        found: dict[int, tuple[Value, tuple[int, int]]] = {}
        for mine, theirs in zip(first, second, strict=True):
            for x, source in zip(mine.inputs, self._sources(theirs, first, second), strict=True):
                if source[0] == "before" and isinstance(x, Value):
                    found[id(x)] = (x, source[1])
        return list(found.values())

    def _agree(self, own: list[tuple[Any, ...]], taken: list[tuple[Any, ...]]) -> bool:
        """A value of the run before stands where the first run takes one from outside, and always for the same."""
        stands: dict[Any, Any] = {}
        invariant: set[Any] = set()
        for mine, theirs in zip(own, taken, strict=True):
            for a, b in zip(mine, theirs, strict=True):
                if b[0] != "before":
                    if a != b:
                        return False
                    if a[0] == "outside":
                        invariant.add(a)
                elif a[0] != "outside" or stands.setdefault(a, b) != b:
                    return False
        return len(set(stands.values())) == len(stands) and invariant.isdisjoint(stands)

    def _alike(self, a: Node, b: Node, start: int) -> bool:
        types = [[str(v.type) for v in n.outputs] for n in (a, b)]
        return (
            a.op == b.op
            and len(a.inputs) == len(b.inputs)
            and types[0] == types[1]
            and self._attrs(a, self.first[0].loops[self.depth].index) == self._attrs(b, start)
        )

    def _attrs(self, node: Node, start: int) -> dict[str, Any]:
        mark = self._mark(node)
        return {n: _plain(relative(v, mark, start) if n == "path" else v) for n, v in node.attrs.items()}

    def _mark(self, node: Node) -> LoopMark:
        return node.loops[self.depth]

    def _sources(self, node: Node, before: list[Node], run: list[Node]) -> tuple[Any, ...]:
        return tuple(self._source(x, node, before, run) for x in node.inputs)

    def _source(self, x: Operand | None, node: Node, before: list[Node], run: list[Node]) -> tuple[Any, ...]:
        if not isinstance(x, Value):
            return ("number", type(x).__name__, str(x))
        if x.node is not None and x.node.op == "param":
            start = run[0].loops[self.depth].index
            return ("param", relative(x.node.attrs["path"], self._mark(node), start))
        for label, nodes in (("own", run), ("before", before)):
            for position, made in enumerate(nodes):
                if x.node is made:
                    return (label, (position, x.index))
        return ("outside", id(x))


def _plain(value: Any) -> Any:
    """An attribute as something that compares by what it shows; a function is itself."""
    if isinstance(value, Dim | DType):
        return str(value)
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    return (type(value).__name__, value)
