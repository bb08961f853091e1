"""Gradients through every entry without caches.

torch in f64 is held to finite differences of the oracle, and jax and nnx, which have no f64, to torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from flax import nnx

from nest.ir.inventory import parameters
from nest.loading import load
from nest.verify import Setting

Array = np.ndarray[Any, Any]
# Of the largest derivative.
DIFFERENCES = 1e-6
SINGLE = 5e-6
SMALL = 0.05


class Case:
    """One entry called once, and a number made of its result: sum(weights * result)."""

    def __init__(self, setting: Setting, name: str, arguments: Mapping[str, Array], shape: Any) -> None:
        self.setting = setting
        self.name = name
        self.arguments = dict(arguments)
        self.floats = [n for n, x in self.arguments.items() if x.dtype.kind == "f"]
        self.weights = np.random.default_rng(5).standard_normal(shape)

    def model(self, backend: str, **options: Any) -> Any:
        s = self.setting
        return load(s.entry, backend=backend, weights=s.params, **s.generics, **s.options, **options)


@pytest.fixture(scope="module")
def gradients(setting: Setting) -> dict[str, tuple[Case, dict[str, Array]]]:
    """Every entry that keeps no state and gives one tensor of floats, with what torch finds in f64."""
    found = {}
    for record in setting.records[0]:
        function = setting.program.entries[record.entry]
        result = record.results[0]
        if not function.uses_state and function.signature.single and result.dtype.kind == "f":
            case = Case(setting, record.entry, record.arguments, result.shape)
            found[record.entry] = case, by_torch(case, "f64")
    assert found
    return found


def by_torch(case: Case, dtype: str) -> dict[str, Array]:
    """The derivatives by each parameter that the entry uses, and by each argument of floats."""
    model = case.model("torch", dtype=dtype)
    given = {n: torch.tensor(x) for n, x in case.arguments.items()}
    for name in case.floats:
        given[name] = given[name].double().requires_grad_()
    (torch.from_numpy(case.weights) * getattr(model, case.name)(**given)).sum().backward()
    found = {path: p.grad for path, p in model.named_parameters() if p.grad is not None}
    return {n: x.numpy() for n, x in {**found, **{n: given[n].grad for n in case.floats}}.items()}


def by_jax(case: Case) -> dict[str, Array]:
    model = case.model("jax", dtype="f32")
    entry, order = model.function(case.name), list(case.arguments)

    def total(params: Any, floats: Any) -> Any:
        arguments = {**case.arguments, **floats}
        return (jnp.asarray(case.weights) * entry(params, *(jnp.asarray(arguments[n]) for n in order))).sum()

    by_params, by_floats = jax.jit(jax.grad(total, (0, 1)))(
        model.params, {n: jnp.asarray(case.arguments[n]) for n in case.floats}
    )
    return {**by_params, **by_floats}


def by_nnx(case: Case) -> dict[str, Array]:
    model = case.model("nnx", dtype="f32")

    def total(model: Any, floats: Any) -> Any:
        return (jnp.asarray(case.weights) * getattr(model, case.name)(**{**case.arguments, **floats})).sum()

    by_params, by_floats = nnx.jit(nnx.grad(total, argnums=(0, 1)))(
        model, {n: jnp.asarray(case.arguments[n]) for n in case.floats}
    )
    flat = {".".join(map(str, path)): v.get_raw_value() for path, v in nnx.to_flat_state(by_params)}
    return {**flat, **by_floats}


def test_torch_is_the_oracle_s_finite_differences(
    gradients: dict[str, tuple[Case, dict[str, Array]]],
) -> None:
    """Along a random direction of each parameter and argument, the others staying as they are."""
    rng = np.random.default_rng(11)
    for case, found in gradients.values():
        oracle = case.model("reference", precision="f64")
        arguments = {n: x.astype("f8") if n in case.floats else x for n, x in case.arguments.items()}
        largest = max(np.abs(g).max() for g in found.values())
        for path, gradient in found.items():
            direction = rng.standard_normal(gradient.shape)
            direction /= np.linalg.norm(direction)
            where = arguments if path in arguments else oracle.interpreter.params
            kept, totals = where[path], []
            for step in (1e-5, -1e-5):
                where[path] = kept + step * direction
                totals.append((case.weights * getattr(oracle, case.name)(**arguments)).sum())
            where[path] = kept
            want = (totals[0] - totals[1]) / 2e-5
            assert abs(want - (gradient * direction).sum()) <= DIFFERENCES * largest, (case.name, path)


@pytest.mark.parametrize("backend", [by_jax, by_nnx])
def test_jax_and_nnx_are_torch(backend: Any, gradients: dict[str, tuple[Case, dict[str, Array]]]) -> None:
    for case, want in gradients.values():
        found = backend(case)
        specs = parameters(case.setting.program)
        largest = max(np.abs(g).max() for g in want.values())
        for path, gradient in found.items():
            if path in specs and not specs[path].trainable:
                continue  # statistics are buffers on torch, which have no gradient
            # A parameter that the entry does not use has no gradient on torch, and zeros on jax.
            wanted = want.get(path, np.zeros(gradient.shape))
            error = np.abs(np.asarray(gradient, "f8") - wanted).max()
            # Some are zero but for rounding, such as that of a bias that adds the same to every key's score.
            assert error <= SINGLE * max(np.abs(wanted).max(), SMALL * largest), (case.name, path, error)
        assert found.keys() >= want.keys()
