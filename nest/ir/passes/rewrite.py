"""What passes over flattened units share: who uses a parameter, and what stands for a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nest.ir.program import Function, Node, Value

__all__ = ["parameter_of", "replace_value", "used_from_outside", "uses_of_parameter"]


def parameter_of(x: object) -> str | None:
    """The name of a unit's own parameter that a value is; None for everything else."""
    node = x.node if isinstance(x, Value) else None
    if node is None or node.op != "param" or len(node.attrs["path"]) != 1:
        return None
    return str(node.attrs["path"][0])


def uses_of_parameter(
    functions: Iterable[Function], name: str
) -> Iterator[tuple[Function, Node | None, int]]:
    """The nodes that read a unit's parameter, each with its function and as which operand.

    None in a node's place says that the function gives the parameter as a result.
    """
    for function in functions:
        for node in function.nodes:
            yield from ((function, node, at) for at, x in enumerate(node.inputs) if parameter_of(x) == name)
        yield from ((function, None, at) for at, r in enumerate(function.results) if parameter_of(r) == name)


def used_from_outside(functions: Iterable[Function]) -> set[str]:
    """Names of parameters that a function reads in an element of an array rather than in its own unit."""
    params = (n.attrs["path"] for f in functions for n in f.nodes if n.op == "param")
    return {str(path[-1]) for path in params if len(path) > 1}


def replace_value(function: Function, old: Value, new: Value) -> None:
    """Let everything that reads one value read another."""
    for node in function.nodes:
        if any(x is old for x in node.inputs):
            node.inputs = tuple(new if x is old else x for x in node.inputs)
    function.results = tuple(new if r is old else r for r in function.results)
