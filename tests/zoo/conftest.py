"""The tiny settings of the zoo's definitions, each once."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from nest.registry import entries
from nest.verify import Setting, setting_of


@cache
def names() -> list[str]:
    """One entry of each definition and tiny configuration: others would be the same programs again."""
    chosen: dict[tuple[str, str, str], str] = {}
    for entry in entries():
        # What is no size, such as whether there is a bias, makes another program as well.
        facts = {n: v for n, v in entry.generics.items() if type(v) is not int and n != "T"}
        tiny = sorted({**facts, **entry.manifest.tiny}.items())
        key = str(entry.source), entry.manifest.source.root, str(tiny)
        chosen.setdefault(key, entry.name)
    return list(chosen.values())


@pytest.fixture(scope="session")
def oracle_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the oracle keeps results."""
    return tmp_path_factory.mktemp("oracle")


@pytest.fixture(scope="session", params=names())
def setting(request: pytest.FixtureRequest, oracle_folder: Path) -> Setting:
    """A tiny setting of the zoo."""
    return setting_of(request.param, tiny=True, folder=oracle_folder)
