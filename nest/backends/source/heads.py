"""What stands at the head of a method: its docstring, its types, and the sizes that it takes from its arguments."""

from __future__ import annotations

import re
import textwrap

from nest.backends.source.layout import WIDTH, docstring
from nest.ir.program import BlockDef, Function

__all__ = ["introduction", "state_axis", "unpacked"]


def introduction(function: Function) -> list[str]:
    """The docstring, and the types of arguments and results as a comment."""
    signature = function.signature
    arguments = ", ".join(f"{p.name}: {p.type}" for p in signature.parameters)
    types = _wrapped_comment(f"({arguments}) -> {', '.join(map(repr, signature.results))}")
    return [*docstring(function.doc), *types] if function.doc else types


def state_axis(block: BlockDef, symbol: str, base: str) -> str | None:
    """Where the states of a block, or of one below it, have a symbol of the session as an axis of its own."""
    for name, state in block.states.items():
        for axis, dim in enumerate(state.type.shape):
            if dim.as_symbol() == symbol:
                return f"{base}.{name}.shape[{axis}]"
    for path, use in block.uses():
        inner = base + "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path)
        if symbol in ("Batch", "Capacity") and (found := state_axis(use.block, symbol, inner)) is not None:
            return found
    return None


def unpacked(name: str, found: list[tuple[int, str]], rank: int) -> list[str]:
    """Statements that take axes of a tensor: `found` is (axis, variable), in order."""
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
