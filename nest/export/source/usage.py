"""Example calls for the end of an ejected file."""

from __future__ import annotations

from collections.abc import Mapping

from nest.ir.dim import Dim
from nest.ir.program import Function, Program
from nest.registry import Entry

__all__ = ["example", "prompt"]


def example(program: Program, name: str, prompt: list[int], zeros: str, integers: str) -> list[str]:
    """Source of an entry's arguments: one row of zeros, tokens from the prompt.

    Args:
        zeros: a call that makes floats of a shape, `"torch.zeros({})"`.
        integers: one that makes integers of a list, `"torch.tensor({})"`.
    """
    function = program.entries[name]
    sizes = _sizes(program, function, len(prompt))
    made = []
    for parameter in function.signature.parameters:
        shape = [d.evaluate(sizes) for d in parameter.type.shape]
        if parameter.type.dtype.kind == "float":
            made.append(zeros.format(", ".join(map(str, shape))))
        elif parameter.fill is not None:
            made.append(integers.format([parameter.fill.evaluate(sizes)] * shape[0]))
        else:
            made.append(integers.format([prompt] if len(shape) == 2 else [len(prompt)] * shape[0]))
    return made


def _sizes(program: Program, function: Function, length: int) -> Mapping[str, int]:
    known = {
        n: d.value for n, d in program.root.generics.items() if isinstance(d, Dim) and d.value is not None
    }
    free = dict.fromkeys(function.signature.generics, length) | {"B": 1}
    return {**free, **known, "Batch": 1}


def prompt(entry: Entry, program: Program) -> list[int]:
    """Token ids to begin with, of the entry's own where the vocabulary has them."""
    vocabulary = program.root.generics.get("Vocab")
    size = vocabulary.value if isinstance(vocabulary, Dim) else None
    generation = entry.manifest.generation
    if generation is None or size is None or max(generation.prompt, default=size) >= size:
        return [0]
    return list(generation.prompt)
