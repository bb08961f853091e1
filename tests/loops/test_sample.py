"""Sampling from uniform numbers of the host: the same tokens on every backend, in the right proportions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from ..speech import VOCAB, heard, mel_of, model_on, padded

END = 3
PROMPTS = [[1, 2], [4, 5, 6, 7], [9], [12, 1, 3]]
ROWS, N = len(PROMPTS), 16
MEL = mel_of(ROWS)
TEMPERATURES = np.array([1.0, 0.5, 0.0, 2.0], np.float32)
MOST = np.array([0, 5, 3, 4], np.int32)
MASS = np.array([0.7, 1.0, 0.9, 0.6], np.float32)
UNIFORMS = np.random.default_rng(11).random((N, ROWS), dtype=np.float32)
ENTRIES = {"sample": {}, "sample_top": {"most": MOST, "mass": MASS}}


def suppressed(*ids: int) -> Any:
    bias = np.zeros(VOCAB, np.float32)
    bias[list(ids)] = -np.inf
    return bias


BIAS, FIRST = suppressed(8, 10), suppressed(5, END)


def drawn(scores: Any, u: float, temperature: float, most: int, mass: float, *, ranked: bool) -> int:
    """The same rule, written for one row in double precision."""
    if temperature == 0:
        return int(scores.argmax())
    order = np.argsort(-scores, kind="stable") if ranked else np.arange(VOCAB)
    weights = np.exp((scores[order].astype(np.float64) - scores.max()) / temperature)
    if ranked:
        weights[most or VOCAB :] = 0
        begun = weights.cumsum() - weights
        weights[begun >= mass * weights.sum()] = 0
    return int(order[(weights.cumsum() > u * weights.sum()).argmax()])


def stepwise(model: Any, row: int, *, ranked: bool) -> list[int]:
    session = model.new_session()
    session.listen(MEL[row : row + 1])
    scores = session.numpy(session.prefill([PROMPTS[row]]))[0] + BIAS + FIRST
    tokens: list[int] = []
    while True:
        settings = (UNIFORMS[len(tokens), row], TEMPERATURES[row], MOST[row], MASS[row])
        token = drawn(scores, *settings, ranked=ranked)
        if token == END:
            return tokens
        tokens.append(token)
        if len(tokens) == N:
            return tokens
        scores = session.numpy(session.step([[token]], len(PROMPTS[row]) + len(tokens) - 1))[0] + BIAS


def decoded(model: Any, entry: str, rows: list[int]) -> list[list[int]]:
    session = model.new_session(Batch=len(rows))
    session.listen(MEL[rows])
    tokens, lengths = padded([PROMPTS[row] for row in rows])
    options = {name: values[rows] for name, values in ENTRIES[entry].items()}
    ids, counts, _ = getattr(session, entry)(
        tokens,
        UNIFORMS[:, rows],
        END,
        TEMPERATURES[rows],
        bias=BIAS,
        first_bias=FIRST,
        lengths=lengths,
        **options,
    )
    ids, counts = session.numpy(ids), session.numpy(counts)
    return [ids[i, : counts[i]].tolist() for i in range(len(rows))]


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_batch_is_drawn_as_each_row_is_alone(model: Any, entry: str) -> None:
    together = decoded(model, entry, [0, 1, 2, 3])
    assert together == [decoded(model, entry, [row])[0] for row in range(ROWS)]
    assert together == [
        stepwise(model_on("reference"), row, ranked=entry == "sample_top") for row in range(ROWS)
    ]
    assert len({len(row) for row in together}) > 1
    assert not {8, 10} & {token for row in together for token in row}
    assert all(row[0] not in (5, END) for row in together)


@pytest.mark.parametrize(
    ("entry", "options"),
    [
        ("sample", {"temperature": [0.0]}),
        ("sample_top", {"temperature": [0.0], "most": 5}),
        ("sample_top", {"temperature": [3.0], "most": 1}),
        ("sample_top", {"mass": [1e-6]}),
        ("sample_top", {"mass": [0.0]}),
    ],
)
def test_what_leaves_one_id_is_greedy(model: Any, entry: str, options: dict[str, Any]) -> None:
    session = heard(model)
    want = [session.numpy(x) for x in session.greedy([[1, 2]], np.zeros((1, N), np.int32), END)]
    got = [session.numpy(x) for x in getattr(session, entry)([[1, 2]], UNIFORMS[:, :1], END, **options)]
    assert got[0].tolist() == want[0].tolist()
    assert got[1].tolist() == want[1].tolist()
    np.testing.assert_allclose(got[2], want[2], rtol=2e-3)


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize(("most", "mass"), [(0, 1.0), (4, 1.0), (0, 0.8), (6, 0.5)])
def test_ids_come_as_often_as_they_are_likely(
    backend: str, most: int, mass: float, temperature: float
) -> None:
    """Evenly spaced numbers find each id in proportion to its probability, to within one of them."""
    if backend in ("jax", "nnx"):
        pytest.skip("the shapes of this test alone would be compiled; the tokens are compared above")
    rows = 400
    model = model_on(backend)
    one = heard(model)
    scores = one.numpy(one.prefill([[1, 2]]))[0].astype(np.float64)
    order = np.argsort(-scores)
    weights = np.exp((scores[order] - scores.max()) / temperature)
    weights[most or VOCAB :] = 0
    weights[weights.cumsum() - weights >= mass * weights.sum()] = 0
    expected = np.zeros(VOCAB)
    expected[order] = weights / weights.sum() * rows
    session = one.fork(rows=[0] * rows)
    uniforms = ((np.arange(rows) + 0.5) / rows).astype(np.float32)[None]
    options = {} if (most, mass) == (0, 1.0) else {"most": most, "mass": [mass] * rows}
    entry = session.sample_top if options else session.sample
    ids, _, _ = entry([[1, 2]] * rows, uniforms, END, [temperature] * rows, **options)
    counts = np.bincount(session.numpy(ids)[:, 0], minlength=VOCAB)
    assert np.abs(counts - expected).max() <= 1
    assert (counts[expected == 0] == 0).all()


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("u", [0.0, 1 - 2**-24])
def test_the_ends_of_the_unit_interval_find_an_id_that_may_be_drawn(model: Any, entry: str, u: float) -> None:
    session = heard(model)
    bias = suppressed(*range(5), *range(12, VOCAB))
    ids, _, totals = getattr(session, entry)([[1, 2]], np.full((N, 1), u, np.float32), END, bias=bias)
    assert set(session.numpy(ids)[0].tolist()) <= set(range(5, 12))
    assert np.isfinite(session.numpy(totals)).all()
