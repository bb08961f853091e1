"""Every op on jax and on nnx against the reference backend, in double precision."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from nest.backends.jax.lower import lower
from nest.backends.jax.nnx.dialect import RULES as DIALECT
from nest.backends.jax.rules import RULES
from nest.layers import elaborate, ops
from nest.loading import load

_SPEC = importlib.util.spec_from_file_location("op_cases", Path(__file__).parents[1] / "op_cases.py")
assert _SPEC is not None and _SPEC.loader is not None  # noqa: PT018
op_cases: Any = importlib.util.module_from_spec(_SPEC)
sys.modules["op_cases"] = op_cases
_SPEC.loader.exec_module(op_cases)

COMPOSED = {"stack"}  # written over other ops
OF_PASSES = {"quantized_linear"}  # in no definition
OWN = {"while_loop"}  # no rule: it calls functions of the program


def cases() -> Any:
    return pytest.mark.parametrize("case", op_cases.CASES, ids=lambda c: c.name)


def inputs_of(case: Any) -> list[Any]:
    return list(case.inputs(np.random.default_rng(0)))


def exact(case: Any) -> tuple[Any, ...]:
    return tuple(
        load(case.root, backend="reference", precision="f64", weights=None, **case.generics).go(
            *inputs_of(case)
        )
    )


def test_every_op_has_a_rule_and_every_rule_an_op() -> None:
    assert set(RULES) - OF_PASSES == set(ops.__all__) - COMPOSED - OWN
    assert set(DIALECT) - {"read", "assign", "update"} == set(RULES)


@cases()
def test_an_op_agrees_with_the_oracle(case: Any, backend: str) -> None:
    results = load(case.root, backend=backend, weights=None, **case.generics).go(*inputs_of(case))
    for position, (got, want) in enumerate(zip(results, exact(case), strict=True)):
        got = np.asarray(got)
        assert got.shape == want.shape, position
        assert got.dtype == {"f": "float32", "i": "int32", "b": "bool"}[want.dtype.kind], position
        np.testing.assert_allclose(got, want, rtol=0, atol=3e-6, err_msg=f"result {position}")


@cases()
@pytest.mark.parametrize(("dtype", "unit"), [("f16", 2.0**-11), ("bf16", 2.0**-8)])
def test_half_precision_keeps_its_type_and_loses_a_few_units(
    case: Any, backend: str, dtype: str, unit: float
) -> None:
    model = load(case.root, backend=backend, weights=None, dtype=dtype, **case.generics)
    for position, (got, want) in enumerate(zip(model.go(*inputs_of(case)), exact(case), strict=True)):
        if want.dtype.kind == "f":
            own = model.program.entries["go"].signature.results[position].dtype.value
            assert got.dtype == {"f16": jnp.float16, "bf16": jnp.bfloat16, "f32": jnp.float32}[own]
            scale = max(1.0, float(np.abs(want).max()))
            assert np.abs(np.asarray(got, np.float64) - want).max() <= 8 * unit * scale, position


DIFFERENTIABLE = (
    "Unary",
    "Binary",
    "Products",
    "Convolution",
    "Norms",
    "Attention",
    "Masked",
    "Rotary",
    "Reductions",
)


@cases()
@pytest.mark.parametrize("dtype", ["f32", "f16", "bf16"])
def test_gradients_are_finite_in_every_type(case: Any, dtype: str) -> None:
    if case.name not in DIFFERENTIABLE:
        return
    program = elaborate(case.root, T=dtype, **case.generics)
    function = program.entries["go"]
    types = {"f32": jnp.float32, "f16": jnp.float16, "bf16": jnp.bfloat16}
    given = [jnp.asarray(x, types[dtype] if x.dtype.kind == "f" else None) for x in inputs_of(case)]
    floats = [i for i, x in enumerate(given) if x.dtype == types[dtype]]

    def total(*some: Any) -> Any:
        arguments = list(given)
        for position, x in zip(floats, some, strict=True):
            arguments[position] = x
        results = lower(function, {}, {}, arguments)
        return sum(r.astype(jnp.float32).sum() for r in results if jnp.issubdtype(r.dtype, jnp.floating))

    gradients = jax.jit(jax.grad(total, argnums=tuple(range(len(floats)))))(*(given[i] for i in floats))
    for position, gradient in zip(floats, gradients, strict=True):
        assert gradient.dtype == types[dtype]
        assert bool(jnp.isfinite(gradient).all()), position


def test_a_gradient_is_the_slope_of_the_oracle() -> None:
    """Along one random direction, by central differences in double precision."""
    case = next(c for c in op_cases.CASES if c.name == "Attention")
    model = load(case.root, backend="reference", precision="f64", weights=None)
    program = elaborate(case.root, T="f32")
    given = inputs_of(case)
    rng = np.random.default_rng(3)
    step = [rng.standard_normal(x.shape) if x.dtype.kind == "f" else None for x in given]
    weight = [rng.standard_normal(np.shape(r)) for r in model.go(*given)]

    def loss(results: Any, xp: Any) -> Any:
        return sum(xp.sum(r * w) for r, w in zip(results, weight, strict=True))

    def moved(scale: float) -> list[Any]:
        return [x if s is None else x + scale * s for x, s in zip(given, step, strict=True)]

    # A bias also makes the mask, where a difference would jump.
    step[5] = None
    h = 1e-5
    slope = (loss(model.go(*moved(h)), np) - loss(model.go(*moved(-h)), np)) / (2 * h)
    floats = [i for i, s in enumerate(step) if s is not None]

    def total(*some: Any) -> Any:
        arguments = [jnp.asarray(x) for x in given]
        for position, x in zip(floats, some, strict=True):
            arguments[position] = x
        return loss(lower(program.entries["go"], {}, {}, arguments), jnp)

    gradients = jax.grad(total, argnums=tuple(range(len(floats))))(*(jnp.asarray(given[i]) for i in floats))
    along = sum(float((g * step[i]).sum()) for i, g in zip(floats, gradients, strict=True))
    assert along == pytest.approx(float(slope), rel=2e-4)
