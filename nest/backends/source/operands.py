"""Operands of a function's nodes as expressions: variables, members, states, sizes, element types."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, cast

from nest.backends.source.dialect import Dialect
from nest.backends.source.expr import Attr, Call, Expr, Index, Name, Raw, literal
from nest.backends.source.fold import Loop, fold
from nest.backends.source.names import RESERVED, Names
from nest.backends.source.uses import drop_unused, uses_of
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.program import Function, Node, Operand, Path, Value

if TYPE_CHECKING:
    pass

if TYPE_CHECKING:
    from nest.backends.source.methods import MethodWriter

__all__ = ["OperandWriter", "dim_text"]

_SYMBOL = re.compile(r"[A-Za-z_]\w*")


def dim_text(dim: Dim, spell: Callable[[str], str]) -> str:
    """A dim as Python source, each symbol spelled by `spell`."""
    text = dim.text
    if not dim.symbols().issuperset(_SYMBOL.findall(text)):
        text = dim.symbolic_text  # the constructor and methods have symbols, not what build called a size
    return _formatted(_SYMBOL.sub(lambda m: spell(m.group()), text))


@lru_cache(maxsize=4096)
def _formatted(expression: str) -> str:
    return ast.unparse(ast.parse(expression, mode="eval"))


class OperandWriter:
    """What a function is printed from, and what it is printed with.

    Args:
        function: what to print.
        dialect: the framework.
        method_name: what a function is called in its class.

    Attributes:
        generics: of the block, those that the method needs as members.
        symbols: those that it takes from its arguments' shapes.
        helpers: functions of the generated file that it calls.
    """

    def __init__(self, function: Function, dialect: Dialect, method_name: Callable[[Function], str]) -> None:
        self.function = function
        self.dialect = dialect
        self.method_name = method_name
        self.generics: dict[str, None] = {}
        self.symbols: dict[str, None] = {}
        self.helpers: dict[str, None] = {}
        self.items, self.results = fold(function, method_name)
        drop_unused(self.items, self.results)
        self.uses = uses_of(self.items, self.results)
        self.names = Names(function, self.items, self.results, self._symbol_names())
        self.loop: Loop | None = None
        self.loop_names: tuple[str, str] = ("", "")
        # The node that makes a value, with its inputs as they are after folding.
        self._printed: dict[int, Node] = {}

    def _symbol_names(self) -> Iterable[str]:
        symbols = (*self.function.signature.generics, "Batch", "Capacity")
        return (*symbols, *map(self._symbol, symbols), *self.dialect.reserved)

    def expr(self, x: Operand | None) -> Expr:
        """An operand: a variable, a parameter, a number, or a nested expression."""
        if isinstance(x, Value):
            if x.node is not None and x.node.op == "param":
                return self.dialect.parameter(cast("MethodWriter", self), x.node)
            if id(x) in self.names.of:
                return Name(self.names.of[id(x)])
            if x.node is None:
                raise DefinitionError(f"{self.function.name}: a value has no name.")
            return self._node_expr(self._printed[id(x)])
        return Raw(self.dim(x)) if isinstance(x, Dim) else literal(x)

    def member(self, path: Path) -> Expr:
        """`self.a.b`, or `layer.b` for the element of the loop being printed."""
        return self._chain(Name("self"), path, self.loop_names[0])

    def state(self, path: Path) -> Expr:
        """`state.a.b`, likewise."""
        return self._chain(Name("state"), path, self.loop_names[1])

    def _chain(self, base: Expr, path: Path, element: str) -> Expr:
        if self.loop is not None and "*" in path:
            depth = path.index("*")
            base, path = Name(element), path[depth + 1 :]
        for part in path:
            base = Index(base, str(part)) if isinstance(part, int) else Attr(base, str(part))
        return base

    def dim(self, dim: Dim) -> str:
        """A dim: a number, `self.D`, or a symbol that the head of the method takes from an argument's shape."""
        return dim_text(dim, self._spell)

    def dims(self, dims: Iterable[Dim]) -> list[Expr]:
        return [Raw(self.dim(d)) for d in dims]

    def _spell(self, name: str) -> str:
        if name in self.function.block.generics:
            self.generics[name] = None
            return f"self.{name}"
        self.symbols[name] = None
        return self._symbol(name)

    def _symbol(self, name: str) -> str:
        """The variable of a symbol: its own name, unless the file means something else by it."""
        return f"{name}_size" if name in RESERVED | self.dialect.reserved else name

    def dtype(self, dtype: DType) -> Expr:
        """An element type; a generic one is the module's own."""
        if dtype.name in self.function.block.generics:
            self.generics[dtype.name] = None
            return Raw(f"self.{dtype.name}")
        return self.dialect.dtype(dtype)

    def helper(self, name: str, *args: Expr, **kwargs: Expr) -> Call:
        """A call of a function of the generated file's own."""
        self.helpers[name] = None
        return Call(Name(name), list(args), kwargs)

    def like(self) -> Expr:
        """A tensor at hand, whose device a new tensor takes."""
        for argument in self.function.arguments:
            return Name(self.names.of[id(argument)])
        return Raw("next(self.parameters())")

    def _node_expr(self, node: Node) -> Expr:
        if node.op == "call":
            return self._call(node)
        return self.dialect.op(cast("MethodWriter", self), node)

    def _call(self, node: Node) -> Expr:
        callee: Function = node.attrs["function"]
        path: Path = node.attrs["path"]
        args = [self.expr(x) for x in node.inputs]
        if callee.uses_state:
            args.append(self.state(path))
        target = self.member(path)
        name = self.method_name(callee)
        return Call(target if name == "forward" and path else Attr(target, self._method(name)), args)

    def _method(self, name: str) -> str:
        return self.dialect.call_method if name == "forward" else name
