"""Random parameters under which a mistake shows: nothing is zero or one, and attention is far from uniform."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from nest.ir.inventory import parameters
from nest.ir.passes import inline
from nest.ir.program import Node, Program, Value, path_text
from nest.ir.types import ParamSpec

__all__ = ["fan_in", "lively_parameters"]

Array = np.ndarray[Any, Any]

_SPREAD = 0.1


def lively_parameters(program: Program, seed: int = 0) -> dict[str, Array]:
    """Parameters of a program by definition path, in f32.

    A weight has variance one over what its op sums over, so that every layer keeps the variance of normalized inputs
    and attention logits have a standard deviation of about 1; biases are N(0, 0.1), gains N(1, 0.1). A parameter's
    values depend on the seed, its path and its shape alone.
    """
    sums = fan_in(program)
    return {path: _draw(spec, sums.get(path), seed) for path, spec in parameters(program).items()}


def _draw(spec: ParamSpec, summed: int | None, seed: int) -> Array:
    generator = np.random.Generator(np.random.SFC64([seed, zlib.crc32(spec.path.encode()), 1]))
    values = generator.standard_normal(spec.shape, dtype=np.float32)
    vector = len(spec.shape) < 2
    values *= np.float32(_SPREAD if vector else 1 / math.sqrt(max(1, summed or spec.shape[-1])))
    if vector and spec.init == "ones":
        values += np.float32(1)
    return values


def fan_in(program: Program) -> dict[str, int]:
    """How many products the op that uses a parameter adds up, by definition path; of matrices and larger ones."""
    found: dict[str, int] = {}
    specs = parameters(program)
    for name in program.entries:
        for node in inline(program, name).nodes:
            for position, x in enumerate(node.inputs):
                if isinstance(x, Value) and x.node is not None and x.node.op == "param":
                    path = path_text(x.node.attrs["path"])
                    count = _summed(node, position, specs[path].shape)
                    if count is not None:
                        found[path] = max(count, found.get(path, 0))
    return found


def _summed(node: Node, position: int, shape: tuple[int, ...]) -> int | None:
    if len(shape) < 2:
        return None
    if node.op == "conv":
        return math.prod(shape[1:])
    if node.op == "einsum":
        return _contracted(node.attrs, position, shape)
    return shape[-1]


def _contracted(attrs: Mapping[str, Any], position: int, shape: tuple[int, ...]) -> int:
    operands, _, result = str(attrs["equation"]).replace(" ", "").partition("->")
    letters = operands.split(",")[position]
    return math.prod(size for letter, size in zip(letters, shape, strict=True) if letter not in result)
