"""Expressions with their variables called otherwise."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, cast

from nest.backends.source.expr import Expr, Raw

__all__ = ["renamed"]

_WORD = re.compile(r"(?<![\w.])[A-Za-z_]\w*")


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """The expression with variables called otherwise."""

    def change(value: Any) -> Any:
        if isinstance(value, str):
            return _WORD.sub(lambda m: names.get(m.group(), m.group()), value)
        if isinstance(value, dict):
            return {key: change(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [change(item) for item in value]
        return renamed(value, names) if isinstance(value, Expr) else value

    if isinstance(expr, Raw):
        return type(expr)(change(expr.text))
    node: Any = expr
    kept = ("op", "name", "brackets")
    changed = {f.name: change(getattr(node, f.name)) for f in fields(node) if f.name not in kept}
    return cast(Expr, replace(node, **changed))
