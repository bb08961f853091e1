"""What the commands say of a definition, as data."""

from __future__ import annotations

from math import prod
from typing import Any

from nest.ir import BlockDef, Program, parameters

__all__ = ["definition_facts", "signatures"]


def signatures(program: Program) -> dict[str, str]:
    """Each entry's signature, `<B>(mel: T[B, Mels, Frames]) -> T[B, (Frames-1)//2+1, D]`."""
    return {name: str(function.signature) for name, function in program.entries.items()}


def definition_facts(program: Program) -> dict[str, Any]:
    """A program's entries, generics, rules, number of parameters and blocks, the root first."""
    return {
        "name": program.name,
        "root": program.root.name,
        "entries": signatures(program),
        "generics": {name: value.value for name, value in program.root.generics.items()},
        "rules": [str(rule) for rule in program.rules],
        "parameters": sum(prod(spec.shape) for spec in parameters(program).values()),
        "blocks": [_block(block) for block in reversed(program.root.distinct())],
    }


def _block(block: BlockDef) -> dict[str, Any]:
    return {
        "name": block.name,
        "summary": (block.doc or "").strip().partition("\n")[0],
        "generics": {name: value.value for name, value in block.generics.items()},
        "static": block.statics,
        "parameters": {name: str(param.type) for name, param in block.params.items()},
        "states": {name: str(state.type) for name, state in block.states.items()},
        "blocks": {".".join(map(str, path)): use.block.name for path, use in block.uses()},
        "functions": {name: str(function.signature) for name, function in block.functions.items()},
    }
