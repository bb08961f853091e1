"""The typed program that a definition is traced into, and that every backend reads.

A program is a tree of `BlockDef`s. A block has parameters, states, children and functions; a function is a
list of nodes in the order the definition ran them. Shapes stay in the block's own generics and the entry's
own symbols: a function is checked once, and is true for every call of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.location import Location
from nest.ir.relation import Relation
from nest.ir.types import TensorType

__all__ = [
    "ArrayUse",
    "BlockDef",
    "BlockUse",
    "Function",
    "LoopMark",
    "Node",
    "Operand",
    "Param",
    "Parameter",
    "Path",
    "Program",
    "Signature",
    "State",
    "Value",
    "path_text",
]

Path = tuple[str | int, ...]


def path_text(path: Path) -> str:
    """`("decoder_layers", 0, "mlp")` as `decoder_layers.0.mlp`."""
    return ".".join(str(part) for part in path)


@dataclass(frozen=True)
class LoopMark:
    """Says that a node belongs to iteration `index` of a loop over the block array at `path`."""

    loop: int
    path: Path
    index: int
    count: int


class Value:
    """One tensor that a node produces, or an argument of the function where `node` is None."""

    __slots__ = ("index", "name", "node", "type")

    def __init__(self, type_: TensorType, node: Node | None, index: int = 0, name: str | None = None) -> None:
        self.type = type_
        self.node = node
        self.index = index
        self.name = name

    def __repr__(self) -> str:
        return f"<Value {self.name or (self.node.op if self.node else '?')}: {self.type}>"


Operand = Value | Dim | bool | int | float


class Node:
    """One operation: `op` names it, `attrs` hold what is static, `inputs` what flows in.

    Besides the ops of `nest.layers.ops` there are `param` (attrs: path), `read`, `assign` and `update`
    (path of a state), `call` (path of a block, function, and what the callee's symbols and dtypes are here) and
    `while_loop` (cond, body).
    """

    __slots__ = ("attrs", "inputs", "location", "loops", "op", "outputs")

    def __init__(
        self,
        op: str,
        inputs: tuple[Operand | None, ...],
        attrs: dict[str, Any],
        types: tuple[TensorType, ...],
        location: Location | None,
        loops: tuple[LoopMark, ...] = (),
    ) -> None:
        self.op = op
        self.inputs = inputs
        self.attrs = attrs
        self.outputs = tuple(Value(t, self, i) for i, t in enumerate(types))
        self.location = location
        self.loops = loops


@dataclass(frozen=True)
class Parameter:
    """An argument of a function. `fill` is the value that the host gives an omitted argument."""

    name: str
    type: TensorType
    fill: Dim | None = None


@dataclass
class Signature:
    """What a function takes and gives.

    `generics` are the symbols that a call binds (`B`, `S`); `rules` are the relations between symbols that a
    call must satisfy; `single` tells one result from a tuple of one.
    """

    parameters: tuple[Parameter, ...]
    results: tuple[TensorType, ...]
    generics: tuple[str, ...]
    single: bool = True
    rules: list[Relation] = field(default_factory=list)

    def __str__(self) -> str:
        generics = f"<{', '.join(self.generics)}>" if self.generics else ""
        args = ", ".join(
            f"{p.name}: {p.type}" + (f" = {p.fill}" if p.fill is not None else "") for p in self.parameters
        )
        results = ", ".join(map(repr, self.results))
        text = f"{generics}({args}) -> {results if self.single else f'({results})'}"
        return text + (f" where {', '.join(map(str, self.rules))}" if self.rules else "")


class Function:
    """A traced method: its signature, its nodes in order, and where it was written."""

    def __init__(
        self, name: str, block: BlockDef, signature: Signature, code: CodeType, doc: str | None
    ) -> None:
        self.name = name
        self.block = block
        self.signature = signature
        self.code = code
        self.doc = doc
        self.arguments: tuple[Value, ...] = tuple(
            Value(p.type, None, i, p.name) for i, p in enumerate(signature.parameters)
        )
        self.nodes: list[Node] = []
        self.results: tuple[Value, ...] = ()
        # Results that are views of a state, by position.
        self.views: dict[int, Path] = {}
        self.reads: set[Path] = set()
        self.writes: set[Path] = set()

    @property
    def uses_state(self) -> bool:
        return bool(self.reads or self.writes)

    def __repr__(self) -> str:
        return f"<Function {self.block.name}.{self.name}{self.signature}>"


@dataclass(frozen=True)
class Param:
    """A parameter of a block, in the block's generics. `trainable` is false for a buffer."""

    type: TensorType
    init: str = "normal"
    trainable: bool = True


@dataclass(frozen=True)
class State:
    """A state of a block: a tensor that a session keeps between calls."""

    type: TensorType
    batch_axis: int
    write_axis: int | None


@dataclass(frozen=True)
class BlockUse:
    """A child: its definition, and its generics as the parent spelled them."""

    block: BlockDef
    generics: dict[str, Dim | DType]


@dataclass(frozen=True)
class ArrayUse:
    """An array of children; `count` is the parent's spelling of its length."""

    items: tuple[BlockUse, ...]
    count: Dim


@dataclass(eq=False)
class BlockDef:
    """A block with its generics bound to values: one for each distinct class and binding."""

    name: str
    module: str
    doc: str | None
    generics: dict[str, Dim | DType]
    statics: dict[str, Any]
    params: dict[str, Param] = field(default_factory=dict)
    states: dict[str, State] = field(default_factory=dict)
    children: dict[str, BlockUse | ArrayUse] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    key: int = 0

    def child(self, path: Path) -> BlockDef:
        """The definition at a path relative to this block."""
        block, position = self, 0
        while position < len(path):
            use = block.children[str(path[position])]
            position += 1
            if isinstance(use, ArrayUse):
                use = use.items[int(path[position])]
                position += 1
            block = use.block
        return block

    def uses(self) -> Iterator[tuple[Path, BlockUse]]:
        """Every direct child with its path, arrays spread."""
        for name, use in self.children.items():
            if isinstance(use, ArrayUse):
                for index, item in enumerate(use.items):
                    yield (name, index), item
            else:
                yield (name,), use

    def distinct(self) -> list[BlockDef]:
        """This block and all below it, each once, children before parents."""
        seen: dict[int, BlockDef] = {}

        def visit(block: BlockDef) -> None:
            if block.key in seen:
                return
            for _, use in block.uses():
                visit(use.block)
            seen[block.key] = block

        visit(self)
        return list(seen.values())

    @property
    def has_state(self) -> bool:
        return bool(self.states) or any(use.block.has_state for _, use in self.uses())


@dataclass
class Program:
    """A model's entries, over the tree of its blocks.

    `capacity` is the largest `Capacity` that the definition's rules admit, or None where there is no such rule.
    `quantization` says what became of the weights of each part, where some were quantized.
    """

    name: str
    root: BlockDef
    entries: dict[str, Function]
    rules: tuple[Relation, ...] = ()
    quantization: tuple[object, ...] = ()

    def functions(self) -> list[Function]:
        """Every function that an entry reaches, callees first."""
        order: dict[int, Function] = {}

        def visit(function: Function) -> None:
            if id(function) in order:
                return
            for node in function.nodes:
                for attr in ("function", "cond", "body"):
                    if isinstance(callee := node.attrs.get(attr), Function):
                        visit(callee)
            order[id(function)] = function

        for entry in self.entries.values():
            visit(entry)
        return list(order.values())
