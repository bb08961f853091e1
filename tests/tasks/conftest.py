"""Inputs that the tests of the tasks share: clips, a small byte-level tokenizer, a scripted session."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from nest.tasks.rules import GenerationRules
from nest.tasks.tokens import Tokenizer

from .scripted import END, FIRST_TIME, NO_TIMES, START, tokenizer_tables

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def clips() -> Path:
    return ROOT / "assets" / "audio"


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    with np.load(ROOT / "tests" / "data" / "golden_jfk_tiny_en.npz") as arrays:
        return dict(arrays)


@pytest.fixture(scope="session")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Tokenizer:
    path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    path.write_text(json.dumps(tokenizer_tables()), encoding="utf-8")
    return Tokenizer(path, end=END, first_timestamp=FIRST_TIME)


@pytest.fixture(scope="session")
def rules() -> GenerationRules:
    """Those of an English checkpoint of 300 tokens, 12 of which a window can hold."""
    return GenerationRules(
        start=START,
        end=END,
        prompt=(START, NO_TIMES),
        no_timestamps=NO_TIMES,
        first_timestamp=FIRST_TIME,
        positions=12,
        max_tokens=6,
        suppress=(7, START),
        begin_suppress=(8, END),
    )
