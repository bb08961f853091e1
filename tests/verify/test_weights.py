"""Random weights under which mistakes show: the claims of `nest.verify.weights`, measured."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from nest.backends.reference.rules import RULES
from nest.ir.inventory import parameters
from nest.loading import program_of
from nest.verify import Setting
from nest.verify.oracle import Oracle
from nest.verify.records import record_row
from nest.verify.weights import fan_in, lively_parameters


def test_attention_is_far_from_uniform(tiny: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    spreads = []
    attention = RULES["attention"]

    def measured(q: Any, k: Any, *rest: Any, **attrs: Any) -> Any:
        spreads.append(float((q @ k.swapaxes(-1, -2) * q.shape[-1] ** -0.5).std()))
        return attention(q, k, *rest, **attrs)

    monkeypatch.setitem(RULES, "attention", measured)
    record_row(Oracle(tiny.program, tiny.params, keep=False), tiny.feed, 0)
    assert len(spreads) > 20
    assert 0.5 < float(np.median(spreads)) < 2


def test_nothing_is_zero_or_one(tiny: Setting) -> None:
    for path, array in tiny.params.items():
        assert array.std() > 0.05, path
        assert not (array == 0).any(), path
    gains = np.concatenate([a for p, a in tiny.params.items() if p.endswith("norm.weight")])
    biases = np.concatenate([a for p, a in tiny.params.items() if p.endswith("bias")])
    assert abs(gains.mean() - 1) < 0.05
    assert abs(biases.mean()) < 0.05


def test_values_depend_on_seed_path_and_shape_alone(tiny: Setting) -> None:
    deeper = program_of("whisper-tiny", **{**tiny.generics, "DecoderLayers": 5})
    other = lively_parameters(deeper)
    for path, array in tiny.params.items():
        np.testing.assert_array_equal(other[path], array)
    path = "conv1_weight"
    assert not (lively_parameters(tiny.program, seed=1)[path] == tiny.params[path]).any()


def test_what_an_op_adds_up(tiny: Setting) -> None:
    sums = fan_in(tiny.program)
    shapes = {p: s.shape for p, s in parameters(tiny.program).items()}
    assert sums["conv1_weight"] == shapes["conv1_weight"][1] * 3
    assert sums["encoder_layers.0.mlp.fc2.weight"] == shapes["encoder_layers.0.mlp.fc2.weight"][1]
    assert sums["token_embedding"] == shapes["token_embedding"][1]
