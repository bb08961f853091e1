"""What the tests of the ONNX backend share: models of a definition on it and on the oracle."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from nest.backends.onnx import OnnxModel
from nest.backends.onnx import build as build_onnx
from nest.backends.reference.model import build as build_reference
from nest.ir.inventory import parameters
from nest.layers import Block, elaborate

Pair = tuple[OnnxModel, Any]


@pytest.fixture(scope="session")
def pair() -> Callable[..., Pair]:
    """A root block on ONNX Runtime and on the f64 oracle, over the same random parameters.

    Parameters are normal, of variance one over the size of the last axis where there are two or more: nothing is
    zero, and attention is not flat.
    """

    def make(root: type[Block], *, session_options: Any = None, threads: int = 1, **generics: Any) -> Pair:
        program = elaborate(root, **{"T": "f32", **generics})
        rng = np.random.default_rng(7)
        params = {
            path: (rng.standard_normal(s.shape) * (s.shape[-1] ** -0.5 if len(s.shape) > 1 else 0.5)).astype(
                "f4"
            )
            for path, s in parameters(program).items()
        }
        model = build_onnx(program, params, threads=threads, session_options=session_options)
        return model, build_reference(program, params, precision="f64")

    return make
