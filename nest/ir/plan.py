"""Plans: a program made ready to run in a named way."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nest.errors import CallError
from nest.ir.parammap import Expr, ParamMap, Source
from nest.ir.passes import (
    flatten,
    fuse,
    fuse_attention,
    narrow,
    pack_projections,
    shortlist,
    store_columns,
)
from nest.ir.program import BlockDef, Path, Program, path_text

__all__ = ["CHANGES", "PLANS", "Plan", "plan"]

PLANS: dict[str, str] = {
    "exact": "the definition as it is written, in full precision: what every other plan is measured against",
    "fast": "the same results within the published tolerances, by whatever the backend does fastest",
}
"""The plans there are, each with what it promises."""


@dataclass(frozen=True)
class Plan:
    """A program made ready.

    Attributes:
        name: what was done to it.
        program: what is run. Its entries and states are the definition's, its parameters its own.
        params: these parameters over the definition's; None where they are the definition's.
    """

    name: str
    program: Program
    params: ParamMap | None = None


CHANGES: dict[str, str] = {
    "shortlist": "the likeliest is found by a short list: `peak_of_product`",
    "columns": "heads are stored by columns",
    "pack": "projections of one input are one product, and cuts of its result",
    "fuse": "the steps of a block are few ops: `norm_linear`, `linear_add`, `attend_step`, `attend_heard`, "
    "`peak_of_linear`",
}
"""What `fast` may change beside what every backend gains by, in the order in which it is done."""


def plan(program: Program, name: str = "exact", *, changes: Collection[str] = ("columns", "pack")) -> Plan:
    """The plan `name` of a program. `exact` is the program itself.

    Args:
        changes: which of `CHANGES` the backend gains by, on its device.

    Raises:
        CallError: there is no such plan.
    """
    if name not in PLANS:
        raise CallError(f"There is no plan '{name}'; nest has {', '.join(PLANS)}.")
    return Plan(name, program) if name == "exact" or _loops_below(program) else _fast(name, program, changes)


def _fast(name: str, program: Program, changes: Collection[str]) -> Plan:
    """Layers as a whole, heads for the positions that are used, and the changes."""
    flat, paths = flatten(program)
    functions = flat.functions()
    for function in functions:
        narrow(function)
    expressions: dict[str, Expr] = {path: Source(old) for path, old in paths.items()}
    for unit, places in _units(flat.root).values():
        for change in [_OF_UNITS[c] for c in _OF_UNITS if c in changes]:
            made = change(unit, functions)
            for place in places:
                _replace(expressions, place, made)
    if "fuse" in changes:
        for function in functions:
            fuse_attention(function)
            fuse(function)
    return Plan(name, flat, ParamMap(expressions))


# Short lists first: of two tall matrices packed, the whole is taller still, and no head for them.
_OF_UNITS = {"shortlist": shortlist, "columns": store_columns, "pack": pack_projections}


def _units(root: BlockDef) -> dict[int, tuple[BlockDef, list[Path]]]:
    """Every unit with the paths at which it stands."""
    found: dict[int, tuple[BlockDef, list[Path]]] = {}

    def visit(block: BlockDef, path: Path) -> None:
        found.setdefault(block.key, (block, []))[1].append(path)
        for relative, use in block.uses():
            visit(use.block, (*path, *relative))

    visit(root, ())
    return found


def _replace(expressions: dict[str, Expr], place: Path, made: dict[str, Expr]) -> None:
    """Put a unit's new parameters in the place of those that they are made of."""

    def full(node: Expr) -> Expr:
        return expressions[path_text((*place, node.name))] if isinstance(node, Source) else node

    whole = {path_text((*place, name)): expression.map(full) for name, expression in made.items()}
    for expression in made.values():
        for name in expression.sources():
            expressions.pop(path_text((*place, name)), None)
    expressions.update(whole)


def _loops_below(program: Program) -> bool:
    """Whether a block inside a layer has a loop of its own, which is not flattened."""
    units = {program.root.key} | {
        use.block.key
        for block in program.root.distinct()
        for path, use in block.uses()
        if isinstance(path[-1], int)
    }
    return any(n.op == "while_loop" for f in program.functions() for n in f.nodes if f.block.key not in units)
