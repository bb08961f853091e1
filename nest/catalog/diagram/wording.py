"""Types and texts of a function as somebody reads them who looks into it from an entry."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nest.catalog.diagram.naming import Text
from nest.ir import Dim, DType, Program, TensorType
from nest.ir.passes.inline import Scope

__all__ = ["Label", "Words", "spellings"]

WIDEST = 34
"""Characters of a type on a wire; what is longer is shortened."""


@dataclass(frozen=True)
class Label:
    """A text as it is shown, and whole."""

    shown: str
    whole: str


@dataclass(frozen=True)
class Words:
    """What a scope's texts read like. `named` keeps the names that the block gives to sizes in `build`: those of the
    model are explained beside its entries, those of other blocks mean nothing outside of them and are written out."""

    scope: Scope
    spellings: Sequence[Dim]
    named: bool

    def type(self, type_: TensorType) -> Label:
        here = self.scope.type(type_)
        dims = [self._dim(d) for d in here.shape]
        return Label(self._short(here, dims), f"{here.dtype}[{', '.join(dims)}]")

    def text(self, text: Text) -> Label:
        pieces = [self._piece(piece) for piece in text]
        return Label(_cut("".join(p.shown for p in pieces)), "".join(p.whole for p in pieces))

    def _piece(self, piece: str | Dim | DType | TensorType) -> Label:
        if isinstance(piece, TensorType):
            return self.type(piece)
        here = self.scope.attr(piece)
        text = self._dim(here) if isinstance(here, Dim) else str(here)
        return Label(text, text)

    def _dim(self, dim: Dim) -> str:
        return str(dim) if self.named else dim.symbolic_text

    def _short(self, type_: TensorType, dims: Sequence[str]) -> str:
        """A type as a wire shows it.

        A size that the model spells shorter elsewhere is spelled so. Where the type is still long, its longest sizes
        are left out, and what they are worth stands there if it is known: `T[B, 64, …=56, …=56]`.
        """
        shown = [self._spelled(d, text) for d, text in zip(type_.shape, dims, strict=True)]
        while len(text := f"{type_.dtype}[{', '.join(shown)}]") > WIDEST:
            longest = max(map(len, shown), default=0)
            if longest <= 8:
                break
            for axis in [i for i, d in enumerate(shown) if len(d) == longest]:
                value = type_.shape[axis].value
                shown[axis] = "…" if value is None else f"…={value}"
        return text

    def _spelled(self, dim: Dim, text: str) -> str:
        shorter = (s for s in self.spellings if len(str(s)) < len(text) and s.same(dim))
        return str(next(shorter, text))


def spellings(program: Program) -> list[Dim]:
    """Sizes as the signatures of the entries and the parameters of the model spell them, the shortest first."""
    types = [p.type for p in program.root.params.values()]
    for function in program.entries.values():
        types += [*(p.type for p in function.signature.parameters), *function.signature.results]
    known = {str(d): d for t in types for d in t.shape if not d.text.isidentifier()}
    return sorted(known.values(), key=lambda d: len(str(d)))


def _cut(text: str, most: int = 48) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"
