"""One function of the program as one method of a class."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from nest.backends.source.comments import method_comments
from nest.backends.source.dialect import Dialect
from nest.backends.source.expr import Attr, Expr, Listing, Name, Raw, Several, laid_out, literal
from nest.backends.source.fold import Item, Loop
from nest.backends.source.heads import introduction, state_axis, unpacked
from nest.backends.source.layout import WIDTH, head
from nest.backends.source.names import loop_line, loop_variable
from nest.backends.source.nesting import Nesting
from nest.backends.source.operands import dim_text
from nest.backends.source.sentences import SentenceWriter
from nest.backends.source.uses import touches_state
from nest.errors import DefinitionError
from nest.ir.program import Function, Node

__all__ = ["MethodWriter", "dim_text"]


class MethodWriter(SentenceWriter):
    """Prints a function; see `OperandWriter` for what it takes and holds."""

    def __init__(self, function: Function, dialect: Dialect, method_name: Callable[[Function], str]) -> None:
        super().__init__(function, dialect, method_name)
        self._nesting = Nesting(self.items, self.uses, self.names)

    def lines(self) -> list[str]:
        """The method, unindented."""
        body = self._block(self.items, WIDTH - 8)
        body += self._return(WIDTH - 8)
        arguments = [self.names.of[id(v)] for v in self.function.arguments]
        arguments += ["state"] if self.function.uses_state else []
        opening = head(self._method(self.method_name(self.function)), ["self", *arguments])
        lines = [*introduction(self.function), *self._shapes(), *body]
        above = method_comments(self.function.code)
        return [*above, *opening, *("    " + line if line else line for line in lines)]

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
            lines += unpacked(self.names.of[id(value)], found, value.type.rank)
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
        return state_axis(self.function.block, symbol, "state") if self.function.uses_state else None

    def _block(self, items: list[Item], width: int) -> list[str]:
        lines: list[str] = []
        for item in items:
            lines += self._loop(item, width) if isinstance(item, Loop) else self._statement(item, width)
        return lines

    def _statement(self, node: Node, width: int) -> list[str]:
        for value in node.outputs:
            self._printed[id(value)] = node
        if self._nesting.nests(node):
            return []
        comments = self._comments_of([node])
        if node.op == "while_loop":
            return [*comments, *self._while(node)]
        used = [v for v in node.outputs if self.uses.get(id(v))]
        target = ", ".join(self._named(v, node) for v in node.outputs) + " = " if used else ""
        return [*comments, *self._sentence(target, lambda: self._node_expr(node), [node], width)]

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
        if body.uses_state and node.attrs.get("overrun"):
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
