"""Sharding: which axis lies on which axis of a mesh, what the devices hold, and that results do not change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import pytest
from flax import nnx

from nest.backends.jax.axes import parameter_axes, state_axes
from nest.backends.jax.partition import Partition
from nest.errors import CallError
from nest.export import save
from nest.loading import load, program_of

from .sharded import RULES, SIZES

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What `sharded.py` finds out in a process with eight devices."""
    folder = tmp_path_factory.mktemp("sharded")
    save(load("whisper-tiny", backend="jax", weights=None, seed=5, **SIZES), folder, "safetensors")
    done = subprocess.run(
        [sys.executable, "-m", "tests.backends.jax.sharded", str(folder)],
        cwd=ROOT,
        env={
            **os.environ,
            "XLA_FLAGS": "--xla_force_host_platform_device_count=8 --xla_llvm_disable_expensive_passes=true",
            "JAX_PLATFORMS": "cpu",
            "NEST_CACHE": str(folder / "cache"),
        },
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["devices"] == 8
    return found


@pytest.mark.parametrize("backend", ["nnx", "jax"])
def test_each_device_holds_its_part(facts: dict[str, Any], backend: str) -> None:
    specs = facts[f"{backend} specs"]
    assert specs["decoder_layers.0.mlp.fc1.weight"] == "('model', None)"
    assert specs["decoder_layers.0.mlp.fc2.weight"] == "(None, 'model')"
    assert specs["decoder_layers.0.self_attn.q_proj.weight"] == "('model', None)"
    assert specs["decoder_layers.0.self_attn.out_proj.weight"] == "(None, 'model')"
    assert specs["token_embedding"] == "('model', None)"
    assert facts[f"{backend} share"] == 0.25


@pytest.mark.parametrize("backend", ["nnx", "jax"])
def test_results_are_those_of_one_device(facts: dict[str, Any], backend: str) -> None:
    assert facts[f"{backend} encode"] <= 1e-5
    assert facts[f"{backend} outside"] <= 1e-5


def test_sessions_of_a_spread_model(facts: dict[str, Any]) -> None:
    assert facts["cached"] <= 1e-5
    first, second = facts["caches"]
    assert first.startswith("(None, 'model'")
    assert second.startswith("(None, 'model'")


@pytest.mark.parametrize("eager", [True, False])
def test_training_on_a_mesh(facts: dict[str, Any], eager: bool) -> None:
    found = facts[f"eager {eager}"]
    assert found["eager"] is eager
    assert found["losses"] <= 1e-4
    assert found["metadata"] == "('model', None)"
    assert (
        found["flax's specs"] == "PartitionSpec('model', None)" or found["flax's specs"] == "P('model', None)"
    )
    assert found["average"].startswith("('model'")
    assert found["trained specs"]["encoder_layers.0.mlp.fc1.weight"].startswith("('model'")
    assert found["saved"] == 0.0


def test_without_rules_every_device_has_a_copy(facts: dict[str, Any]) -> None:
    assert facts["whole"] == ["()"]
    assert facts["whole share"] == 1.0


def test_the_logical_axis_rules_of_flax(facts: dict[str, Any]) -> None:
    assert facts["flax"] == {
        "encoder_layers.0.mlp.fc1.bias": "('model',)",
        "encoder_layers.0.mlp.fc1.weight": "('model', None)",
        "encoder_layers.0.mlp.fc2.bias": "()",
        "encoder_layers.0.mlp.fc2.weight": "(None, 'model')",
    }


def test_along_the_longest_axis(facts: dict[str, Any]) -> None:
    assert facts["longest"]["token_embedding"] == "(('data', 'model'), None)"
    assert facts["longest share"] == 0.125
    assert facts["longest encode"] <= 1e-5


def test_a_spread_parameter_is_never_read_whole(facts: dict[str, Any]) -> None:
    """The largest part that is read at once, and all parts together, of the parameter's size."""
    assert facts["reads, spread"] == [0.125, 1.0]
    assert facts["reads, whole"] == [1.0, 1.0]


def test_random_parameters_do_not_depend_on_the_mesh(facts: dict[str, Any]) -> None:
    assert facts["drawn"] <= 1e-6
    assert facts["drawn specs"]["decoder_layers.0.mlp.fc1.weight"].startswith("('model'")


def test_explicit_axes_are_refused(facts: dict[str, Any]) -> None:
    assert facts["explicit"] == (
        "sharding= spreads parameters over 'model', an axis of the type Explicit, along which jax wants every "
        "operation's sharding spelled out; nest leaves that to the compiler. Make the mesh with jax.make_mesh((2, 4), "
        "('data', 'model'), axis_types=(jax.sharding.AxisType.Auto,) * 2)."
    )


def test_the_python_of_the_guide_runs(facts: dict[str, Any]) -> None:
    assert facts["guide"] == ["(None, 'model')", "('model',)", "('data', None, None, None)", "True"]


def test_axes_are_called_as_the_root_spells_their_sizes() -> None:
    program = program_of("whisper-tiny")
    axes = parameter_axes(program)
    assert axes["encoder_layers.3.mlp.fc1.weight"] == ("Inner", "D")
    assert axes["encoder_positions"] == ("(Frames-1)//2+1", "D")
    assert axes["conv1_weight"] == ("D", "Mels", "3")
    assert state_axes(program)["decoder_layers.2.self_k"] == ("Batch", "Heads", "Capacity", "D//Heads")


def partition(rules: Any, size: int = 4) -> Partition:
    program = program_of("whisper-tiny", **SIZES)
    mesh: Any = jax.sharding.AbstractMesh((2, size), ("data", "model"))
    return Partition(mesh, rules, parameter_axes(program) | state_axes(program), program.name)


def test_the_first_rule_that_fits_takes_the_axis() -> None:
    inner = partition({"Inner": "model", "D": "model"})
    assert tuple(inner.parameter("encoder_layers.0.mlp.fc2.weight", (24, 40))) == (None, "model")
    width = partition({"D": "model", "Inner": "model"})
    assert tuple(width.parameter("encoder_layers.0.mlp.fc2.weight", (24, 40))) == ("model", None)
    both = partition([("D", "model"), ("Inner", "data")])
    assert tuple(both.parameter("encoder_layers.0.mlp.fc2.weight", (24, 40))) == ("model", "data")


def test_an_axis_of_a_state_that_the_mesh_does_not_divide_stays_whole() -> None:
    rules = partition({"Batch": "data", "Heads": "model"})
    assert tuple(rules.state("decoder_layers.0.self_k", (1, 4, 19, 6))) == (None, "model", None, None)
    assert tuple(rules.state("decoder_layers.0.self_k", (2, 4, 19, 6))) == ("data", "model", None, None)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        (
            {"Iner": "model"},
            r"sharding= names 'Iner', which is no axis of whisper-tiny and no pattern of its paths; its axes: "
            r"Batch, Capacity, D, Heads, Inner, MaxTokens, Mels, Vocab\. Did you mean 'Inner'",
        ),
        ({"Inner": "modle"}, r"sharding= gives 'Inner' the axis 'modle', and the mesh has data, model\."),
        ("rows", r"sharding= names the axis 'rows', and the mesh has data, model\."),
        (
            {"*.fc1.weight": ("model",)},
            r"sharding= gives '\*\.fc1\.weight' 1 axes, and 'encoder_layers\.0\.mlp\.fc1\.weight' of whisper-tiny "
            r"has 2 \(Inner, D\): give an axis of the mesh or None for each\.",
        ),
        (
            {"*.fc1.weight": ("model", "model")},
            r"sharding= gives '\*\.fc1\.weight' an axis of the mesh twice",
        ),
    ],
)
def test_rules_that_name_nothing_are_errors(rules: Any, message: str) -> None:
    with pytest.raises(CallError, match=message):
        partition(rules)


def test_an_axis_that_the_mesh_does_not_divide_is_an_error() -> None:
    with pytest.raises(CallError) as error:
        partition({"Inner": "model"}, size=16).parameter("encoder_layers.0.mlp.fc1.weight", (40, 24))
    assert str(error.value) == (
        "whisper-tiny: axis 0 of 'encoder_layers.0.mlp.fc1.weight', Inner = 40, cannot be spread over 'model' of the "
        "mesh, which 16 does not divide; leave it out of sharding=, or take a mesh of another shape."
    )


def test_rules_need_a_mesh() -> None:
    with pytest.raises(
        CallError, match=r"there is none here: call nest\.load inside jax\.set_mesh\(mesh\)\."
    ):
        load("whisper-tiny", backend="nnx", weights=None, sharding=RULES, **SIZES)


def test_rules_of_flax_without_a_mesh_change_nothing() -> None:
    with nnx.logical_axis_rules([("Inner", "model")]):
        model = load("whisper-tiny", backend="nnx", weights=None, **SIZES)
    assert not hasattr(model.encoder_layers[0].mlp.fc1.weight, "out_sharding")


def test_a_device_beside_a_mesh_is_an_error() -> None:
    mesh = jax.make_mesh((1,), ("model",), axis_types=(jax.sharding.AxisType.Auto,))
    with (
        jax.set_mesh(mesh),
        pytest.raises(CallError, match=r"and device='cpu' was given too: leave device= out"),
    ):
        load("whisper-tiny", backend="jax", weights=None, device="cpu", **SIZES)


@pytest.mark.parametrize("backend", ["torch", "onnx", "reference"])
def test_sharding_belongs_to_jax(backend: str) -> None:
    with pytest.raises(CallError, match=rf"sharding= belongs to jax and nnx, and the backend is {backend}\."):
        load("whisper-tiny", backend=backend, weights=None, sharding="model", **SIZES)
