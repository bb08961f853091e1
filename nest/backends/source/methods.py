"""One function of the program as one method of a class."""

from __future__ import annotations

import ast
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from types import CodeType

from nest.backends.source.comments import MethodComments, method_comments
from nest.backends.source.dialect import Dialect
from nest.backends.source.expr import (
    Attr,
    Call,
    Expr,
    Index,
    Listing,
    Name,
    Raw,
    Several,
    laid_out,
    literal,
)
from nest.backends.source.fold import Item, Loop, fold
from nest.backends.source.layout import WIDTH, docstring, head
from nest.backends.source.names import RESERVED, Names, loop_line, loop_variable, statement_of
from nest.backends.source.shapes import shape_note
from nest.backends.source.uses import EFFECTS, drop_unused, touches_state, uses_of
from nest.errors import DefinitionError
from nest.ir.dim import Dim
from nest.ir.dtype import DType
from nest.ir.location import Span, statements
from nest.ir.program import BlockDef, Function, Node, Operand, Path, Value

__all__ = ["MethodWriter", "dim_text"]

_DEEPEST = 24  # nested expressions; a longer chain of operators gets a variable
_SYMBOL = re.compile(r"[A-Za-z_]\w*")


def dim_text(dim: Dim, spell: Callable[[str], str]) -> str:
    """A dim as Python source, each symbol spelled by `spell`."""
    return _formatted(_SYMBOL.sub(lambda m: spell(m.group()), dim.text))


@lru_cache(maxsize=4096)
def _formatted(expression: str) -> str:
    return ast.unparse(ast.parse(expression, mode="eval"))


class MethodWriter:
    """Prints a function.

    Args:
        function: what to print.
        dialect: the framework.
        method_name: what a function is called in its class.
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
        self._depths: dict[int, int] = {}
        self._order: dict[int, int] = {}
        self._effects: list[int] = []
        self._number(self.items)
        self.loop: Loop | None = None
        self.loop_names: tuple[str, str] = ("", "")

    def _symbol_names(self) -> Iterable[str]:
        symbols = (*self.function.signature.generics, "Batch", "Capacity")
        return (*symbols, *map(self._symbol, symbols), *self.dialect.reserved)

    # -- expressions ---------------------------------------------------------------------------------------

    def expr(self, x: Operand | None) -> Expr:
        """An operand: a variable, a parameter, a number, or a nested expression."""
        if isinstance(x, Value):
            if x.node is not None and x.node.op == "param":
                return self.dialect.parameter(self.member(x.node.attrs["path"]))
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
        return self.dialect.op(self, node)

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

    # -- statements ----------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """The method, unindented."""
        self._printed: dict[int, Node] = {}
        self._comments: dict[CodeType, MethodComments] = {}
        body = self._block(self.items, WIDTH - 8)
        body += self._return(WIDTH - 8)
        arguments = [self.names.of[id(v)] for v in self.function.arguments]
        arguments += ["state"] if self.function.uses_state else []
        opening = head(self._method(self.method_name(self.function)), ["self", *arguments])
        lines = [*self._doc(), *self._shapes(), *body]
        above = method_comments(self.function.code)
        return [*above, *opening, *("    " + line if line else line for line in lines)]

    def _doc(self) -> list[str]:
        signature = _wrapped_comment(self._signature_text())
        return [*docstring(self.function.doc), *signature] if self.function.doc else signature

    def _signature_text(self) -> str:
        signature = self.function.signature
        arguments = ", ".join(f"{p.name}: {p.type}" for p in signature.parameters)
        return f"({arguments}) -> {', '.join(map(repr, signature.results))}"

    def _shapes(self) -> list[str]:
        """Take the symbols that the body uses from the arguments' shapes."""
        lines: list[str] = []
        wanted = list(self.symbols)
        for value in self.function.arguments:
            axes = {d.as_symbol(): a for a, d in reversed(list(enumerate(value.type.shape)))}
            found = sorted((axes[s], s) for s in wanted if s in axes)
            if not found:
                continue
            wanted = [s for s in wanted if s not in axes]
            found = [(axis, self._symbol(s)) for axis, s in found]
            lines += _unpack(self.names.of[id(value)], found, value.type.rank)
        for symbol in list(wanted):
            if (source := self._state_axis(symbol)) is not None:
                lines.append(f"{self._symbol(symbol)} = {source}")
                wanted.remove(symbol)
        if wanted:
            raise DefinitionError(
                f"{self.function.block.name}.{self.function.name} needs {', '.join(wanted)}, and no argument has it "
                f"as an axis of its own."
            )
        return lines

    def _state_axis(self, symbol: str) -> str | None:
        return _axis_of_state(self.function.block, symbol, "state") if self.function.uses_state else None

    def _block(self, items: list[Item], width: int) -> list[str]:
        lines: list[str] = []
        for item in items:
            lines += self._loop(item, width) if isinstance(item, Loop) else self._statement(item, width)
        return lines

    def _statement(self, node: Node, width: int) -> list[str]:
        for value in node.outputs:
            self._printed[id(value)] = node
        if self._nests(node):
            return []
        comments = self._comments_of([node])
        if node.op == "while_loop":
            return [*comments, *self._while(node)]
        used = [v for v in node.outputs if self.uses.get(id(v))]
        target = ", ".join(self._named(v, node) for v in node.outputs) + " = " if used else ""
        return [*comments, *self._sentence(target, lambda: self._node_expr(node), [node], width)]

    def _sentence(self, start: str, make: Callable[[], Expr], nodes: Sequence[Node], width: int) -> list[str]:
        """A statement with a comment of the shapes that it makes. What is too long inside it is named before it."""
        lines: list[str] = []
        while (excess := len(start) + len(make().flat()) - width) > 0:
            apart = self._apart(nodes, excess, width)
            if apart is None:
                break
            name = self.names.temporary(apart.outputs[0], _base(apart))
            lines += self._sentence(f"{name} = ", partial(self._node_expr, apart), [apart], width)
        laid = laid_out(start, make(), width)
        note = shape_note(nodes, self._inside, self.function.signature)
        if note and len(laid) == 1 and len(laid[0]) + len(note) + 2 <= width:
            return [*lines, f"{laid[0]}  {note}"]
        return [*lines, *([note] if note else []), *laid]

    def _apart(self, nodes: Iterable[Node], excess: int, width: int) -> Node | None:
        """The nested node that is best printed as a statement of its own, to save so many columns."""
        found: list[tuple[tuple[bool, bool, int], Node]] = []
        for node in (n for top in nodes for n in self._inside(top)):
            size, name = len(self._node_expr(node).flat()), len(_base(node))
            if size - name > _LEAST_SAVED:
                enough = size - name >= excess and size + name + 3 <= width
                found.append(((enough, node.op in _BASES, size), node))
        return max(found, key=lambda pair: pair[0])[1] if found else None

    def _inside(self, node: Node) -> Iterator[Node]:
        """The nodes that are printed inside the expression of one, outer ones first."""
        for x in node.inputs:
            if isinstance(x, Value):
                yield from self._nested(x)

    def _nested(self, x: Value) -> Iterator[Node]:
        if x.node is not None and x.node.op != "param" and id(x) not in self.names.of:
            inner = self._printed[id(x)]
            yield inner
            yield from self._inside(inner)

    def _comments_of(self, nodes: Iterable[Node]) -> list[str]:
        """The definition's comments up to the statement of these nodes."""
        lines: list[str] = []
        for top in nodes:
            for node in (top, *self._inside(top)):
                span = statement_of(node.location)
                if node.location is not None and span is not None:
                    lines += self._comments_until(node.location.code, span.end_line)
        return lines

    def _comments_until(self, code: CodeType, line: int) -> list[str]:
        if code.co_filename != self.function.code.co_filename:
            return []
        known = self._comments.setdefault(code, MethodComments(code))
        return known.until(line)

    def _named(self, value: Value, node: Node) -> str:
        if id(value) in self.names.of:
            return self.names.of[id(value)]
        return self.names.temporary(value, _base(node))

    def _nests(self, node: Node) -> bool:
        """Whether a node is printed inside the one expression that uses it."""
        if node.op in EFFECTS or len(node.outputs) != 1 or id(node.outputs[0]) in self.names.of:
            return False
        if node.op == "call" and node.attrs["function"].writes:
            return False
        uses = self.uses.get(id(node.outputs[0]), [])
        if len(uses) != 1:
            return False
        if self._effect_between(node, uses[0]) or self._depth(node) > _DEEPEST:
            return False
        here = statement_of(node.location)
        if uses[0] is None:
            return here is not None and node.location is not None and _is_return(node.location.code, here)
        return here == statement_of(uses[0].location) and node.loops == uses[0].loops

    def _depth(self, node: Node) -> int:
        """How deep the expression of a node is, with what is nested in it."""
        known = self._depths.get(id(node))
        if known is None:
            inner = (
                self._depths.get(id(x.node), 0)
                for x in node.inputs
                if isinstance(x, Value) and x.node is not None
            )
            nested = [d for d in inner if d <= _DEEPEST]
            known = self._depths[id(node)] = 1 + max(nested, default=0)
        return known

    def _effect_between(self, node: Node, use: Node | None) -> bool:
        """Whether a state is written after a node and before its use: nested, it would see what was written."""
        start = self._order[id(node.outputs[0])]
        stop = self._order.get(id(use), 1 << 30) if use is not None else 1 << 30
        return any(start < at < stop for at in self._effects)

    def _number(self, items: list[Item], count: int = 0) -> int:
        """Number the nodes in the order in which they are printed, and note those that write."""
        for item in items:
            if isinstance(item, Loop):
                count = self._number(item.body, count)
                continue
            count += 1
            self._order[id(item)] = count
            self._order.update((id(v), count) for v in item.outputs)
            if item.op in EFFECTS or (item.op == "call" and item.attrs["function"].writes):
                self._effects.append(count)
        return count

    def _while(self, node: Node) -> list[str]:
        cond, body = node.attrs["cond"], node.attrs["body"]
        # A carry that the author does not name is called as the body calls it.
        names = [
            self.names.of.get(id(v)) or self.names.temporary(v, str(a.name))
            for v, a in zip(node.outputs, body.arguments, strict=True)
        ]
        if (own := self.dialect.while_loop(self, node, names)) is not None:
            return own
        target = ", ".join(names)
        carry = Listing([self.expr(x) for x in node.inputs], "()")
        steps = [self._region(cond), self._region(body), carry, literal(node.attrs["max_trips"])]
        if body.uses_state:
            steps.append(Name("state"))
        start = f"{target} = " if len(names) > 1 else f"{target}, = "
        return laid_out(start, self.helper("repeat", *steps), WIDTH - 8)

    def _region(self, region: Function) -> Expr:
        """The condition or body of a loop as a function of the carry alone."""
        method = Attr(Name("self"), self.method_name(region))
        return Raw(f"lambda *carry: {method.flat()}(*carry, state)") if region.uses_state else method

    def _loop(self, loop: Loop, width: int) -> list[str]:
        lines = self._comments_until(self.function.code, loop_line(loop))
        lines += self._together(
            [(self.names.of[id(c.inner)], self.expr(c.init).flat()) for c in loop.carries]
        )
        element = self.names.element(loop_variable(loop))
        stateful = any(touches_state(item) for item in loop.body)
        array = self.member(loop.mark.path).flat()
        opening = f"for {element} in {array}:"
        if stateful:
            states = self.state(loop.mark.path).flat()
            opening = f"for {element}, {element}_state in zip({array}, {states}, strict=True):"
        outer = self.loop, self.loop_names
        self.loop, self.loop_names = loop, (element, f"{element}_state")
        body = self._block(loop.body, width - 4)
        body += self._together(
            [(self.names.of[id(c.inner)], self.expr(c.result).flat()) for c in loop.carries]
        )
        self.loop, self.loop_names = outer
        return [*lines, opening, *("    " + line for line in body)]

    @staticmethod
    def _together(pairs: list[tuple[str, str]]) -> list[str]:
        """Assignments that happen at once, since one may take what another replaces."""
        changed = [(name, value) for name, value in pairs if name != value]
        if not changed:
            return []
        return [f"{', '.join(n for n, _ in changed)} = {', '.join(v for _, v in changed)}"]

    def _return(self, width: int) -> list[str]:
        def make() -> Expr:
            exprs = [self.expr(v) for v in self.results]
            return exprs[0] if self.function.signature.single else Several(exprs)

        nodes = [n for v in self.results for n in islice(self._nested(v), 1)]
        comments = [*self._comments_of(nodes), *self._comments_until(self.function.code, 1 << 30)]
        return [*comments, *self._sentence("return ", make, nodes, width)]


_BASES = {
    "linear": "y", "einsum": "y", "conv": "y", "attention": "attended", "update": "cache", "softmax": "weights",
    "take": "picked",
}  # fmt: skip
_LEAST_SAVED = 12


def _axis_of_state(block: BlockDef, symbol: str, base: str) -> str | None:
    """Where the states of a block, or of one below it, have a symbol of the session as an axis of its own."""
    for name, state in block.states.items():
        for axis, dim in enumerate(state.type.shape):
            if dim.as_symbol() == symbol:
                return f"{base}.{name}.shape[{axis}]"
    for path, use in block.uses():
        inner = base + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
        if (
            symbol in ("Batch", "Capacity")
            and (found := _axis_of_state(use.block, symbol, inner)) is not None
        ):
            return found
    return None


def _base(node: Node) -> str:
    """What a value is called that its author did not name."""
    if node.op == "call" and node.attrs["function"].name != "forward":
        return str(node.attrs["function"].name)
    return _BASES.get(node.op, "h")


def _unpack(name: str, found: list[tuple[int, str]], rank: int) -> list[str]:
    axes = [a for a, _ in found]
    if len(found) == 1:
        return [f"{found[0][1]} = {name}.shape[{axes[0]}]"]
    if axes == list(range(len(axes))):
        targets = ", ".join(s for _, s in found)
        return [f"{targets} = {name}.shape" + ("" if len(axes) == rank else f"[:{len(axes)}]")]
    return [f"{s} = {name}.shape[{a}]" for a, s in found]


def _wrapped_comment(text: str) -> list[str]:
    """A comment that breaks between arguments, never inside a type."""
    glued = re.sub(r"\[[^\]]*\]", lambda m: m.group().replace(" ", "\0"), text)
    wrapped = textwrap.wrap(glued.replace(": ", ":\0"), WIDTH - 10, break_long_words=False)
    return ["# " + line.replace("\0", " ") for line in wrapped]


def _is_return(code: CodeType, span: Span) -> bool:
    return any(s == span and isinstance(n, ast.Return) for s, n in statements(code))
