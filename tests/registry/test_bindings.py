"""bindings.json: names, templates, operations, ties, and the faults of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from nest.errors import BindingError, ManifestError
from nest.registry import find
from nest.registry._size import evaluate_size
from nest.registry.bindings import Bindings, parse_bindings

from .conftest import Make


def _parsed(data: Any) -> Bindings:
    bindings, faults = parse_bindings(data)
    assert not faults
    return bindings


def test_a_flat_map() -> None:
    (rule,) = _parsed({"encoder_norm.weight": "model.encoder.layer_norm.weight"}).rules
    assert not rule.is_template
    assert str(rule.expression({}, {})) == "model.encoder.layer_norm.weight"


def test_a_template() -> None:
    (rule,) = _parsed({"blocks.{i}.experts.{j}.w": "h.{j}.{i}.w"}).rules
    assert rule.match("blocks.3.experts.12.w") == {"i": "3", "j": "12"}
    assert rule.match("blocks.x.experts.12.w") is None
    assert rule.match("blocks.3.experts.12.w.more") is None
    assert str(rule.expression({"i": "3", "j": "12"}, {})) == "h.12.3.w"


def test_a_dot_is_a_dot() -> None:
    (rule,) = _parsed({"a.{i}": "b.{i}"}).rules
    assert rule.match("ax1") is None


def test_a_placeholder_that_stands_twice_is_one_index() -> None:
    (rule,) = _parsed({"a.{i}.{i}": "b.{i}"}).rules
    assert rule.match("a.1.1") == {"i": "1"}
    assert rule.match("a.1.2") is None


def test_operations_over_generics() -> None:
    value = {
        "op": "transpose",
        "of": {"op": "slice", "of": "h.{i}.c_attn", "axis": 1, "start": "D", "stop": "2 * D"},
        "perm": [1, 0],
    }
    (rule,) = _parsed({"k.{i}": value}).rules
    assert str(rule.expression({"i": "0"}, {"D": 8})) == "h.0.c_attn[:, 8:16].transpose(1, 0)"


def test_every_operation() -> None:
    value = {
        "op": "concat",
        "axis": 0,
        "of": [
            {"op": "cast", "of": {"op": "reshape", "of": "q", "shape": ["D", 1]}, "dtype": "f32"},
            {"op": "zeros", "shape": ["D", 1], "dtype": "f32"},
        ],
    }
    (rule,) = _parsed({"p": value}).rules
    assert str(rule.expression({}, {"D": 4})) == "concat(q.reshape(4, 1).cast(f32), zeros(4, 1, f32), axis=0)"


def test_sections() -> None:
    bindings = _parsed({"bindings": {"a": "b"}, "ties": {"c": "b"}, "ignore": ["h.{i}.mask"]})
    assert bindings.ties == {"c": "b"}
    assert bindings.ignores("h.10.mask")
    assert not bindings.ignores("h.mask")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ([], "expected an object of definition paths; came list"),
        ({"a": 3}, "expected a tensor name or an operation (slice, transpose"),
        ({"a": {"op": "rotate", "of": "b"}}, "expected a tensor name or an operation"),
        ({"a": {"op": "slice", "of": "b", "axis": 0, "start": 0}}, "'slice' needs 'stop'"),
        ({"a": {"op": "transpose", "of": "b", "perm": [0], "axis": 1}}, "'transpose' has no field 'axis'"),
        ({"a": {"op": "cast", "of": "b", "dtype": "float"}}, "'dtype' of 'cast' is not one of bool, u8"),
        ({"a": {"op": "reshape", "of": "b", "shape": 3}}, "'shape' of 'reshape' is not a list"),
        (
            {"a": {"op": "slice", "of": "b", "axis": 0.5, "start": 0, "stop": 1}},
            "'axis' of 'slice' is not an",
        ),
        ({"a": {"op": "concat", "of": "b", "axis": 0}}, "'of' of 'concat' is a list"),
        (
            {"a": {"op": "transpose", "of": ["b"], "perm": [0]}},
            "'of' of 'transpose' is one name or operation",
        ),
        ({"a.{i}": "b.{j}"}, "'{j}' in 'b.{j}' is not in the definition path"),
        ({"bindings": {"a": "b"}, "tie": {}}, "unknown key beside 'bindings', 'ties', 'ignore'"),
        ({"bindings": {"a": "b"}, "ties": ["c"]}, "expected an object from tensor name to tensor name"),
        ({"bindings": {"a": "b"}, "ignore": "c"}, "expected a list of tensor names"),
    ],
)
def test_faults(data: Any, words: str) -> None:
    _, faults = parse_bindings(data)
    assert any(words in fault for _, fault in faults), faults


def test_a_fault_names_the_file_the_line_and_the_key(make: Make) -> None:
    folder = make(bindings='{\n "a": "b",\n "c.{i}": "d.{k}"\n}')
    with pytest.raises(ManifestError) as caught:
        find(folder)
    assert f"{folder / 'bindings.json'}:3, 'c.{{i}}': '{{k}}' in 'd.{{k}}' is not in" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{\n "a": "b",\n "c"}', "bindings.json:3: not valid JSON"),
        ('{"a": "b", "a": "c"}', "bindings.json:1, 'a': the key stands twice in one object"),
        ("[" * 100_000, "not valid JSON"),
        ("null", "bindings.json: expected an object or a list; came null"),
        ("\ufeff{}", "bindings.json:1: it begins with a byte order mark; save it as UTF-8 without one"),
    ],
)
def test_a_file_that_is_not_json(make: Make, text: str, words: str) -> None:
    with pytest.raises(ManifestError) as caught:
        find(make(bindings=text))
    assert words in str(caught.value)


def test_a_missing_file(make: Make) -> None:
    folder: Path = make()
    (folder / "bindings.json").unlink()
    with pytest.raises(ManifestError, match=r"bindings\.json: the file is missing"):
        find(folder)


@pytest.mark.parametrize(
    ("text", "value"), [("D", 384), ("2 * D + 1", 769), ("D // Heads - 4", 60), ("(D + 2) * 2", 772), (7, 7)]
)
def test_size(text: int | str, value: int) -> None:
    assert evaluate_size(text, {"D": 384, "Heads": 6, "T": "f32"}) == value


@pytest.mark.parametrize(
    "text", ["E", "T", "D ** 9", "D / 2", "__import__('os')", "D.real", "D //0", "1 if D else 2", ""]
)
def test_a_size_that_is_none(text: str) -> None:
    with pytest.raises(BindingError, match=r"is not a size: expected an integer, or .* generics \(D\)"):
        evaluate_size(text, {"D": 384, "T": "f32"})
