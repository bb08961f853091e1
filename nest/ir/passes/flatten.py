"""Flattening: calls inlined down to the elements of block arrays, so that a pass sees a layer as a whole.

A model of 32 layers stays a loop over one layer: passes run once a kind of layer, not once a layer.
"""

from __future__ import annotations

from collections.abc import Iterator

from nest.ir.passes.inline import Scope
from nest.ir.program import (
    ArrayUse,
    BlockDef,
    BlockUse,
    Function,
    LoopMark,
    Node,
    Operand,
    Param,
    Path,
    Program,
    Value,
    path_text,
)

__all__ = ["flatten", "unit_and_rest"]


def flatten(program: Program) -> tuple[Program, dict[str, str]]:
    """The same program over units: the root, and the elements of block arrays.

    A unit owns the parameters of all blocks inside it, as `self_attn_q_proj_weight` for `self_attn.q_proj.weight`.
    States stay where they are.

    Returns:
        The program, and the definition path of each of its parameters.
    """
    flattener = _Flattener()
    root = flattener.unit(program.root)
    entries = {name: flattener.function(f) for name, f in program.entries.items()}
    paths = {path_text(flattener.names.flat(program.root, p)): path_text(p) for p in _paths(program.root, ())}
    return Program(program.name, root, entries, program.rules), paths


def unit_and_rest(path: Path) -> tuple[Path, Path]:
    """A path as that of a unit and what follows inside it."""
    last = max((i for i, part in enumerate(path) if isinstance(part, int)), default=-1)
    return path[: last + 1], path[last + 1 :]


class _Names:
    """What the parameters of units are called, each unit's found once."""

    def __init__(self) -> None:
        self._known: dict[int, dict[Path, str]] = {}

    def of(self, block: BlockDef) -> dict[Path, str]:
        """The name of each parameter that a unit owns, by its path inside the unit.

        `head.bias` and `head_bias` are two parameters: the later one's name gets another `_`.
        """
        known = self._known.get(block.key)
        if known is None:
            known = self._known[block.key] = {}
            taken: set[str] = set()
            for path in _inside(block, ()):
                name = "_".join(map(str, path))
                while name in taken:
                    name += "_"
                taken.add(name)
                known[path] = name
        return known

    def flat(self, block: BlockDef, path: Path) -> Path:
        """The path of a parameter after flattening, in a block and as seen from it."""
        unit, rest = unit_and_rest(path)
        for name, following in zip(unit, (*unit, None)[1:], strict=True):
            use = None if isinstance(name, int) else block.children[name]
            if isinstance(use, ArrayUse) and isinstance(following, int):
                block = use.items[following].block
            elif isinstance(use, BlockUse):
                block = use.block
        return (*unit, self.of(block)[rest])


def _inside(block: BlockDef, path: Path) -> Iterator[Path]:
    """The paths of a unit's parameters, its own first."""
    yield from ((*path, name) for name in block.params)
    for name, use in block.children.items():
        if isinstance(use, BlockUse):
            yield from _inside(use.block, (*path, name))


def _paths(block: BlockDef, path: Path) -> Iterator[Path]:
    """The paths of all parameters."""
    yield from ((*path, name) for name in block.params)
    for relative, use in block.uses():
        yield from _paths(use.block, (*path, *relative))


class _Flattener:
    """Units and their functions, each made once."""

    def __init__(self) -> None:
        self._units: dict[int, BlockDef] = {}
        self._functions: dict[int, Function] = {}
        self.names = _Names()

    def unit(self, block: BlockDef) -> BlockDef:
        known = self._units.get(block.key)
        if known is None:
            known = self._units[block.key] = self._hollow(block)
            # Of its own, since a block may be an element here and a plain child there.
            known.key = 2 * block.key
            names = self.names.of(block)
            known.params = {names[path]: param for path, param in _owned(block, Scope((), {}, {}))}
        return known

    def _hollow(self, block: BlockDef) -> BlockDef:
        """What a block is without parameters: its states, and the units below it."""
        made = BlockDef(block.name, block.module, block.doc, block.generics, block.statics)
        made.key = 2 * block.key + 1
        made.states = dict(block.states)
        for name, use in block.children.items():
            if isinstance(use, ArrayUse):
                items = tuple(BlockUse(self.unit(item.block), item.generics) for item in use.items)
                made.children[name] = ArrayUse(items, use.count)
            elif _holds_more(use.block):
                made.children[name] = BlockUse(self._hollow(use.block), use.generics)
        return made

    def function(self, function: Function) -> Function:
        """A function of a unit, with what it calls inside the unit as nodes of its own."""
        known = self._functions.get(id(function))
        if known is None:
            unit = self.unit(function.block)
            known = Function(function.name, unit, function.signature, function.code, function.doc)
            self._functions[id(function)] = known
            known.reads, known.writes = set(function.reads), set(function.writes)
            known.views = dict(function.views)
            values: dict[int, Value] = dict(zip(map(id, function.arguments), known.arguments, strict=True))
            known.results = tuple(
                _Inliner(self, known, function.block).run(function, values, Scope((), {}, {}), ())
            )
            unit.functions[f"{function.name} {len(unit.functions)}"] = known
        return known


def _holds_more(block: BlockDef) -> bool:
    """Whether a block has a state or a unit in it."""
    return bool(block.states) or any(
        isinstance(use, ArrayUse) or _holds_more(use.block) for use in block.children.values()
    )


def _owned(block: BlockDef, scope: Scope) -> Iterator[tuple[Path, Param]]:
    """The parameters of a unit: its own, and those of the blocks inside it, in definition order."""
    for name, param in block.params.items():
        yield (*scope.path, name), Param(scope.type(param.type), param.init, param.trainable)
    for name, use in block.children.items():
        if isinstance(use, BlockUse):
            yield from _owned(use.block, scope.inner((name,), use.generics))


class _Inliner:
    """Copies nodes into a unit's function."""

    def __init__(self, flattener: _Flattener, target: Function, block: BlockDef) -> None:
        self.flattener = flattener
        self.target = target
        self.block = block
        self.params: dict[Path, Value] = {}

    def run(
        self, function: Function, values: dict[int, Value], scope: Scope, loops: tuple[LoopMark, ...]
    ) -> list[Value]:
        for node in function.nodes:
            # Loops that are written inside an inlined method stay unrolled.
            marks = node.loops if not scope.path else loops
            if node.op == "param":
                values[id(node.outputs[0])] = self._param(node, scope)
            elif node.op == "call" and not _of_unit((*scope.path, *node.attrs["path"])):
                self._call(node, values, scope, marks)
            else:
                self._copy(node, values, scope, marks)
        return [values[id(v)] for v in function.results]

    def _copy(self, node: Node, values: dict[int, Value], scope: Scope, loops: tuple[LoopMark, ...]) -> None:
        attrs = {n: self._attr(v, scope) for n, v in node.attrs.items()}
        if "path" in attrs:
            attrs["path"] = (*scope.path, *node.attrs["path"])
        inputs = tuple(_operand(x, values, scope) for x in node.inputs)
        types = tuple(scope.type(v.type) for v in node.outputs)
        made = Node(node.op, inputs, attrs, types, node.location, loops)
        self.target.nodes.append(made)
        values.update((id(old), new) for old, new in zip(node.outputs, made.outputs, strict=True))

    def _attr(self, value: object, scope: Scope) -> object:
        return self.flattener.function(value) if isinstance(value, Function) else scope.attr(value)

    def _param(self, node: Node, scope: Scope) -> Value:
        path = self.flattener.names.flat(self.block, (*scope.path, *node.attrs["path"]))
        known = self.params.get(path)
        if known is None:
            made = Node("param", (), {"path": path}, (scope.type(node.outputs[0].type),), node.location)
            self.target.nodes.append(made)
            known = self.params[path] = made.outputs[0]
        return known

    def _call(self, node: Node, values: dict[int, Value], scope: Scope, loops: tuple[LoopMark, ...]) -> None:
        callee: Function = node.attrs["function"]
        given = [_operand(x, values, scope) for x in node.inputs]
        bound = {id(a): v for a, v in zip(callee.arguments, given, strict=True) if isinstance(v, Value)}
        inner = scope.inner(node.attrs["path"], node.attrs["symbols"] | node.attrs["dtypes"])
        results = self.run(callee, bound, inner, loops)
        values.update((id(v), r) for v, r in zip(node.outputs, results, strict=True))


def _of_unit(path: Path) -> bool:
    """Whether a path ends at an element of an array."""
    return bool(path) and isinstance(path[-1], int)


def _operand(x: Operand | None, values: dict[int, Value], scope: Scope) -> Operand | None:
    return values[id(x)] if isinstance(x, Value) else scope.operand(x)
