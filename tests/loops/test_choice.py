"""Choosing an id in ops and in numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.layers import Block, Dim, Float32, Int32, Tensor, entry
from nest.loops.choice import drawn, drawn_of_top, log_probability, penalised
from nest.tasks import sampling
from nest.tasks._rows import log_probabilities

ROWS, VOCAB = 400, 23
RNG = np.random.default_rng(8)
SCORES = RNG.normal(0, 2.5, (ROWS, VOCAB)).astype(np.float32)
# Ids that cannot be chosen at all, as where a caller suppresses them.
SCORES[RNG.random(SCORES.shape) < 0.1] = -np.inf
UNIFORMS = RNG.random(ROWS, dtype=np.float32)
UNIFORMS[:4] = 0, 1 - 2**-24, 0, 1 - 2**-24
HEAT = RNG.choice([0.0, 0.4, 1.0, 1.9], ROWS).astype(np.float32)
FLOOR = RNG.choice([0.0, 0.03, 0.5, 1.0], ROWS).astype(np.float32)
MOST = RNG.choice([0, 1, 5, VOCAB], ROWS).astype(np.int32)
MASS = RNG.choice([1e-6, 0.4, 0.9, 1.0], ROWS).astype(np.float32)
PENALTY = RNG.choice([0.7, 1.0, 1.6], ROWS).astype(np.float32)
SEEN = (RNG.random(SCORES.shape) < 0.3).astype(np.float32)


class Chooser(Block):
    """The choices as entries."""

    Vocab: Dim

    def build(self) -> None: ...

    @entry
    def all(
        self,
        scores: Float32[Tensor, "B Vocab"],
        uniform: Float32[Tensor, "B"],
        heat: Float32[Tensor, "B"],
        floor: Float32[Tensor, "B"],
    ) -> Int32[Tensor, "B"]:
        return drawn(scores, uniform, heat, floor)

    @entry
    def top(
        self,
        scores: Float32[Tensor, "B Vocab"],
        uniform: Float32[Tensor, "B"],
        heat: Float32[Tensor, "B"],
        most: Float32[Tensor, "B"],
        mass: Float32[Tensor, "B"],
        floor: Float32[Tensor, "B"],
    ) -> Int32[Tensor, "B"]:
        return drawn_of_top(scores, uniform, heat, most, mass, floor)

    @entry
    def penalty(
        self, scores: Float32[Tensor, "B Vocab"], seen: Float32[Tensor, "B Vocab"], by: Float32[Tensor, "B"]
    ) -> Float32[Tensor, "B Vocab"]:
        return penalised(scores, seen, by)

    @entry
    def score(self, scores: Float32[Tensor, "B Vocab"], chosen: Int32[Tensor, "B"]) -> Float32[Tensor, "B"]:
        return log_probability(scores, chosen)


@pytest.fixture(scope="module", params=["torch", "jax", "onnx", "reference"])
def chooser(request: pytest.FixtureRequest) -> Any:
    return nest.load(Chooser, backend=request.param, weights=None, Vocab=VOCAB)


def host(model: Any, value: Any) -> Any:
    return np.asarray(model.new_session().numpy(value))


def agree(found: Any, wanted: list[int]) -> None:
    """But where a number falls between two ids within what float32 can tell."""
    assert (found != np.array(wanted)).mean() <= 0.005


def test_an_id_of_all_is_the_host_s(chooser: Any) -> None:
    want = [
        sampling.draw(row, float(u), float(heat), floor=float(floor))
        for row, u, heat, floor in zip(SCORES, UNIFORMS, HEAT, FLOOR, strict=True)
    ]
    agree(host(chooser, chooser.all(SCORES, UNIFORMS, HEAT, FLOOR)), want)


def test_an_id_of_the_likely_ones_is_the_host_s(chooser: Any) -> None:
    want = [
        sampling.draw(row, float(u), float(heat), int(most) or VOCAB, float(mass), float(floor))
        for row, u, heat, most, mass, floor in zip(SCORES, UNIFORMS, HEAT, MOST, MASS, FLOOR, strict=True)
    ]
    found = chooser.top(SCORES, UNIFORMS, HEAT, MOST.astype(np.float32), MASS, FLOOR)
    agree(host(chooser, found), want)


def test_a_penalty_and_a_score_are_the_host_s(chooser: Any) -> None:
    found = host(chooser, chooser.penalty(SCORES, SEEN, PENALTY))
    want = [sampling.penalised(s, seen, float(by)) for s, seen, by in zip(SCORES, SEEN, PENALTY, strict=True)]
    np.testing.assert_allclose(found, np.stack(want), rtol=3e-7)
    chosen = SCORES.argmax(1).astype(np.int32)
    scores = host(chooser, chooser.score(SCORES, chosen))
    np.testing.assert_allclose(scores, log_probabilities(SCORES, chosen), rtol=1e-5, atol=1e-6)
