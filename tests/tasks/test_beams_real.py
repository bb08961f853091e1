"""Beam search with published weights, beside what the reference implementation's own decoding gives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nest
from nest.tasks.audio import load
from nest.tasks.beams import Beams, beam_search
from nest.tasks.mel import log_mel
from nest.tasks.rules import prompt_ids, timed_prompt_ids

pytestmark = pytest.mark.weights

ROOT = Path(__file__).parents[2]
CASES: list[dict[str, Any]] = json.loads((ROOT / "tests" / "data" / "beams_tiny_en.json").read_text())[
    "cases"
]


@pytest.mark.parametrize("backend", ["torch", "onnx", "jax", "nnx"])
def test_tokens_are_those_of_the_reference_implementation(backend: str) -> None:
    task = nest.pipeline("whisper-tiny.en", backend=backend)
    # On jax, each number of beams is compiled for: there, one will do.
    few = [case for case in CASES if case["wishes"]["beam_size"] == 5 and not case["greedy"]]
    with task.sessions.lend() as session:
        for case in few if backend in ("jax", "nnx") else CASES:
            session.listen(log_mel(load(ROOT / "assets" / "audio" / f"{case['clip']}.wav"), task.mel))
            wishes = dict(case["wishes"])
            timed = wishes.pop("timestamps", False)
            prompt = timed_prompt_ids(task.rules) if timed else prompt_ids(task.rules)
            beams = Beams(wishes["beam_size"], wishes.get("patience", 1.0))
            (row,) = beam_search(
                session, task.branches, np.array([prompt], np.int32), task.rules, beams, timed=timed
            )
            assert list(row.tokens) == case["tokens"], case
            assert row.mean_log_probability == pytest.approx(case["mean_log_probability"], abs=1e-3)


def test_the_pipeline_searches_so(clips: Path) -> None:
    task = nest.pipeline("whisper-tiny.en", backend="torch")
    for case in CASES[:2]:
        made = task(clips / f"{case['clip']}.wav", **case["wishes"])
        assert list(made.tokens) == [token for token in case["tokens"] if token < task.rules.end]
    assert not all(case["greedy"] for case in CASES[:2])
