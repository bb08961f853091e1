"""Tracing: running a method once on symbolic tensors, and writing down what it did."""

from __future__ import annotations

import ast
import linecache
import sys
import traceback
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path as FilePath
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from nest.errors import DefinitionError
from nest.ir.dim import Dim, simplify
from nest.ir.location import Location, statements
from nest.ir.program import Function, LoopMark, Node, Operand, Path, Value, path_text
from nest.ir.relation import Relation
from nest.ir.types import TensorType
from nest.layers._where import is_framework

if TYPE_CHECKING:
    from nest.layers.block import Block
    from nest.layers.tensor import Tensor

__all__ = ["Trace", "current", "current_trace", "fail", "located", "python_error"]

current_trace: ContextVar[Trace | None] = ContextVar("nest_trace", default=None)

_PACKAGE = str(FilePath(__file__).parent)
_STANDARD = str(FilePath(__file__).parent / "standard")


class Trace:
    """One method of one block being traced."""

    def __init__(self, block: Block, function: Function, code: CodeType, place: Path = ()) -> None:
        self.block = block
        # Where the block was first met, from the root.
        self.place = place
        self.function = function
        self.code = code
        self.facts: list[Relation] = list(block._facts)
        self.origins: dict[str, str] = {}
        self.params: dict[Path, Tensor] = {}
        self.versions: dict[Path, int] = {}
        self.loops: list[LoopMark] = []
        self.loop_count = 0
        # The values of this function, which are those that its nodes may take.
        self._own: dict[int, Value] = {id(v): v for v in function.arguments}
        self._divisible: list[tuple[Dim, Dim]] | None = None
        self._equal: dict[str, Dim] | None = None

    # -- nodes ---------------------------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        inputs: tuple[Operand | None, ...],
        attrs: dict[str, Any],
        *types: TensorType,
    ) -> tuple[Value, ...]:
        """Append a node; the values it produces."""
        for x in inputs:
            if isinstance(x, Value) and id(x) not in self._own:
                raise fail(
                    f"A tensor of another call was used in {self.function.name}: {x.type}.",
                    hint="A tensor lives in the method that made it: pass it as an argument, or keep it in a State.",
                )
        node = Node(op, inputs, attrs, types, self._location(), tuple(self.loops))
        self.function.nodes.append(node)
        self._own.update((id(v), v) for v in node.outputs)
        return node.outputs

    def _location(self) -> Location | None:
        frame: FrameType | None = sys._getframe(2)
        while frame is not None and frame.f_code is not self.code:
            frame = frame.f_back
        return Location(self.code, frame.f_lasti) if frame is not None else None

    def iterate(self, path: Path, count: int) -> Iterator[int]:
        """The indices of a loop over a block array; nodes made meanwhile carry its mark."""
        self.loop_count += 1
        loop = self.loop_count
        for index in range(count):
            self.loops.append(LoopMark(loop, path, index, count))
            try:
                yield index
            finally:
                self.loops.pop()

    # -- dims ----------------------------------------------------------------------------------------------

    def add_fact(self, relation: Relation) -> None:
        self.facts.append(relation)
        self._divisible = None

    def simplify(self, dim: Dim) -> Dim:
        """The dim with what `require` has stated applied: `Heads * (D//Heads)` is `D` once `D % Heads == 0`."""
        if self._divisible is None or self._equal is None:
            self._divisible, self._equal = _usable(self.facts)
        if self._equal:
            dim = dim.substitute(self._equal)
        return simplify(dim, self._divisible) if self._divisible else dim

    def same(self, a: Dim, b: Dim) -> bool:
        """Whether two dims are equal in every call, given what was required."""
        return a.same(b) or self.simplify(a).same(self.simplify(b))

    def same_type(self, a: TensorType, b: TensorType) -> bool:
        return a.dtype.same(b.dtype) and self.same_shape(a.shape, b.shape)

    def same_shape(self, a: tuple[Dim, ...], b: tuple[Dim, ...]) -> bool:
        return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))

    def need_at_most(self, low: Dim, high: Dim, message: str, *types: tuple[str, TensorType]) -> None:
        """low <= high, or the message; where no value decides, every call has to satisfy it."""
        low, high = self.simplify(low), self.simplify(high)
        known = low.at_most(high)
        if known is False:
            raise fail(message, *types)
        rule = low <= high
        rules = self.function.signature.rules
        if known is None and str(rule) not in map(str, rules):
            rules.append(rule)

    # -- states --------------------------------------------------------------------------------------------

    def write(self, path: Path) -> int:
        """Record that a state is written: views of it that were taken before are stale from here on."""
        self.function.writes.add(path)
        self.versions[path] = self.versions.get(path, 0) + 1
        return self.versions[path]


def _usable(facts: list[Relation]) -> tuple[list[tuple[Dim, Dim]], dict[str, Dim]]:
    """Split facts into divisibilities `(num, den)` and equalities `symbol -> dim`."""
    divisible: list[tuple[Dim, Dim]] = []
    equal: dict[str, Dim] = {}
    for fact in facts:
        if fact.op != "==":
            continue
        if (remainder := fact.left.as_mod()) is not None and fact.right.same(Dim.constant(0)):
            divisible.append(remainder)
            continue
        for symbol, other in ((fact.left, fact.right), (fact.right, fact.left)):
            name = symbol.as_symbol()
            if name is not None and name not in other.symbols():
                equal[name] = other
                break
    return divisible, equal


def current() -> Trace:
    """The trace that is running.

    Raises:
        DefinitionError: none is.
    """
    trace = current_trace.get()
    if trace is None:
        raise DefinitionError(
            "Tensors exist only while an entry is traced: compute in a method, not in build."
        )
    return trace


def _is_authors(filename: str) -> bool:
    return not filename.startswith(_PACKAGE) or filename.startswith(_STANDARD)


def _short(filename: str, line: int) -> str:
    """`folder/file:line`, the folder being the entry's."""
    return f"{'/'.join(FilePath(filename).parts[-2:])}:{line}"


def _author_frame(trace: Trace) -> tuple[str, str]:
    """`file:line` and text of the innermost line that the author of the method being traced wrote."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if _is_authors(frame.f_code.co_filename) and _inside(frame, trace.code):
            return _line(frame.f_code.co_filename, frame.f_lineno)
        frame = frame.f_back
    return _returned(trace.code)


def _inside(frame: FrameType | None, code: CodeType) -> bool:
    """Whether a frame is of the method being traced, or was called by it."""
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


def _line(filename: str, line: int) -> tuple[str, str]:
    return _short(filename, line), linecache.getline(filename, line).strip()


def _returned(code: CodeType) -> tuple[str, str]:
    """The last return of a method that has ended, which is where its result was decided."""
    returns = [s.span.line for s in statements(code) if isinstance(s.node, ast.Return)]
    return _line(code.co_filename, max(returns, default=code.co_firstlineno))


def located(error: DefinitionError) -> DefinitionError:
    """The error with the author's line in front, taken from its traceback, where it names none yet."""
    if error.located:
        return error
    frames = [f for f in traceback.extract_tb(error.__traceback__) if not is_framework(f.filename)]
    if not frames:
        return error
    frame = frames[-1]
    message = f"{_short(frame.filename, frame.lineno or 0)}: {error}\n  at    {frame.line}"
    better = type(error)(message)
    better.located = True
    return better


def python_error(error: Exception, filename: str, owner: str) -> DefinitionError:
    """A mistake that Python itself found in a definition, told with the definition's line."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f.filename == filename] or [f for f in frames if not is_framework(f.filename)]
    frame = (own or list(frames))[-1]
    place = _short(frame.filename, frame.lineno or 0)
    what = f"{type(error).__name__}: {error}"
    if isinstance(error, RecursionError):
        what = "this calls itself without an end."
    elif "super(type, obj)" in str(error) or str(error).startswith("super()"):
        what = "super() does not reach a traced method: give what the base computes a name of its own, and call that."
    refused = DefinitionError(f"{place}, in {owner}: {what}\n  at    {frame.line}")
    refused.located = True
    return refused


def fail(rule: str, *received: tuple[str, object], hint: str = "") -> DefinitionError:
    """The error of a broken rule: the rule, what was received, where each symbol was bound, and the line.

    Args:
        rule: one sentence that says what must hold and what came instead.
        received: pairs of a name and a type or dim to show below it.
        hint: what to do about it.
    """
    trace = current_trace.get()
    lines = [rule]
    if received:
        width = max(len(name) for name, _ in received)
        lines += [f"  {name:<{width}}  {value!r}" for name, value in received]
    if trace is not None:
        lines += _bindings(trace, [value for _, value in received])
        line, text = _author_frame(trace)
        place = f" ({path_text(trace.place)})" if trace.place else ""
        lines[0] = f"{line}, in {trace.function.block.name}.{trace.function.name}{place}: {lines[0]}"
        lines.append(f"  at    {text}")
    if hint:
        lines.append(f"  {hint}")
    error = DefinitionError("\n".join(lines))
    error.located = trace is not None
    return error


def _bindings(trace: Trace, values: list[object]) -> list[str]:
    """One line a symbol: what it is and where it got its meaning."""
    symbols: dict[str, None] = {}
    for value in values:
        if isinstance(value, TensorType):
            for dim in value.shape:
                symbols.update(dict.fromkeys(sorted(dim.symbols())))
            symbols[value.dtype.name] = None
        elif isinstance(value, Dim):
            symbols.update(dict.fromkeys(sorted(value.symbols())))
    lines = []
    for name in symbols:
        if (origin := origin_of(trace, name)) is not None:
            lines.append(f"  where {name}: {origin}")
    return lines


def origin_of(trace: Trace, name: str) -> str | None:
    """Where a symbol was bound, in words."""
    if name in trace.origins:
        return trace.origins[name]
    block = trace.block
    if name in block._generics:
        value = block._generics[name].value
        outer = block._outer[name]
        spelled = f", given as {outer}" if str(outer) not in (name, str(value)) else ""
        return f"generic of {type(block).__name__}, {value}{spelled}, bound at {block._where}"
    if name in ("Batch", "Capacity"):
        return "symbol of the session"
    return None


def state_name(path: Path) -> str:
    return "self." + path_text(path)
