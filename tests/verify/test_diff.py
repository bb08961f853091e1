"""`nest diff`: a planted mistake is found, by block and by operation, on every backend."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from nest.ir.program import Program
from nest.layers import elaborate
from nest.loading import build_model
from nest.verify import Setting, diff
from nest.verify.tap import tapped
from nest.verify.weights import lively_parameters

from .models import BERT, Bert

BACKENDS = ["torch", "onnx", "jax", "nnx"]


def test_a_tapped_program_computes_the_same_and_more() -> None:
    program: Program = elaborate(Bert, **BERT)
    changed, taps = tapped(program, "encode")
    assert list(changed.entries) == ["encode_tapped"]
    params = lively_parameters(program)
    arguments = [np.array([[3, 1, 4]], np.int32), np.array([[0, 1, 1]], np.int32), np.array([2], np.int32)]
    (whole, *inside) = build_model(changed, params, "torch").run_entry("encode_tapped", arguments)
    alone = build_model(program, params, "torch").run_entry("encode", arguments)
    assert bool((whole == alone).all())
    assert [(t.path, t.function, t.op) for t in taps] == [
        ((), "encode", "add"),
        (("norm",), "forward", None),
        (("q",), "forward", None),
        ((), "encode", None),
    ]
    assert len(inside) == len(taps) - 1
    assert program.entries["encode"].signature.single  # the original is as it was


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_wrong_weight_is_found(tiny: Setting, backend: str) -> None:
    path = "decoder_layers.1.mlp.fc1.weight"
    wrong = tiny.params[path].copy()
    wrong[3, 4] += 0.1
    entries = ["encode", "step"]
    encode, step = diff(tiny, backend, entries=entries, params={**tiny.params, path: wrong})
    assert (encode.entry, encode.at) == ("encode", None)
    assert encode.values > 30
    assert encode.largest[0] < 3e-6
    assert (step.entry, step.block) == ("step", "decoder_layers.1.mlp.fc1")
    assert step.largest[0] < 3e-6
    assert step.found is not None
    assert step.found.relative > 1e-3


def test_a_wrong_operation_is_found_with_its_line(tiny: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    from nest.backends.jax.rules import RULES

    right = RULES["gelu"]
    monkeypatch.setitem(RULES, "gelu", lambda x, **attrs: right(x, approximate=True))
    found = next(diff(tiny, "jax", entries=["decode"]))
    assert found.block == "decoder_layers.0.mlp"
    assert found.operation is not None
    assert found.operation.op == "gelu"
    assert found.line.startswith("whisper-tiny/model.py:")
    assert found.line.endswith(": return self.fc2(gelu(self.fc1(x)))")
    facts = found.facts()
    assert facts["block"] == "decoder_layers.0.mlp"
    assert facts["relative"] > 2e-5


def test_another_backend_may_be_what_is_right(tiny: Setting) -> None:
    (found,) = diff(tiny, "torch", against="onnx", entries=["encode"])
    assert found.at is None
    (found,) = diff(tiny, "torch", against="onnx", entries=["encode"], above=1e-9)
    assert found.at is not None


def test_half_precision_has_its_own_bound(tiny: Setting) -> None:
    (found,) = diff(tiny, "torch", entries=["encode"], dtype="bf16")
    assert found.at is None
    assert found.largest[0] > 1e-4


def test_tapped_source_lies_beside_the_other(tiny: Setting, tmp_path: Path) -> None:
    """Several entries may be tapped of one program, each by itself."""
    for name in tiny.program.entries:
        changed, taps = tapped(tiny.program, name)
        assert len(changed.entries[f"{name}_tapped"].results) == len(taps)
        assert len(taps) > 20
