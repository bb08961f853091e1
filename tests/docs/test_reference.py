"""The Python reference has what is public, each name once, and nothing that is not there."""

from __future__ import annotations

import re
from importlib import import_module

import pytest

from .markdown import ROOT

PAGES = sorted((ROOT / "docs" / "reference").glob("*.md"))
SHOWN = [name for page in PAGES for name in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)]
ELSEWHERE = {
    "nest": {"__version__", "ir", "layers", "registry", "tasks", "weights"},
    # Annotations are a class for each element type, which Tensor's page lists; ops are shown by their modules.
    "nest.layers": {"Batch", "Bool", "Capacity", "Float", "Float32", "Int32", "ops"},
    "nest.tasks": set(),
    "nest.export": {"FORMATS"},
    "nest.verify": set(),
    "nest.weights": set(),
}
"""Public names that have no heading of their own, by module."""


def _home(name: str) -> object:
    """The module of that name, or what a module has by it: some ops are called as their modules are."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        return getattr(import_module(module), member)


def _shown() -> set[int]:
    found = {id(_home(name)) for name in SHOWN}
    for name in SHOWN:
        thing = _home(name)
        found |= {id(getattr(thing, n)) for n in getattr(thing, "__all__", ())}
    return found


def test_each_name_is_shown_once() -> None:
    assert len(SHOWN) == len(set(SHOWN))
    assert len({id(_home(name)) for name in SHOWN}) == len(SHOWN)


@pytest.mark.parametrize("module", ELSEWHERE)
def test_what_is_public_is_shown(module: str) -> None:
    package = import_module(module)
    missing = {n for n in package.__all__ if id(getattr(package, n)) not in _shown()}
    assert missing == ELSEWHERE[module]


@pytest.mark.parametrize("name", SHOWN)
def test_what_is_shown_has_a_docstring(name: str) -> None:
    assert (_home(name).__doc__ or "").strip()


def test_the_first_page_lists_the_others() -> None:
    text = (ROOT / "docs" / "reference" / "index.md").read_text("utf-8")
    assert set(re.findall(r"\((\w+\.md)\)", text)) == {p.name for p in PAGES} - {"index.md"}
