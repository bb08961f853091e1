"""The tiny settings of the zoo's definitions, each once.

NEST_TEST_LADDER=all takes every entry on every backend and plan; else entries that make the same program but for its
numbers are measured once, and the reference library is asked about every one.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import pytest

from nest.registry import entries
from nest.verify import Setting, setting_of

EVERYTHING = os.environ.get("NEST_TEST_LADDER") == "all"


@cache
def names(*, numbers: bool = EVERYTHING) -> list[str]:
    """One entry of each definition and tiny configuration: others would be the same programs again.

    Args:
        numbers: whether static fields that are numbers, such as a rotary base, make another program.
    """
    chosen: dict[tuple[str, str, str], str] = {}
    for entry in entries():
        # What is no size, such as whether there is a bias, makes another program as well. Both kinds of heads, tied and
        # not, are among those that are left.
        facts = {n: v for n, v in entry.generics.items() if type(v) is not int and n not in ("T", "tied")}
        if not numbers:
            facts = {n: type(v).__name__ if isinstance(v, float | tuple) else v for n, v in facts.items()}
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
    """A tiny setting of the zoo, one for each program."""
    return setting_of(request.param, tiny=True, folder=oracle_folder)


@pytest.fixture(scope="session", params=names(numbers=True))
def numbered_setting(request: pytest.FixtureRequest, oracle_folder: Path) -> Setting:
    """A tiny setting of the zoo, one for each program and its numbers."""
    return setting_of(request.param, tiny=True, folder=oracle_folder)
