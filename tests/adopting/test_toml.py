"""TOML is written as it is read."""

from __future__ import annotations

import tomllib
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from nest.adopting.toml import toml_text

from ..cli.conftest import ROOT

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_PLAIN = st.one_of(_TEXTS, st.integers(-(2**62), 2**62), st.booleans(), st.floats(allow_nan=False))
_VALUES = st.recursive(
    _PLAIN,
    lambda inner: st.lists(inner, max_size=12) | st.dictionaries(_TEXTS, inner, max_size=9),
    max_leaves=12,
)


@settings(max_examples=30, deadline=None)
@given(st.dictionaries(_TEXTS, st.dictionaries(_TEXTS, _VALUES, max_size=4), max_size=3))
def test_what_is_written_is_read_again(tables: dict[str, dict[str, Any]]) -> None:
    assert tomllib.loads(toml_text(tables)) == tables


def test_manifests_of_the_zoo_survive() -> None:
    for file in (ROOT / "zoo").glob("*/nest.toml"):
        tables = tomllib.loads(file.read_text("utf-8"))
        assert tomllib.loads(toml_text(tables)) == tables
