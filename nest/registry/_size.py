"""Sizes in `bindings.json`: an integer, or an arithmetic expression over the entry's generics."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping

from nest.errors import BindingError

__all__ = ["evaluate_size"]

_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def evaluate_size(size: int | str, generics: Mapping[str, int | str]) -> int:
    """`"2 * D"` under `{"D": 384}` is 768. Only `+ - * //`, integers and generics; nothing is executed.

    Raises:
        BindingError: anything else, or a generic that is not there.
    """
    if isinstance(size, int):
        return size
    try:
        return _value(ast.parse(size, mode="eval").body, generics)
    except (SyntaxError, ValueError, TypeError, ZeroDivisionError, RecursionError) as error:
        raise BindingError(
            f"'{size}' is not a size: expected an integer, or + - * // over integers and generics "
            f"({', '.join(name for name, value in generics.items() if isinstance(value, int))})"
        ) from error


def _value(node: ast.expr, generics: Mapping[str, int | str]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and isinstance(value := generics.get(node.id), int):
        return value
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_value(node.left, generics), _value(node.right, generics))
    raise ValueError(ast.dump(node))
