"""The configuration of an ejected file: the numbers of a checkpoint, and where they come from."""

from __future__ import annotations

from nest.backends.source.comments import member_comments
from nest.backends.source.layout import GeneratedText, docstring
from nest.ir.dim import Dim
from nest.ir.program import Program
from nest.registry import Entry

__all__ = ["config_text"]


def config_text(entry: Entry, program: Program, made: GeneratedText, dtype: str) -> str:
    """`Config`, a dataclass with a field for each argument of the root class; `dtype` annotates element types."""
    comments = member_comments(program.root)
    lines = ["@dataclass", "class Config:"]
    lines += ["    " + line if line else "" for line in docstring(_origin(entry, program))] + [""]
    for name, value in made.takes.items():
        kind = "int" if isinstance(program.root.generics[name], Dim) else dtype
        lines += [*("    " + comment for comment in comments.get(name, [])), f"    {name}: {kind} = {value}"]
    return "\n".join(lines if made.takes else lines[:-1])


def _origin(entry: Entry, program: Program) -> str:
    given = {n: g.value for n, g in program.root.generics.items()}
    changed = [n for n, v in given.items() if n in entry.generics and n != "T" and entry.generics[n] != v]
    weights = entry.manifest.weights
    if changed or weights is None:
        return f"Sizes of a model of the family {entry.manifest.model.family}, as they were asked for."
    return f"The sizes of {weights.repo} at commit {weights.revision}."
