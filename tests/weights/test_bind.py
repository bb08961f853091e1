"""Binding: total in both directions, and one error with everything in it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from nest.errors import BindingError
from nest.ir.types import ParamSpec
from nest.registry import find
from nest.registry.bindings import Bindings, parse_bindings
from nest.weights import Checkpoint, bind, open_checkpoint, resolve

BINDINGS = {
    "bindings": {"embedding": "tok.weight", "layers.{i}.w": "h.{i}.weight", "layers.{i}.b": "h.{i}.bias"},
    "ties": {"head.weight": "tok.weight"},
    "ignore": ["h.{i}.mask"],
}
TENSORS = {
    "tok.weight": np.arange(6, dtype=np.float32).reshape(3, 2),
    "h.0.weight": np.ones((2, 4), np.float16),
    "h.0.bias": np.ones(4, np.float32),
    "h.1.weight": np.ones((2, 4), np.float16),
    "h.1.bias": np.ones(4, np.float32),
}
PARAMS = {
    "embedding": ((3, 2), "f32"),
    "layers.0.w": ((2, 4), "f32"),
    "layers.0.b": ((4,), "f32"),
    "layers.1.w": ((2, 4), "f32"),
    "layers.1.b": ((4,), "f32"),
}


def _params(**changes: Any) -> dict[str, ParamSpec]:
    merged = {**PARAMS, **changes}
    return {path: ParamSpec(path, *spec) for path, spec in merged.items() if spec is not None}


def _bindings(data: Any = BINDINGS) -> Bindings:
    bindings, faults = parse_bindings(data)
    assert not faults
    return bindings


def _checkpoint(tmp_path: Path, **changes: np.ndarray | None) -> Checkpoint:
    merged = {**TENSORS, **{name.replace("__", "."): array for name, array in changes.items()}}
    path = tmp_path / "model.safetensors"
    save_file({name: array for name, array in merged.items() if array is not None}, path)
    return open_checkpoint(path)


def _fault(tmp_path: Path, params: dict[str, ParamSpec], bindings: Bindings, **changes: Any) -> str:
    with pytest.raises(BindingError) as caught:
        bind(params, bindings, _checkpoint(tmp_path, **changes), source="some-model")
    return str(caught.value)


def test_every_parameter_is_a_view_in_its_stored_width(tmp_path: Path) -> None:
    checkpoint = _checkpoint(tmp_path)
    bound = bind(_params(), _bindings(), checkpoint, source="some-model")
    assert list(bound) == list(PARAMS)
    np.testing.assert_array_equal(bound["embedding"], TENSORS["tok.weight"])
    assert bound["layers.1.w"].dtype == np.float16
    assert np.shares_memory(bound["layers.1.w"], checkpoint["h.1.weight"].array())


def test_operations_with_sizes_of_generics(tmp_path: Path) -> None:
    part = {"op": "slice", "of": "qkv", "axis": 0}
    rules = {
        "q": {**part, "start": 0, "stop": "D"},
        "kv": {"op": "transpose", "of": {**part, "start": "D", "stop": "3 * D"}, "perm": [1, 0]},
    }
    path = tmp_path / "model.safetensors"
    qkv = np.arange(12, dtype=np.float32).reshape(6, 2)
    save_file({"qkv": qkv}, path)
    params = {"q": ParamSpec("q", (2, 2), "f32"), "kv": ParamSpec("kv", (2, 4), "f32")}
    bound = bind(params, _bindings(rules), open_checkpoint(path), source="m", generics={"D": 2})
    np.testing.assert_array_equal(bound["kv"], qkv[2:].T)
    assert bound["kv"].base is not None


class TestFaults:
    def test_a_missing_tensor(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), h__1__bias=None)
        assert text.startswith(
            "some-model: the checkpoint and the definition do not match one to one (1 fault)."
        )
        assert (
            "parameter 'layers.1.b' (f32[4]): the checkpoint has no tensor 'h.1.bias'; nearest: h.0.bias"
            in text
        )

    def test_a_tensor_that_nothing_uses(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), h__2__bias=np.ones(4, np.float32))
        assert "tensor 'h.2.bias' (f32[4]): nothing uses it" in text

    def test_an_ignored_tensor(self, tmp_path: Path) -> None:
        checkpoint = _checkpoint(tmp_path, h__0__mask=np.ones(3, np.float32))
        assert len(bind(_params(), _bindings(), checkpoint, source="m")) == len(PARAMS)

    def test_a_transposed_tensor(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), h__0__weight=np.ones((4, 2), np.float16))
        assert (
            "parameter 'layers.0.w' (f32[2, 4]): h.0.weight has the shape [4, 2] (the transpose matches)"
            in text
        )

    def test_axes_in_another_order(self, tmp_path: Path) -> None:
        text = _fault(
            tmp_path,
            _params(**{"layers.0.w": ((2, 3, 4), "f32")}),
            _bindings(),
            h__0__weight=np.ones((4, 3, 2), np.float16),
        )
        assert "has the shape [4, 3, 2] (its axes in the order [2, 1, 0] match)" in text

    def test_a_shape_that_fits_in_no_order(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), h__0__bias=np.ones(5, np.float32))
        assert "parameter 'layers.0.b' (f32[4]): h.0.bias has the shape [5]\n" in text + "\n"

    def test_integers_for_floats(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), h__0__bias=np.ones(4, np.int32))
        assert "parameter 'layers.0.b' (f32[4]): h.0.bias has the dtype i32" in text

    def test_a_parameter_without_a_rule(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(embeding=((3, 2), "f32")), _bindings())
        assert "parameter 'embeding' (f32[3, 2]): no binding; nearest: embedding" in text

    def test_a_rule_without_a_parameter(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(embedding=None), _bindings())
        assert "binding 'embedding': the definition has no such parameter" in text
        assert "tensor 'tok.weight' (f32[3, 2]): nothing uses it" in text

    def test_two_templates_for_one_parameter(self, tmp_path: Path) -> None:
        rules = {**BINDINGS["bindings"], "layers.{j}.b": "h.{j}.bias"}  # type: ignore[dict-item]
        text = _fault(tmp_path, _params(), _bindings({**BINDINGS, "bindings": rules}))
        assert "parameter 'layers.0.b' (f32[4]): 'layers.{i}.b' and 'layers.{j}.b' both bind it" in text

    def test_an_exact_rule_wins_over_a_template(self, tmp_path: Path) -> None:
        rules = {**BINDINGS["bindings"], "layers.1.b": "odd.bias"}  # type: ignore[dict-item]
        checkpoint = _checkpoint(tmp_path, h__1__bias=None, odd__bias=np.full(4, 7, np.float32))
        bound = bind(_params(), _bindings({**BINDINGS, "bindings": rules}), checkpoint, source="m")
        assert bound["layers.1.b"].tolist() == [7.0] * 4

    def test_everything_is_one_error(self, tmp_path: Path) -> None:
        text = _fault(
            tmp_path,
            _params(extra=((1,), "f32")),
            _bindings(),
            h__1__bias=None,
            h__0__weight=np.ones((4, 2), np.float16),
            other=np.ones(1, np.float32),
        )
        assert "(4 faults)" in text
        assert text.count("\n  ") == 4

    def test_part_of_a_tensor_that_nothing_uses(self, tmp_path: Path) -> None:
        part = {"op": "slice", "of": "h.0.bias", "axis": 0, "start": 0, "stop": 3}
        rules = {**BINDINGS["bindings"], "layers.0.b": part}  # type: ignore[dict-item]
        text = _fault(
            tmp_path, _params(**{"layers.0.b": ((3,), "f32")}), _bindings({**BINDINGS, "bindings": rules})
        )
        assert "the parameters hold [0:3] of h.0.bias[4], not the whole of it" in text

    def test_an_operation_that_does_not_fit(self, tmp_path: Path) -> None:
        rules = {**BINDINGS["bindings"], "layers.0.b": {"op": "reshape", "of": "h.0.bias", "shape": [3]}}  # type: ignore[dict-item]
        text = _fault(tmp_path, _params(), _bindings({**BINDINGS, "bindings": rules}))
        assert (
            "parameter 'layers.0.b' (f32[4]): h.0.bias.reshape(3): the shapes hold different numbers" in text
        )


class TestTies:
    def test_an_equal_duplicate(self, tmp_path: Path) -> None:
        tied = TENSORS["tok.weight"].copy()
        assert len(bind(_params(), _bindings(), _checkpoint(tmp_path, head__weight=tied), source="m")) == 5

    def test_a_different_duplicate(self, tmp_path: Path) -> None:
        text = _fault(tmp_path, _params(), _bindings(), head__weight=TENSORS["tok.weight"] + 1)
        assert "'head.weight' repeats 'tok.weight' (a declared tie), and their values differ" in text

    def test_only_the_other_name_is_stored(self, tmp_path: Path) -> None:
        checkpoint = _checkpoint(tmp_path, tok__weight=None, head__weight=TENSORS["tok.weight"])
        bound = bind(_params(), _bindings(), checkpoint, source="m")
        np.testing.assert_array_equal(bound["embedding"], TENSORS["tok.weight"])


def test_resolve_needs_no_data(tmp_path: Path) -> None:
    expressions = resolve(_params(), _bindings(), _checkpoint(tmp_path).specs, source="m")
    assert str(expressions["layers.1.w"]) == "h.1.weight"


@pytest.mark.parametrize("name", ["whisper-tiny", "whisper-tiny.en"])
def test_the_whisper_bindings_cover_the_card(name: str) -> None:
    """Templates give the same names as the 167 lines that they stand for."""
    bindings = find(name).bindings
    paths = [rule.path.replace("{i}", str(index)) for rule in bindings.rules for index in range(4)]
    expected = {path: path for path in dict.fromkeys(paths)}
    assert len(expected) == 166 + 1
    for path in expected:
        (rule,) = [rule for rule in bindings.rules if rule.match(path) is not None]
        tensor = str(rule.expression(rule.match(path) or {}, {}))
        assert tensor.startswith(("model.encoder.", "model.decoder."))
        assert [part for part in tensor.split(".") if part.isdigit()] == [
            part for part in path.split(".") if part.isdigit()
        ]
