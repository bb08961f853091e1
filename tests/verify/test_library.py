"""A family's reference library is found by the family's name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from nest.registry import entries
from nest.verify.library import knows


def of(family: str) -> Any:
    return SimpleNamespace(manifest=SimpleNamespace(model=SimpleNamespace(family=family)))


def test_every_family_of_the_zoo_has_one() -> None:
    assert [entry.name for entry in entries() if not knows(entry)] == []


@pytest.mark.parametrize(
    ("family", "known"), [("gemma2", True), ("olmo2", True), ("no-such", False), ("a.b", False)]
)
def test_families_beside_the_zoo(family: str, known: bool) -> None:
    assert knows(of(family)) is known
