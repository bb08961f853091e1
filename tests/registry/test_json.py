"""Lines of keys in JSON files, in every layout."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nest.registry._json import json_lines
from nest.registry._toml import KeyPath

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a{}[]:,"\\\n', max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text('k{":', max_size=3), inner, max_size=3)
    ),
    max_leaves=12,
)


def paths(value: Any, path: KeyPath = ()) -> set[KeyPath]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = {path} if path else set()
    for key, inner in items:
        found |= paths(inner, (*path, key))
    return found


@given(VALUES, st.sampled_from([None, 0, 2]))
def test_every_key_and_element_has_its_line(value: Any, indent: int | None) -> None:
    lines = json_lines(json.dumps(value, indent=indent))
    assert lines.keys() == paths(value)
    if indent is None:
        assert set(lines.values()) <= {1}


@given(st.dictionaries(st.text("abc", min_size=1), st.integers(), min_size=1))
def test_an_indented_object_has_a_key_a_line(value: dict[str, int]) -> None:
    assert json_lines(json.dumps(value, indent=1)) == {(key,): line for line, key in enumerate(value, 2)}


@pytest.mark.parametrize(
    ("text", "line"), [('{"a": 1,\n"a": 2}', 2), ('{\n"b": {"a": 1}, "a":\n\n3}', 2), ('{"a"\n:\n1}', 1)]
)
def test_the_line_is_the_key_s(text: str, line: int) -> None:
    assert json_lines(text)[("a",)] == line


def test_depth_is_no_crash() -> None:
    assert json_lines("[" * 5000 + "]" * 5000)[(0,)] == 1
