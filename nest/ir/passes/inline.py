"""Inlining: an entry as one flat list of nodes in the root's symbols."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Operand, Path, Program, Value
from nest.ir.types import TensorType

__all__ = ["Scope", "inline"]


class Scope:
    """How the symbols of a function being inlined read where its nodes go, and where its block lies from there."""

    def __init__(self, path: Path, dims: dict[str, Dim], dtypes: dict[str, DType]) -> None:
        self.path = path
        self.dims = dims
        self.dtypes = dtypes

    def type(self, type_: TensorType) -> TensorType:
        return type_.substitute(self.dims, self.dtypes)

    def operand(self, x: Operand | None) -> Operand | None:
        """An operand that is no value."""
        return x.substitute(self.dims) if isinstance(x, Dim) else x

    def inner(self, path: Path, symbols: Mapping[str, Dim | DType]) -> Scope:
        """The scope of what is called at a path, its symbols bound to expressions of this one."""
        dims = {n: d.substitute(self.dims) for n, d in symbols.items() if isinstance(d, Dim)}
        dtypes = {n: self.dtypes.get(t.name, t) for n, t in symbols.items() if isinstance(t, DType)}
        return Scope((*self.path, *path), dims, dtypes)

    def attr(self, value: Any) -> Any:
        if isinstance(value, Dim):
            return value.substitute(self.dims)
        if isinstance(value, DType):
            return self.dtypes.get(value.name, value)
        if isinstance(value, dict):
            return {name: self.attr(item) for name, item in value.items()}
        return tuple(map(self.attr, value)) if isinstance(value, tuple) else value


def inline(program: Program, name: str) -> Function:
    """The entry `name` with every call replaced by the callee's nodes.

    Paths of parameters and states become the model's own, and every dim an expression over the root's generics,
    the entry's symbols and the session's. One read of a parameter serves all its uses. Loops stay nodes; their
    regions keep their own calls.
    """
    entry = program.entries[name]
    flat = Function(entry.name, entry.block, entry.signature, entry.code, entry.doc)
    flat.reads, flat.writes = set(entry.reads), set(entry.writes)
    builder = _Inliner(flat)
    values = dict(zip(map(id, entry.arguments), flat.arguments, strict=True))
    results = builder.run(entry, values, Scope((), {}, {}))
    flat.results = tuple(results)
    return flat


class _Inliner:
    def __init__(self, target: Function) -> None:
        self.target = target
        self.params: dict[Path, Value] = {}

    def run(self, function: Function, values: dict[int, Value], scope: Scope) -> list[Value]:
        """Append a function's nodes; `values` maps its arguments, and then its nodes' values, to the target's."""
        for node in function.nodes:
            if node.op == "call":
                self._call(node, values, scope)
            elif node.op == "param":
                values[id(node.outputs[0])] = self._param(node, scope)
            else:
                self._copy(node, values, scope)
        return [values[id(v)] for v in function.results]

    def _operand(self, x: Operand | None, values: dict[int, Value], scope: Scope) -> Operand | None:
        return values[id(x)] if isinstance(x, Value) else scope.operand(x)

    def _copy(self, node: Node, values: dict[int, Value], scope: Scope) -> None:
        attrs = {n: scope.attr(v) for n, v in node.attrs.items() if n != "path"}
        if "path" in node.attrs:
            attrs["path"] = (*scope.path, *node.attrs["path"])
        if node.op == "while_loop":
            attrs["path"] = scope.path
        inputs = tuple(self._operand(x, values, scope) for x in node.inputs)
        made = Node(node.op, inputs, attrs, tuple(scope.type(v.type) for v in node.outputs), node.location)
        self.target.nodes.append(made)
        values.update((id(old), new) for old, new in zip(node.outputs, made.outputs, strict=True))

    def _param(self, node: Node, scope: Scope) -> Value:
        path = (*scope.path, *node.attrs["path"])
        known = self.params.get(path)
        if known is None:
            made = Node("param", (), {"path": path}, (scope.type(node.outputs[0].type),), node.location)
            self.target.nodes.append(made)
            known = self.params[path] = made.outputs[0]
        return known

    def _call(self, node: Node, values: dict[int, Value], scope: Scope) -> None:
        callee: Function = node.attrs["function"]
        arguments = [self._operand(x, values, scope) for x in node.inputs]
        inner = scope.inner(node.attrs["path"], node.attrs["symbols"] | node.attrs["dtypes"])
        bound = {id(a): v for a, v in zip(callee.arguments, arguments, strict=True) if isinstance(v, Value)}
        results = self.run(callee, bound, inner)
        values.update((id(v), r) for v, r in zip(node.outputs, results, strict=True))
