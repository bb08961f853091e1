"""The parameters and states of a whole program, by definition path."""

from __future__ import annotations

from collections.abc import Iterator

from nest.ir.dim import Dim
from nest.ir.program import BlockDef, Function, Path, Program, path_text
from nest.ir.relation import Relation
from nest.ir.types import ParamSpec, StateSpec

__all__ = ["default_capacity", "parameters", "states", "used_parameters"]


def parameters(program: Program) -> dict[str, ParamSpec]:
    """Every parameter and buffer, in definition order, with concrete shapes."""
    found: dict[str, ParamSpec] = {}
    for path, block in _blocks(program.root, ()):
        for name, param in block.params.items():
            full = path_text((*path, name))
            shape = tuple(int(d) for d in param.type.shape)
            found[full] = ParamSpec(full, shape, param.type.dtype.value, param.init, param.trainable)
    return found


def used_parameters(function: Function) -> tuple[str, ...]:
    """The definition paths of the parameters that an entry uses, itself or in what it calls, sorted."""
    return tuple(sorted(map(path_text, _used(function, {}))))


def _used(function: Function, known: dict[int, frozenset[Path]]) -> frozenset[Path]:
    found = known.get(id(function))
    if found is None:
        paths: set[Path] = set()
        for node in function.nodes:
            if node.op == "param":
                paths.add(node.attrs["path"])
            elif node.op == "call":
                at = node.attrs["path"]
                paths.update((*at, *path) for path in _used(node.attrs["function"], known))
            elif node.op == "while_loop":
                paths |= _used(node.attrs["cond"], known) | _used(node.attrs["body"], known)
        found = known[id(function)] = frozenset(paths)
    return found


def states(program: Program) -> dict[str, StateSpec]:
    """Every state; sizes that the session decides stay Dims over `Batch` and `Capacity`."""
    found: dict[str, StateSpec] = {}
    for path, block in _blocks(program.root, ()):
        for name, state in block.states.items():
            full = path_text((*path, name))
            shape = tuple(int(d) if d.value is not None else _session_dim(d, block) for d in state.type.shape)
            dtype = state.type.dtype.value
            found[full] = StateSpec(full, shape, dtype, state.batch_axis, state.write_axis)
    return found


def default_capacity(program: Program) -> int | None:
    """The largest `Capacity` that the definition's rules admit; None where no rule bounds it."""
    bounds = [b for rule in program.rules if (b := _capacity_bound(rule)) is not None]
    return min(bounds) if bounds else None


def _capacity_bound(rule: Relation) -> int | None:
    if rule.left.as_symbol() == "Capacity" and rule.op in ("<=", "<"):
        bound = rule.right.value
        return bound if bound is None or rule.op == "<=" else bound - 1
    return None


def _session_dim(dim: Dim, block: BlockDef) -> Dim:
    """A dim over the session's symbols alone, the block's generics replaced by their values."""
    known = {
        n: Dim.constant(int(v))
        for n, v in block.generics.items()
        if isinstance(v, Dim) and v.value is not None
    }
    return dim.substitute(known)


def _blocks(block: BlockDef, path: Path) -> Iterator[tuple[Path, BlockDef]]:
    yield path, block
    for relative, use in block.uses():
        yield from _blocks(use.block, (*path, *relative))
