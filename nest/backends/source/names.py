"""Names for the values of a function: the author's where there is one, and never one that is still needed."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from nest.backends.source.fold import Item, Loop
from nest.ir.location import Location, Span, assigned_names, statements
from nest.ir.program import Function, Node, Value

__all__ = ["RESERVED", "Names", "loop_line", "loop_variable", "statement_of"]

# What generated source means something by, on any framework.
RESERVED = frozenset(
    {"self", "state", "torch", "nn", "F", "math", "jnp", "jax", "lax", "nnx", "SimpleNamespace", "Callable", "Tensor",
     "Array", "zip", "range", "float", "list", "tuple", "super", "carry"}
)  # fmt: skip


def statement_of(location: Location | None) -> Span | None:
    """The innermost statement that a node was made in."""
    if location is None or location.span is None:
        return None
    found = None
    for span, _ in statements(location.code):
        if _contains(span, location.span) and (found is None or _contains(found, span)):
            found = span
    return found


def _contains(outer: Span, inner: Span) -> bool:
    return (outer.line, outer.column) <= (inner.line, inner.column) and (
        (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)
    )


def loop_variable(loop: Loop) -> str:
    """What the author calls the element of a loop."""
    node = _for_of(loop)
    return node.target.id if node is not None and isinstance(node.target, ast.Name) else "block"


def loop_line(loop: Loop) -> int:
    """The line of a loop's head; 0 where it is not known."""
    node = _for_of(loop)
    return 0 if node is None else node.lineno


def _for_of(loop: Loop) -> ast.For | None:
    location = loop.nodes[0].location
    if location is not None and location.span is not None:
        for span, node in reversed(statements(location.code)):
            if (
                isinstance(node, ast.For)
                and _contains(span, location.span)
                and isinstance(node.target, ast.Name)
            ):
                return node
    return None


class Names:
    """One name for each value that needs one."""

    def __init__(
        self, function: Function, items: list[Item], results: list[Value], taken: Iterable[str]
    ) -> None:
        self._taken = set(taken) | RESERVED
        self._loops: set[str] = set()
        self._fresh: set[int] = set()
        self.of: dict[int, str] = {}
        for value in function.arguments:
            name = str(value.name)
            self.of[id(value)] = self._unused(name) if name in self._taken else name
        self._authors(items)
        self._carries(items)
        while (victim := _clobbered(items, results, self.of, self._bound(function))) is not None:
            self.of[victim] = self._unused(self.of[victim])
            self._fresh.add(victim)

    def _bound(self, function: Function) -> dict[str, int]:
        return {self.of[id(v)]: id(v) for v in function.arguments}

    def _authors(self, items: list[Item]) -> None:
        """The author's names: of several nodes made at one expression the last is its value."""
        last: dict[tuple[object, ...], Node] = {}
        for item in items:
            if isinstance(item, Loop):
                self._authors(item.body)
            elif item.location is not None and item.location.span is not None and item.outputs:
                last[(item.location.span, item.location.code, item.loops)] = item
        for node in last.values():
            names = _assigned(node.location)
            if len(names) == len(node.outputs):
                for name, value in zip(names, node.outputs, strict=True):
                    if name == "_":
                        continue
                    self.of[id(value)] = self._unused(name) if name in self._taken else name

    def _carries(self, items: list[Item]) -> None:
        """A carried variable is called as what it starts as or what an iteration leaves in it."""
        for item in items:
            if not isinstance(item, Loop):
                continue
            for carry in item.carries:
                name = self.of.get(id(carry.result)) or self.of.get(id(carry.init)) or self._unused("x")
                self.of[id(carry.inner)] = name
                self.of.setdefault(id(carry.result), name)
                self.of.setdefault(id(carry.init), name)

    def temporary(self, value: Value, base: str) -> str:
        """A name for a value that has none."""
        return self.of.setdefault(id(value), self._unused(base))

    def element(self, base: str) -> str:
        """A name for the element of a loop; loops may share one, values and loops may not."""
        known = set(self.of.values()) | self._taken
        name, number = base, 2
        while name in known or f"{name}_state" in known:
            name, number = f"{base}_{number}", number + 1
        self._loops |= {name, f"{name}_state"}
        return name

    def _unused(self, base: str) -> str:
        known = set(self.of.values()) | self._taken | self._loops
        if base not in known:
            return base
        number = 2
        while f"{base}_{number}" in known:
            number += 1
        return f"{base}_{number}"


def _assigned(location: Location | None) -> tuple[str, ...]:
    if location is None or location.span is None:
        return ()
    return assigned_names(location.code).get(location.span, ())


def _clobbered(
    items: list[Item], results: list[Value], names: dict[int, str], bound: dict[str, int]
) -> int | None:
    """A value whose name another value has taken while the first is still used; None when all is well.

    What is returned is the value that took the name.
    """
    binding = dict(bound)

    def use(value: object) -> int | None:
        if not isinstance(value, Value) or id(value) not in names:
            return None
        holder = binding.get(names[id(value)])
        return holder if holder is not None and holder != id(value) else None

    def walk(items: list[Item]) -> int | None:
        for item in items:
            if isinstance(item, Loop):
                victim = walk_loop(item)
            else:
                victim = next((v for x in item.inputs if (v := use(x)) is not None), None)
                for value in item.outputs:
                    if id(value) in names:
                        binding[names[id(value)]] = id(value)
            if victim is not None:
                return victim
        return None

    def walk_loop(loop: Loop) -> int | None:
        for carry in loop.carries:
            if (victim := use(carry.init)) is not None:
                return victim
        for _ in range(2):
            for carry in loop.carries:
                binding[names[id(carry.inner)]] = id(carry.inner)
            if (victim := walk(loop.body)) is not None:
                return victim
            for carry in loop.carries:
                if (victim := use(carry.result)) is not None:
                    return victim
            for carry in loop.carries:
                if names[id(carry.inner)] != names[id(carry.result)]:
                    # What the iteration leaves is assigned to the variable when it ends.
                    binding[names[id(carry.inner)]] = id(carry.inner)
        return None

    victim = walk(items)
    return victim if victim is not None else next((v for x in results if (v := use(x)) is not None), None)
