"""A whole decode as one call: the tokens of the stepwise decode, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import nest
from nest.errors import CallError

from ..speech import SMALL, VOCAB, heard, mel_of, model_on, padded

END = 3
PROMPTS = [[1, 2], [4, 5, 6, 7], [9], [2, 1], [11, 12, 13]]
ROWS, N = len(PROMPTS), 18
MEL = mel_of(ROWS)


def suppressed(*ids: int) -> Any:
    bias = np.zeros(VOCAB, np.float32)
    bias[list(ids)] = -np.inf
    return bias


BIAS, FIRST = suppressed(8, 10), suppressed(5)


def log_softmax(x: Any) -> Any:
    x = x.astype(np.float64) - x.max()
    return x - np.log(np.exp(x).sum())


def stepwise(model: Any, row: int, end: int) -> tuple[list[int], float]:
    """One row, one step at a time, until the end or N tokens; and the sum of log-probabilities."""
    session = model.new_session()
    session.listen(MEL[row : row + 1])
    scores = session.numpy(session.prefill([PROMPTS[row]]))[0] + BIAS + FIRST
    tokens: list[int] = []
    total = 0.0
    while len(tokens) < N:
        token = int(scores.argmax())
        total += log_softmax(scores)[token]
        if token == end:
            break
        tokens.append(token)
        if len(tokens) < N:
            scores = session.numpy(session.step([[token]], len(PROMPTS[row]) + len(tokens) - 1))[0] + BIAS
    return tokens, total


def test_a_batch_is_decoded_as_each_row_is_alone(model: Any) -> None:
    # An id that the rows reach at different times, so that some have ended while others go on.
    endless = [stepwise(model, row, -1)[0] for row in range(ROWS)]
    end = max(range(VOCAB), key=lambda t: len({row.index(t) for row in endless if t in row}))
    expected = [stepwise(model, row, end) for row in range(ROWS)]
    assert len({len(tokens) for tokens, _ in expected}) > 2
    session = model.new_session(Batch=ROWS)
    session.listen(MEL)
    tokens, lengths = padded(PROMPTS)
    results = session.greedy(tokens, np.zeros((ROWS, N), np.int32), end, BIAS, FIRST, lengths)
    ids, counts, totals = map(session.numpy, results)
    assert [ids[i, : counts[i]].tolist() for i in range(ROWS)] == [tokens for tokens, _ in expected]
    np.testing.assert_allclose(totals, [total for _, total in expected], rtol=2e-3)
    for i in range(ROWS):
        assert (ids[i, counts[i] :] == end).all()
        assert not {8, 10} & set(ids[i].tolist())


def test_a_single_token(model: Any) -> None:
    session = heard(model)
    ids, counts, _ = session.greedy([[1, 2]], [[0]], END)
    first = int(session.numpy(session.prefill([[1, 2]])).argmax())
    assert session.numpy(ids).tolist() == [[first]]
    assert session.numpy(counts).tolist() == [int(first != END)]


@pytest.mark.parametrize("loop", ["greedy", "sample"])
def test_a_row_that_is_no_number_is_told_from_the_others(model: Any, loop: str) -> None:
    mel = mel_of(2)
    mel[1, 2, 3] = np.nan
    session = model.new_session(Batch=2)
    session.listen(mel)
    more = np.zeros((2, 4), np.int32) if loop == "greedy" else np.full((4, 2), 0.5, np.float32)
    totals = session.numpy(session.run_entry(loop, [[[1, 2]] * 2, more, END])[2])
    assert np.isfinite(totals).tolist() == [True, False]
    nothing = np.full(VOCAB, -np.inf, np.float32)
    totals = session.numpy(getattr(session, loop)([[1, 2]] * 2, more, END, first_bias=nothing)[2])
    assert np.isnan(totals).all()


def test_what_does_not_fit_the_caches_is_refused(model: Any) -> None:
    session = model.new_session(Capacity=8)
    with pytest.raises(CallError, match=r"requires S\+N-1 <= Capacity, and here Capacity = 8, N = 8, S = 2"):
        session.greedy([[1, 2]], np.zeros((1, 8), np.int32), END)
    with pytest.raises(CallError, match=r"requires S\+N-1 <= Capacity, and here Capacity = 8, N = 8, S = 2"):
        session.sample([[1, 2]], np.zeros((8, 1), np.float32), END)


def test_the_fast_plan_shares_the_weights_and_keeps_the_tokens() -> None:
    model = nest.load("whisper-tiny", backend="torch", weights=None, seed=7, **SMALL)
    out = np.zeros((1, 9), np.int32)
    ids = []
    for plan in ("exact", "fast"):
        session = model.new_session(plan=plan)
        assert session.model.token_embedding.data_ptr() == model.token_embedding.data_ptr()
        session.listen(np.ones((1, 5, 30), np.float32))
        ids.append(session.numpy(session.greedy([[1, 2]], out, -1)[0]).tolist())
    assert ids[0] == ids[1]
    with pytest.raises(CallError, match="There is no plan 'quick'; nest has exact, fast"):
        model.new_session(plan="quick")
    with pytest.raises(CallError, match="graphs=True records CUDA graphs, and whisper-tiny is on 'cpu'"):
        model.new_session(graphs=True)


def test_prompts_of_many_lengths_share_compiled_shapes() -> None:
    model = nest.load("whisper-tiny", backend="jax", weights=None, **SMALL)
    session = heard(model)
    for length in (1, 3, 5, 8):
        session.greedy([[1] * length], np.zeros((1, 6), np.int32), END)
    assert model.compilations["greedy"] == 1


def test_the_model_itself_decodes_too() -> None:
    model = model_on("torch")
    model.listen(mel_of(1))
    session = heard(model)
    out = np.zeros((1, 6), np.int32)
    want = session.greedy([[1, 2]], out, END)
    for got, expected in zip(model.greedy([[1, 2]], out, END), want, strict=True):
        np.testing.assert_array_equal(got.numpy(), expected.numpy())
